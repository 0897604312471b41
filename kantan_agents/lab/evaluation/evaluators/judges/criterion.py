"""A ready-made judge as data; calling it returns an evaluator."""

from __future__ import annotations

from typing import Any

import attrs

from kantan_agents.agent import Agent
from kantan_agents.agent.own_calls import limited
from kantan_agents.core.prompt import Prompt
from kantan_agents.errors import CriterionError, InvalidOptionError
from kantan_agents.lab.evaluation.evaluators.evaluator import Evaluator
from kantan_agents.lab.evaluation.evaluators.judge_runs import (
    ask_judge,
    judge_options,
    judged_metadata,
    score_of,
    shown_to_judge,
)
from kantan_agents.lab.evaluation.evaluators.judges.shown import (
    NOTHING_FOUND,
    PARTS,
    Given,
    Sources,
    Texts,
    checked_sources,
    described_tools,
)
from kantan_agents.lab.evaluation.evaluators.judges.verdicts import Decision
from kantan_agents.lab.evaluation.evaluators.versions import version_of_options
from kantan_agents.lab.evaluation.finished_case import FinishedCase
from kantan_agents.lab.evaluation.scores import Score
from kantan_agents.models.rubric import rubric_of


def _are_parts(_: object, __: object, names: tuple[str, ...]) -> None:
    for name in names:
        if name not in PARTS:
            raise InvalidOptionError(option="shows", reason=f"{name!r} must be one of {', '.join(PARTS)}")


@attrs.frozen
class Criterion:
    """The question, the inputs and the output type of a judge.

    Call it for an evaluator: ``judges.correctness(model="...")``. To use your own prompt:
    ``attrs.evolve(judges.correctness, prompt=Prompt("correctness", "mine", "..."))``.

    Attributes:
        prompt: The instructions of the judge. Its name is the metric.
        shows: The parts that the judge sees, in this order: ``"question"``, ``"reference"``, ``"sources"``,
            ``"tools"``, ``"calls"`` and ``"answer"``. A part that a case lacks is an error, unless it is in
            ``may_lack``.
        verdict: The output type: ``Decision``, ``Parts``, or your own with ``score`` and ``comments``.
        may_lack: Parts that a case may lack.
        each_source: Whether the verdict must have one part for each source.

    Raises:
        InvalidOptionError: E75, a part does not exist.
    """

    prompt: Prompt
    shows: tuple[str, ...] = attrs.field(validator=_are_parts)
    verdict: type[Any] = Decision
    may_lack: frozenset[str] = frozenset()
    each_source: bool = False

    def __call__(
        self,
        *,
        model: object = None,
        sources: Sources = None,
        tools: Any = None,
        name: str | None = None,
        version: str | None = None,
        **agent_options: Any,
    ) -> Evaluator:
        """Return an evaluator that runs a judge. Each judge's score is 1 for a flawless answer.

        The judge's run is recorded as for ``judged``. If a case lacks a part that the judge must see, the
        score has failed with E205, and no model is called.

        Args:
            model: As for ``Agent``.
            sources: For judges of sources: the name of the tools whose results they are, or a function that
                returns them for a ``FinishedCase``; by default the results of all tool calls. Each item of a
                list is one source. An empty search result supports no claim.
            tools: For ``tool_choice``: the tools that the agent could choose from, such as ``agent.tools``,
                or a dict of names and descriptions.
            name: Name of the metric; by default the name of the prompt.
            version: By default a hash of the judge's instructions, model, settings and options.
            **agent_options: Further options of the judge's ``Agent``: ``model_settings``, ``middleware``, ...
                An answer has at most 8,192 tokens, unless ``model_settings`` has a ``max_tokens``.

        Raises:
            InvalidOptionError: E75, an option is invalid, or is for another judge.
        """
        given = self._given(sources, tools)
        judge = Agent(
            f"{self.prompt.name}-judge",
            self.prompt,
            model=model,
            output_type=self.verdict,
            **{"tool_providers": None, **agent_options},
        )
        agent = limited(judge)

        async def score(finished: FinishedCase) -> Score | None:
            texts = self._texts(finished, given)
            if self.each_source and NOTHING_FOUND in texts:
                return None
            output = await ask_judge(
                agent, shown_to_judge(*texts), finished.case, "judged", judged_metadata(finished)
            )
            rubric = rubric_of(output, self.verdict) or {}
            self._check_parts(finished, rubric, texts)
            if rubric.get("score") is None and rubric.get("parts") == []:
                return None  # the answer claims nothing
            return score_of(rubric)

        if version is None:
            options = {**judge_options(judge), "shows": list(self.shows), "given": given.version()}
            version = version_of_options("criterion", options)
        return Evaluator(self.prompt.name if name is None else name, version, score, source="model")

    def _given(self, sources: Any, tools: Any) -> Given:
        options = {"sources": sources, "tools": tools}
        for option, value in options.items():
            if value is not None and option not in self.shows:
                reason = f"is not for {self.prompt.name!r}, which is shown {', '.join(self.shows)}"
                raise InvalidOptionError(option=option, reason=reason)
        return Given(checked_sources(sources), described_tools(tools) if "tools" in self.shows else {})

    def _texts(self, finished: FinishedCase, given: Given) -> Texts:
        texts: Texts = []
        for name in self.shows:
            part = PARTS[name].read(finished, given)
            if not part and name not in self.may_lack:
                raise self._error(finished, PARTS[name].missing)
            texts += part
        return texts

    def _check_parts(self, finished: FinishedCase, rubric: Any, texts: Texts) -> None:
        if not self.each_source:
            return
        wanted = sum(heading.startswith("Source ") for heading, _ in texts)
        found = len(rubric.get("parts", ()))
        if found != wanted:
            raise self._error(
                finished, f"its verdict is about {found} of {wanted} sources; ask another model"
            )

    def _error(self, finished: FinishedCase, reason: str) -> CriterionError:
        return CriterionError(judge=self.prompt.name, case=finished.case.id, reason=reason)
