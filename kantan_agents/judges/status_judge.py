"""``StatusJudge``: which of several rules does an output meet?"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Literal

from agents import RunConfig

from kantan_agents.agent import Agent
from kantan_agents.agent.options import checked_items
from kantan_agents.bridge import effective_run_config
from kantan_agents.context import Context, check_context
from kantan_agents.errors import InvalidOptionError, JudgementError
from kantan_agents.events.emitter import Stopwatch
from kantan_agents.judges.instructions import (
    JudgingTemplates,
    checked_language,
    checked_templates,
    input_for,
    instructions_for,
)
from kantan_agents.judges.record import (
    judgement_trace,
    log_failure,
    log_verdict,
    record_attempt,
    stage_span,
)
from kantan_agents.judges.replies import ReplyNote
from kantan_agents.judges.rules import StatusRule, checked_rules
from kantan_agents.judges.schemas import Evaluation, Judgment
from kantan_agents.judges.stages import Reading, Stage, read_evaluation, read_judgment, read_tag
from kantan_agents.judges.tags import DEFAULT_TAG, checked_content, checked_tag, read_tags
from kantan_agents.judges.verdict import StageAttempt, StatusVerdict
from kantan_agents.running.portal import background_loop
from kantan_agents.tracing.sqlite import share_sqlite_tracers

Mode = Literal["structured", "tag"]

_OWN = ("instructions", "output_type", "output_dest", "history")


class StatusJudge:
    """Finds out which of several rules an output meets, with up to three questions to a model.

    Each question is asked only if the one before it brought no valid answer, and in other words:

    1. ``structured_output``: the rule's number and a reason as JSON. A reply that has a tag instead counts.
    2. ``phase3_tag``: the tag of the rule, ``[MOVEMENT:2]``, on one line.
    3. ``ai_judge``: which of the conditions does the output meet?

    Each is an ``Agent`` of its own, made once, so middleware, tool rules and traces are as with any other;
    installed tool providers are left out unless ``tool_providers`` names them. Only a reply that is no
    answer leads to the next question; whatever else goes wrong is raised at once. A judge may be used by
    many tasks at the same time.

    Args:
        rules: Conditions (str) or ``StatusRule`` objects, in order.
        model: As for ``Agent``.
        name: Name of the judge. Its agents are named after it, as ``status-judge-tagged``.
        tag: Name of the tag.
        language: ``"en"`` or ``"ja"``: the language of the instructions.
        mode: ``"structured"``, or ``"tag"`` to begin with the second question.
        templates: Replaces the instructions; ``language`` is then that of the table's heading.
        middleware: As for ``Agent``.
        **agent_options: Anything else ``Agent`` takes, for all three agents.

    Raises:
        InvalidJudgeRulesError: E45, something is wrong with the rules.
        InvalidOptionError: E75, an option has a value it cannot have.
    """

    def __init__(
        self,
        rules: Iterable[str | StatusRule],
        *,
        model: object = None,
        name: str = "status-judge",
        tag: str = DEFAULT_TAG,
        language: Literal["en", "ja"] = "en",
        mode: Mode = "structured",
        templates: JudgingTemplates | None = None,
        middleware: Iterable[Any] = (),
        **agent_options: Any,
    ) -> None:
        self.rules = checked_rules(rules)
        self.name = _checked_name(name)
        self.tag = checked_tag(tag)
        self.mode = _checked_mode(mode)
        self._templates = checked_templates(templates, checked_language(language))
        for option in _OWN:
            if option in agent_options:
                raise InvalidOptionError(option=option, reason="is the judge's own and cannot be given")
        heard = [("judge's reply", ReplyNote()), *checked_items("middleware", middleware)]
        # A reply that does not fit is asked for in other words anyway.
        standing = {"tool_providers": None, "output_repairs": 0}
        options = {"model": model, **standing, **agent_options, "middleware": heard}
        self._stages, self._behind_tag = self._make_stages(language, options)

    def _make_stages(self, language: str, options: dict[str, Any]) -> tuple[list[Stage], Stage]:
        """Return the stages of ``judge``, and what asks where ``detect_matched_rule`` finds no tag."""
        count, tag, texts = len(self.rules), self.tag, self._templates
        renderer = options.pop("renderer", None)

        def agent(kind: str, template: str, output_type: Any = None) -> Agent[Any]:
            wording = instructions_for(template, self.rules, tag, language)
            return Agent(
                f"{self.name}-{kind}",
                wording.text,
                renderer=wording.renderer(renderer),
                output_type=output_type,
                history=0,
                **options,
            )

        tagged = partial(read_tag, count=count, tag=tag)
        stages = [Stage("phase3_tag", agent("tagged", texts.tagged), tagged)]
        if self.mode == "structured":
            first = agent("structured", texts.structured, Judgment)
            stages.insert(0, Stage("structured_output", first, partial(read_judgment, count=count, tag=tag)))
        last = agent("evaluation", texts.evaluation, Evaluation)
        evaluated = partial(read_evaluation, count=count)
        stages.append(Stage("ai_judge", last, partial(evaluated, method="ai_judge")))
        return stages, Stage("ai_judge_fallback", last, partial(evaluated, method="ai_judge_fallback"))

    async def judge(
        self, content: str, context: Context | None = None, **runner_options: Any
    ) -> StatusVerdict:
        """Say which rule ``content`` meets.

        Args:
            content: The output of an agent. It is data to the judge: markers in it are not filled in, and it
                stands in a fence that it cannot close.
            context: What ``{{ $ctx.path }}`` in templates and renderers of yours see. It stays as it is.
            **runner_options: As for ``Agent.run_async``, for each question: ``run_config``, ...

        Raises:
            JudgementError: E44, no question brought a valid answer.
            InvalidOptionError: E75, ``content`` is no str.
            Exception: What a judge's run raised, but for a reply that is no answer.

        Returns:
            The rule, and what decided.
        """
        return await self._judge(checked_content(content), context, runner_options, from_tag=False)

    async def detect_matched_rule(
        self, content: str, context: Context | None = None, **runner_options: Any
    ) -> StatusVerdict:
        """Say which rule ``content`` meets, by the tag it carries; ask a model only if it carries none.

        The method is ``phase1_tag``, or ``ai_judge_fallback`` if the conditions had to be evaluated.
        Arguments, errors and result are those of ``judge``.
        """
        return await self._judge(checked_content(content), context, runner_options, from_tag=True)

    def run(self, content: str, context: Context | None = None, **runner_options: Any) -> StatusVerdict:
        """Judge as ``judge`` does, and wait for it; from any thread, as ``Agent.run``."""
        share_sqlite_tracers()
        return background_loop.run(lambda: self.judge(content, context, **runner_options))

    async def _judge(
        self, content: str, context: Context | None, options: dict[str, Any], *, from_tag: bool
    ) -> StatusVerdict:
        config, _ = effective_run_config(options.get("run_config"), None)
        watch, trace_id = Stopwatch(), None
        try:
            with judgement_trace(self.name, config) as trace_id:
                verdict = await self._decide(content, context, options, config, from_tag=from_tag)
        except BaseException as error:
            log_failure(self.name, error, watch.seconds, trace_id)
            raise
        log_verdict(self.name, verdict, watch.seconds, trace_id)
        return verdict

    async def _decide(
        self, content: str, context: Any, options: dict[str, Any], config: RunConfig, *, from_tag: bool
    ) -> StatusVerdict:
        attempts: list[StageAttempt] = []
        if from_tag:
            with stage_span("phase1_tag", config) as span:
                found = read_tags(content, len(self.rules), self.tag)
                reading = Reading(found.step, "phase1_tag", problem=found.problem)
                attempts.append(StageAttempt("phase1_tag", "", content, found.problem))
                record_attempt(span, attempts[-1], reading, config)
            if reading.step is not None:
                return self._verdict(reading, attempts)
        question = input_for(self._templates.output, content)
        stages = [self._behind_tag] if from_tag else self._stages
        for stage in stages:
            with stage_span(stage.name, config) as span:
                own = {} if context is None else dict(check_context(context))
                instruction = await stage.agent.render(own)
                reply = await stage.ask(question, own, options)
                reading = stage.read(reply)
                attempts.append(StageAttempt(stage.name, instruction, reply.text, reading.problem))
                record_attempt(span, attempts[-1], reading, config)
                if reading.step is None and stage is stages[-1]:
                    raise JudgementError(attempts=tuple(attempts))
            if reading.step is not None:
                break
        return self._verdict(reading, attempts)

    def _verdict(self, reading: Reading, attempts: list[StageAttempt]) -> StatusVerdict:
        index = (reading.step or 0) - 1
        return StatusVerdict(index, self.rules[index], reading.method, reading.reason, tuple(attempts))

    def __repr__(self) -> str:
        return f"StatusJudge({self.name!r}, {len(self.rules)} rules, mode={self.mode!r})"


def _checked_name(name: object) -> str:
    if isinstance(name, str) and name.strip():
        return name
    raise InvalidOptionError(option="name", reason=f"must be a text, not {name!r}")


def _checked_mode(mode: Any) -> Mode:
    if mode in ("structured", "tag"):
        return mode  # type: ignore[no-any-return]
    raise InvalidOptionError(option="mode", reason=f'must be "structured" or "tag", not {mode!r}')
