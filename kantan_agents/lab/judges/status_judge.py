"""Decides which rule an output meets."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, Literal

from agents import RunConfig

from kantan_agents.agent import Agent
from kantan_agents.agent.bridge import effective_run_config
from kantan_agents.agent.options import checked_items
from kantan_agents.agent.running.portal import background_loop
from kantan_agents.core.context import Context, check_context
from kantan_agents.core.events.emitter import Stopwatch
from kantan_agents.errors import InvalidOptionError, JudgmentError
from kantan_agents.lab.judges.instructions import (
    JudgeTemplates,
    checked_language,
    checked_templates,
    input_for,
    instructions_for,
)
from kantan_agents.lab.judges.record import (
    judgement_trace,
    log_failure,
    log_verdict,
    record_attempt,
    stage_span,
)
from kantan_agents.lab.judges.replies import ModelRecorder, ReplyRecorder
from kantan_agents.lab.judges.rules import StatusRule, checked_rules
from kantan_agents.lab.judges.stages import (
    Evaluation,
    JudgeStage,
    Judgment,
    StageResult,
    read_evaluation,
    read_judgment,
    read_tag,
    single_reply,
)
from kantan_agents.lab.judges.tags import DEFAULT_TAG, checked_content, checked_tag, read_tags, tag_text
from kantan_agents.lab.judges.verdict import StageAttempt, StatusVerdict
from kantan_agents.traces.kantan_tracers import share_sqlite_tracers

Mode = Literal["structured", "tag"]

_RESERVED = ("instructions", "output_type", "output_dest", "history")


class StatusJudge:
    """Decides which of several rules an output meets, with up to three calls of a model.

    A stage runs only if the previous one gave no valid answer:

    1. ``structured_output`` requests the rule's number and a reason as JSON. A tag in the reply is accepted
       too.
    2. ``phase3_tag`` requests the tag of the rule on one line, such as ``[MOVEMENT:2]``.
    3. ``ai_judge`` requests the number of the condition that the output meets, as JSON.

    Each stage takes one reply of the model, unless ``output_repairs`` allows more. Its JSON is requested in
    the output mode that is known to work; all judges in the process share this knowledge about a model.

    A reply has at most 8,192 tokens, unless ``model_settings`` has a ``max_tokens``. A reply that is cut off
    decides nothing.

    Each stage has its own ``Agent``, created once, so middleware, tool rules and traces work as usual.
    Installed tool providers are not used unless ``tool_providers`` names them. Only an unusable reply leads
    to the next stage; every other error is raised immediately. Many tasks may share a judge.

    Args:
        rules: Conditions (str) or ``StatusRule`` objects, in order.
        model: As for ``Agent``.
        name: Name of the judge and prefix of its agents' names, such as ``status-judge-tagged``.
        tag: Name of the tag: a letter, then letters, digits, ``_``, ``-`` and ``.``, in any script. Case and
            full-width forms do not matter.
        language: ``"en"`` or ``"ja"``: the language of the instructions.
        mode: ``"structured"``, or ``"tag"`` to skip the first stage.
        templates: Replaces the instructions. ``language`` then only sets the heading of the table of rules.
        middleware: As for ``Agent``.
        **agent_options: More options of ``Agent``, for all three agents.

    Raises:
        InvalidJudgeRulesError: E45, the rules are invalid.
        InvalidOptionError: E75, an option has an invalid value.
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
        templates: JudgeTemplates | None = None,
        middleware: Iterable[Any] = (),
        **agent_options: Any,
    ) -> None:
        self.rules = checked_rules(rules)
        self.name = _checked_name(name)
        self.tag = checked_tag(tag)
        self.mode = _checked_mode(mode)
        self._templates = checked_templates(templates, checked_language(language))
        for option in _RESERVED:
            if option in agent_options:
                raise InvalidOptionError(option=option, reason="is set by the judge and cannot be given")
        # The outermost sees the reply that counts, the innermost the model that is really called.
        recorded = [
            ("judge's reply", ReplyRecorder()),
            *checked_items("middleware", middleware),
            ("judge's model", ModelRecorder()),
        ]
        # No repairs: the next stage handles a reply that does not fit.
        defaults = {"tool_providers": None, "output_repairs": 0}
        options = {"model": model, **defaults, **agent_options, "middleware": recorded}
        self._stages, self._fallback = self._make_stages(language, options)

    def _make_stages(self, language: str, options: dict[str, Any]) -> tuple[list[JudgeStage], JudgeStage]:
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
        stages = [JudgeStage("phase3_tag", agent("tagged", texts.tagged), tagged)]
        if self.mode == "structured":
            first = agent("structured", texts.structured, single_reply(Judgment))
            stages.insert(
                0, JudgeStage("structured_output", first, partial(read_judgment, count=count, tag=tag))
            )
        last = agent("evaluation", texts.evaluation, single_reply(Evaluation))
        evaluated = partial(read_evaluation, count=count)
        stages.append(JudgeStage("ai_judge", last, partial(evaluated, method="ai_judge")))
        return stages, JudgeStage("ai_judge_fallback", last, partial(evaluated, method="ai_judge_fallback"))

    async def judge(
        self, content: str, context: Context | None = None, **runner_options: Any
    ) -> StatusVerdict:
        """Decide which rule ``content`` meets.

        Args:
            content: The output of an agent. It is data: its placeholders are not filled, and it is sent
                inside a code fence that it cannot close.
            context: Context for ``{{ $ctx.path }}`` in templates and for custom renderers. It is not changed.
            **runner_options: As for ``Agent.run_async``, applied to each stage: ``run_config``, ...

        Raises:
            JudgmentError: E44, no stage gave a valid answer.
            InvalidOptionError: E75, ``content`` is not a str.
            Exception: Any error of a judge's run other than an unusable reply.

        Returns:
            The matched rule, and how it was decided.
        """
        return await self._judge(checked_content(content), context, runner_options, from_tag=False)

    async def detect_matched_rule(
        self, content: str, context: Context | None = None, **runner_options: Any
    ) -> StatusVerdict:
        """Decide which rule ``content`` meets by the tag it contains; call a model only if it has none.

        The method is ``phase1_tag``, or ``ai_judge_fallback`` if a model evaluated the conditions. Arguments,
        errors and result are as for ``judge``.
        """
        return await self._judge(checked_content(content), context, runner_options, from_tag=True)

    def run(self, content: str, context: Context | None = None, **runner_options: Any) -> StatusVerdict:
        """Run ``judge`` and block until it is done; callable from any thread, like ``Agent.run``."""
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
                match = read_tags(content, len(self.rules), self.tag)
                result = StageResult(match.step, "phase1_tag", problem=match.problem)
                attempts.append(StageAttempt("phase1_tag", "", content, match.problem))
                record_attempt(span, attempts[-1], result, config)
            if result.step is not None:
                return self._verdict(result, attempts)
        stage_input = input_for(self._templates.output, content)
        stages = [self._fallback] if from_tag else self._stages
        for stage in stages:
            with stage_span(stage.name, config) as span:
                own = {} if context is None else dict(check_context(context))
                instruction = await stage.agent.render(own)
                reply = await stage.run(stage_input, own, options)
                result = stage.result(reply)
                attempts.append(
                    StageAttempt(
                        stage.name,
                        instruction,
                        reply.text,
                        result.problem,
                        reply.calls.model,
                        reply.calls.mode,
                        reply.calls.usage,
                    )
                )
                record_attempt(span, attempts[-1], result, config)
                if result.step is None and stage is stages[-1]:
                    raise JudgmentError(attempts=tuple(attempts))
            if result.step is not None:
                break
        return self._verdict(result, attempts)

    def _verdict(self, result: StageResult, attempts: list[StageAttempt]) -> StatusVerdict:
        index = (result.step or 0) - 1
        return StatusVerdict(
            index,
            self.rules[index],
            result.method,
            result.reason,
            tuple(attempts),
            tag=tag_text(self.tag, index + 1),
        )

    def __repr__(self) -> str:
        return f"StatusJudge({self.name!r}, {len(self.rules)} rules, mode={self.mode!r})"


