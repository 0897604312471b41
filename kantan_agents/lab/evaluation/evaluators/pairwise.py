"""A judge that compares two outputs for the same case, in both orders."""

from __future__ import annotations

from typing import Any, Final, Literal

import attrs
from pydantic import BaseModel

from kantan_agents.agent import Agent
from kantan_agents.agent.own_calls import limited
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.dataset.case import Case
from kantan_agents.lab.evaluation.dataset.json_data import same_data
from kantan_agents.lab.evaluation.evaluators.coerce import failed_score
from kantan_agents.lab.evaluation.evaluators.judge_runs import (
    ask_judge,
    judge_options,
    parts_of,
    shown_to_judge,
)
from kantan_agents.lab.evaluation.evaluators.versions import version_of_options
from kantan_agents.lab.evaluation.finished_case import FinishedCase
from kantan_agents.lab.evaluation.judge_keys import COMPARED_A, COMPARED_B
from kantan_agents.models.structured import as_dict
from kantan_agents.support.arguments import checked_text, shown

Winner = Literal["a", "b", "tie"]

_INSTRUCTIONS: Final = """\
You compare two outputs of an agent, A and B, for the same input. Decide which one does better what the input
asks for. Their order says nothing about their quality, and a longer output is not better for its length.

Answer with `winner`, which is "A", "B", or "tie" if neither is better, and `reason`, a brief justification.
"""


_LABELS: Final[dict[str, tuple[tuple[Winner, ...], ...]]] = {
    "better": (("b", "b"),),
    "worse": (("a", "a"),),
    "tie": (("tie", "tie"),),
    "tie: the outputs are the same": ((),),
    "tie: it prefers the first output": (("a", "b"),),
    "tie: it prefers the second output": (("b", "a"),),
    "tie: it prefers the first output in one order": (("a", "tie"), ("tie", "b")),
    "tie: it prefers the second output in one order": (("b", "tie"), ("tie", "a")),
}
"""The answers in both orders, by the label for b."""


class Preference(BaseModel):
    """The answer of a pairwise judge.

    Attributes:
        winner: The better output, in the order in which they were shown.
        reason: Why.
    """

    winner: Literal["A", "B", "tie"]
    reason: str


@attrs.frozen
class PairwiseVerdict:
    """The output that a judge prefers.

    Attributes:
        winner: ``"a"``, ``"b"`` or ``"tie"``, even if the answers in the two orders disagree; None if a run
            or the judge has failed.
        answers: The better output when a was shown first, and when b was; empty without a call of the judge.
        comments: The reasons, in the same order.
        error: Why there is no winner.
    """

    winner: Winner | None
    answers: tuple[Winner, ...] = ()
    comments: tuple[str, ...] = ()
    error: str | None = None

    @property
    def is_consistent(self) -> bool:
        """Whether the order did not matter."""
        return len(set(self.answers)) <= 1

    @property
    def preferred_place(self) -> Literal["first", "second"] | None:
        """The position that won in both orders, whichever output it had; None if an output won."""
        if self.answers == ("a", "b"):
            return "first"
        return "second" if self.answers == ("b", "a") else None

    @property
    def label(self) -> str | None:
        """The outcome for b; None without a winner. ``from_label`` reads it."""
        if self.winner is None:
            return None
        return next((label for label, answers in _LABELS.items() if self.answers in answers), self.winner)

    @classmethod
    def from_label(cls, label: str | None) -> PairwiseVerdict | None:
        """Return a verdict with this label, without comments; None for an unknown label."""
        known = _LABELS.get(label or "")
        if known is None:
            return None
        answers = known[0]
        return cls(answers[0] if answers and len(set(answers)) == 1 else "tie", answers)


