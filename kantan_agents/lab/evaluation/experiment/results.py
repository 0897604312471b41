"""The results of an evaluation by variant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import attrs
import msgspec

from kantan_agents.lab.evaluation.dataset.case import Case
from kantan_agents.lab.evaluation.finished_case import FinishedCase
from kantan_agents.lab.evaluation.scores import Score
from kantan_agents.lab.experiment.flat_rows import Row, Tabular, flat
from kantan_agents.lab.experiment.tool_use import ToolUse

Status = Literal["finished", "failed"]

Better = Literal["higher", "lower"]


@attrs.frozen
class CaseResult:
    """One run of a case, and its scores.

    Attributes:
        case_id: Id of the case.
        case_hash: Hash of the case.
        conversation: The conversation that the case is part of.
        variant: Name of the variant.
        repeat: Number of the repetition, from 0.
        status: ``"finished"`` or ``"failed"``.
        output: The final output: a string, or JSON data. Secrets in it are masked, as in a trace.
        error: The error of a failed run, as a string.
        trace_id: Id of its trace; None if it was not recorded.
        seconds: Its duration.
        input_tokens: Input tokens of its model calls.
        output_tokens: Output tokens of its model calls.
        cost: Their price; None without prices.
        model_calls: Number of its model calls.
        tool_calls: Its tool calls.
        scores: The scores of evaluators by metric.
        evaluators: For each metric, the name and the version of its evaluator.
        is_withheld: Whether its content is not stored; the trace of the run does not have it either.
        not_applicable: Names of the evaluators that do not apply to the run.
        first_trace_id: Id of the trace of the first attempt, if the run was repeated, for example after a
            failure.
    """

    case_id: str
    case_hash: str
    conversation: str | None
    variant: str
    repeat: int
    status: Status
    output: Any
    error: str | None
    trace_id: str | None
    seconds: float
    input_tokens: int
    output_tokens: int
    cost: float | None
    model_calls: int
    tool_calls: tuple[ToolUse, ...] = ()
    scores: Mapping[str, Score] = attrs.field(factory=dict)
    evaluators: Mapping[str, tuple[str, str]] = attrs.field(factory=dict, repr=False)
    is_withheld: bool = False
    not_applicable: tuple[str, ...] = attrs.field(default=(), repr=False)
    first_trace_id: str | None = attrs.field(default=None, repr=False)

    @property
    def unit(self) -> str:
        """The sampling unit: the conversation, or the content of the case.

        Repeats of a case, its runs with several variants, and cases of the same content are not independent.
        """
        return f"case {self.case_hash}" if self.conversation is None else f"conversation {self.conversation}"

    @property
    def tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def finished(self, case: Case) -> FinishedCase:
        """Return the run as evaluators see it."""
        return FinishedCase(
            case,
            self.variant,
            self.repeat,
            self.output,
            self.error,
            self.tool_calls,
            self.seconds,
            self.input_tokens,
            self.output_tokens,
            self.cost,
            self.model_calls,
            self.trace_id,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {**self.stored(), "scores": {metric: attrs.asdict(one) for metric, one in self.scores.items()}}

    def stored(self) -> dict[str, Any]:
        """Return its stored JSON data, without the scores, which are stored separately."""
        data = {name: getattr(self, name) for name in _STORED}
        if self.is_withheld:
            error = None if self.error is None else self.error.partition(":")[0]
            return {**data, "output": None, "tool_calls": [], "error": error}
        data["tool_calls"] = [attrs.asdict(one) for one in self.tool_calls]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], scores: Mapping[str, Score]) -> CaseResult:
        """Return the result from the data of ``to_dict``, with these scores.

        Raises:
            msgspec.ValidationError: The data is invalid.
        """
        return attrs.evolve(msgspec.convert(_current(data), cls), scores=scores)


def _current(data: Any) -> Any:
    """Return the data of an earlier version, which wrote ``is_refused``, in the new form."""
    if not isinstance(data, dict) or not isinstance(data.get("tool_calls"), list):
        return data
    calls = [
        {**one, "is_denied": one["is_refused"]} if isinstance(one, dict) and "is_refused" in one else one
        for one in data["tool_calls"]
    ]
    return {**data, "tool_calls": calls}


_STORED_AS_SCORES = ("scores", "evaluators", "not_applicable")
_STORED = tuple(field.name for field in attrs.fields(CaseResult) if field.name not in _STORED_AS_SCORES)


@attrs.frozen
class VariantResults(Tabular):
    """All results of one variant of an evaluation, for ``compare``.

    Attributes:
        evaluation: Name of the evaluation.
        variant: Name of the variant.
        results: One for each run, in the order of the cases.
        better: For each evaluator, whether a higher or a lower score is better.
        path: The database that has them and their labels; None if they are not stored.
        is_grown: Whether cases were added to the evaluation after an earlier start.
    """

    evaluation: str
    variant: str
    results: tuple[CaseResult, ...]
    better: Mapping[str, Better] = attrs.field(factory=dict)
    path: Path | None = attrs.field(default=None, repr=False, eq=False)
    is_grown: bool = attrs.field(default=False, repr=False)

    def __len__(self) -> int:
        return len(self.results)

    def rows(self) -> list[Row]:
        """Return a row for each run; see ``Tabular.rows``."""
        return rows_of(self.results)

    def mean(self, metric: str) -> float | None:
        """Return the mean score of a metric over the cases, repeats averaged first; None without scores."""
        by_case: dict[str, list[float]] = {}
        for one in self.results:
            score = one.scores.get(metric)
            if score is not None and score.value is not None:
                by_case.setdefault(one.case_id, []).append(score.value)
        return _mean(_mean(values) for values in by_case.values())

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that have scores, in the order in which they first occur."""
        return tuple(dict.fromkeys(metric for one in self.results for metric in one.scores))

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        """The failed runs."""
        return tuple(one for one in self.results if one.status == "failed")


def rows_of(results: Iterable[CaseResult]) -> list[Row]:
    """Return a row for each run, with structured outputs as JSON."""
    return [flat(one.to_dict(), texts=("output",)) for one in results]


def _mean(values: Iterable[float | None]) -> float | None:
    listed = [value for value in values if value is not None]
    return sum(listed) / len(listed) if listed else None
