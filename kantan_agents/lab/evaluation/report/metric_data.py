"""The data of a metric on the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from kantan_agents.lab.evaluation.comparing.changed_cases import ChangedCase, changed_cases
from kantan_agents.lab.evaluation.comparing.comparison import Comparison, MetricComparison, Verdict
from kantan_agents.lab.evaluation.comparing.paired_values import PairedValues, paired_values, runs_of_cases
from kantan_agents.lab.evaluation.experiment.results import VariantResults

MARKS: Final[Mapping[Verdict, str]] = {"better": "▲", "worse": "▼", "cannot tell": "●"}
"""The sign of each verdict, distinct by shape as well as color."""
_UNBOUNDED: Final = ("latency", "tokens", "cost")


@attrs.frozen
class MetricData:
    """The data of a metric on the page; ``changed`` starts with the largest change."""

    compared: MetricComparison
    values: PairedValues
    changed: tuple[ChangedCase, ...]

    @property
    def is_score(self) -> bool:
        """Whether all values are from 0 to 1."""
        if self.compared.metric in _UNBOUNDED:
            return False
        return all(0 <= value <= 1 for value in (*self.values.a, *self.values.b))


def metric_data(comparison: Comparison, a: VariantResults, b: VariantResults) -> list[MetricData]:
    """Return the data of each metric of a comparison."""
    runs_a, runs_b = runs_of_cases(a), runs_of_cases(b)
    changed = changed_cases(comparison, a, b)
    return [
        MetricData(
            one,
            paired_values(one.metric, runs_a, runs_b, one.better, comparison.missing),
            changed.get(one.metric, ()),
        )
        for one in comparison.metrics
    ]