async def judge_status(
    content: str, rules: Iterable[str | StatusRule], *, context: Context | None = None, **options: Any
) -> StatusVerdict:
    """Decide which of ``rules`` an output meets: ``StatusJudge(rules, **options).judge(content, context)``.

    To judge more than once, create a ``StatusJudge`` instead: it creates its agents only once.

    Args:
        content: The output of an agent.
        rules: Conditions (str) or ``StatusRule`` objects, in order.
        context: As for ``StatusJudge.judge``.
        **options: As for ``StatusJudge``: ``model``, ``tag``, ``language``, ``mode``, ...

    Raises:
        InvalidJudgeRulesError: E45, the rules are invalid.
        JudgmentError: E44, no stage gave a valid answer.
        InvalidOptionError: E75, an option has an invalid value.

    Returns:
        The matched rule, and how it was decided.
    """
    return await StatusJudge(rules, **options).judge(content, context)


async def detect_matched_rule(
    content: str, rules: Iterable[str | StatusRule], *, context: Context | None = None, **options: Any
) -> StatusVerdict:
    """Decide which of ``rules`` an output meets by the tag it contains; call a model only if it has none.

    Arguments, errors and result are as for ``judge_status``. The method is ``phase1_tag`` or
    ``ai_judge_fallback``.
    """
    return await StatusJudge(rules, **options).detect_matched_rule(content, context)


def _checked_name(name: object) -> str:
    if isinstance(name, str) and name.strip():
        return name
    raise InvalidOptionError(option="name", reason=f"must be a text, not {name!r}")


def _checked_mode(mode: Any) -> Mode:
    if mode in ("structured", "tag"):
        return mode  # type: ignore[no-any-return]
    raise InvalidOptionError(option="mode", reason=f'must be "structured" or "tag", not {mode!r}')