@attrs.frozen
class PairwiseJudge:
    """Compares two outputs for the same case. ``pairwise`` creates one.

    Attributes:
        name: Name of the comparison.
        version: Identifies its verdicts.
        agent: The judge.
    """

    name: str
    version: str
    agent: Agent[Any] = attrs.field(repr=False, eq=False)

    async def compare(self, a: FinishedCase, b: FinishedCase) -> PairwiseVerdict:
        """Let the judge decide in both orders which output is better.

        Equal outputs are a tie without a call. An error of the judge is a verdict without a winner.
        Cancellation propagates.

        Args:
            a: The run of a case.
            b: Another run of the same case.

        Raises:
            InvalidOptionError: E75, the runs are of different cases.
        """
        if a.case.hash != b.case.hash:
            reason = f"must be a run of the case {a.case.id!r}, not of {b.case.id!r}"
            raise InvalidOptionError(option="b", reason=reason)
        failed = [name for name, run in (("a", a), ("b", b)) if run.error is not None]
        if failed:
            return PairwiseVerdict(None, error=f"the run of {' and '.join(failed)} has failed")
        if same_data(a.output, b.output):
            return PairwiseVerdict("tie")
        metadata = {COMPARED_A: a.trace_id, COMPARED_B: b.trace_id}
        try:
            first = await self._ask(a.case, a.text, b.text, metadata)
            second = await self._ask(a.case, b.text, a.text, metadata)
        except Exception as error:  # noqa: BLE001 - any error of the judge's run is its result
            return PairwiseVerdict(None, error=failed_score(error, "model").error)
        answers = (_winner(first.winner, "a", "b"), _winner(second.winner, "b", "a"))
        winner = answers[0] if answers[0] == answers[1] else "tie"
        return PairwiseVerdict(winner, answers, (first.reason, second.reason))

    async def _ask(self, case: Case, one: str, other: str, metadata: dict[str, Any]) -> Preference:
        text = shown_to_judge(*parts_of(case), ("Output A", one), ("Output B", other))
        output = await ask_judge(self.agent, text, case, "pairwise", metadata)
        fields = as_dict(output, json=True) or {}
        return Preference(winner=fields.get("winner"), reason=str(fields.get("reason") or ""))  # type: ignore[arg-type]


def pairwise(
    judge: Agent[Any] | None = None,
    *,
    instructions: str | None = None,
    name: str = "pairwise",
    version: str | None = None,
    **agent_options: Any,
) -> PairwiseJudge:
    """Return a judge of two outputs for the same case.

    It runs twice, once with each output first. If the two answers disagree, the order decided and not the
    quality: that is a tie, and ``PairwiseVerdict`` has both answers. An answer has at most 8,192 tokens,
    unless the settings of the judge have a ``max_tokens``; a truncated one gives no winner.

    Args:
        judge: An agent whose output has ``winner``, ``"A"``, ``"B"`` or ``"tie"``, and ``reason``; by default
            one is created.
        instructions: The criterion, instead of the standard instructions.
        name: Name of the comparison.
        version: By default a hash of the judge's instructions, model, settings and output type.
        **agent_options: For the agent that is created: ``model``, ``model_settings``, ...

    Raises:
        InvalidOptionError: E75, ``judge`` is not an agent with such an output, or is given with options.
    """
    if judge is None:
        task = _INSTRUCTIONS if instructions is None else checked_text("instructions", instructions)
        options = {"tool_providers": None, **agent_options}
        judge = Agent("pairwise-judge", task, output_type=Preference, **options)
    elif not isinstance(judge, Agent) or judge.output_type is None:
        reason = f"must be an Agent whose output has winner and reason, not {shown(judge)}"
        raise InvalidOptionError(option="judge", reason=reason)
    elif instructions is not None or agent_options:
        option = "instructions" if instructions is not None else next(iter(agent_options))
        raise InvalidOptionError(option=option, reason="belongs to the judge, which is given; set it there")
    versioned = version_of_options("pairwise", judge_options(judge)) if version is None else version
    return PairwiseJudge(name, versioned, limited(judge))


def _winner(answer: Literal["A", "B", "tie"], shown_first: Winner, shown_second: Winner) -> Winner:
    if answer == "tie":
        return "tie"
    return shown_first if answer == "A" else shown_second
