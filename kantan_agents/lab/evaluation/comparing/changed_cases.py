"""Cases in which one variant is better or worse than the other."""

from __future__ import annotations

from typing import Any, Final, Literal

import attrs

from kantan_agents.lab.evaluation.comparing.comparison import Comparison, MetricComparison
from kantan_agents.lab.evaluation.comparing.paired_values import (
    CaseKey,
    PairedValues,
    paired_values,
    runs_of_cases,
)
from kantan_agents.lab.evaluation.experiment.results import CaseResult, VariantResults

_ALWAYS_DIFFER: Final = ("latency", "tokens", "cost")
"""These differ in nearly every case, so a list would be useless."""


@attrs.frozen
class ChangedCase:
    """A case in which ``b`` is better or worse than ``a``; values are means of repeats."""

    metric: str
    case_id: str
    change: Literal["better", "worse"]
    value_a: float
    value_b: float
    runs_a: tuple[CaseResult, ...] = attrs.field(repr=False)
    runs_b: tuple[CaseResult, ...] = attrs.field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data, with the trace ids of its runs."""
        return {
            "metric": self.metric,
            "case": self.case_id,
            "change": self.change,
            "a": {"value": self.value_a, "trace_ids": [run.trace_id for run in self.runs_a]},
            "b": {"value": self.value_b, "trace_ids": [run.trace_id for run in self.runs_b]},
        }


def changed_cases(
    comparison: Comparison, a: VariantResults, b: VariantResults
) -> dict[str, tuple[ChangedCase, ...]]:
    """Return changed cases by metric, the largest change first."""
    runs_a, runs_b = runs_of_cases(a), runs_of_cases(b)
    found = {}
    for one in comparison.metrics:
        if one.metric not in _ALWAYS_DIFFER and (one.wins or one.losses):
            values = paired_values(one.metric, runs_a, runs_b, one.better, comparison.missing)
            found[one.metric] = _changed(one, values, runs_a, runs_b)
    return found


def _changed(
    one: MetricComparison,
    values: PairedValues,
    runs_a: dict[CaseKey, list[CaseResult]],
    runs_b: dict[CaseKey, list[CaseResult]],
) -> tuple[ChangedCase, ...]:
    keys = {key[0]: key for key in runs_a if key in runs_b}
    wins, losses = set(one.wins), set(one.losses)
    changed = [
        ChangedCase(
            one.metric,
            case_id,
            "better" if case_id in wins else "worse",
            before,
            after,
            tuple(runs_a[keys[case_id]]),
            tuple(runs_b[keys[case_id]]),
        )
        for case_id, before, after in zip(values.cases, values.a, values.b, strict=True)
        if case_id in wins or case_id in losses
    ]
    return tuple(sorted(changed, key=lambda case: (-abs(case.value_b - case.value_a), case.case_id)))
