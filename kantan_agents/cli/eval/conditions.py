"""The conditions of ``--fail-if``, which give a comparison an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, cast

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.nearest import nearest

if TYPE_CHECKING:
    from kantan_agents.lab.evaluation import Comparison, MetricComparison

_OPTION: Final = "--fail-if"
_KINDS: Final = ("worse", "not-better")


@attrs.frozen
class Condition:
    """A condition that a comparison must not meet.

    Attributes:
        kind: ``"worse"``, or ``"not-better"``, which includes "cannot tell".
        metric: The metric.
    """

    kind: Literal["worse", "not-better"]
    metric: str

    def is_met(self, one: MetricComparison) -> bool:
        """Return whether a metric meets it; also if no case has a score, as nothing was checked then."""
        if not one.cases:
            return True
        return one.verdict == "worse" if self.kind == "worse" else one.verdict != "better"

    def __str__(self) -> str:
        return f"{self.kind}:{self.metric}"


def read_conditions(entries: Sequence[str]) -> list[Condition]:
    """Return the conditions that ``worse:METRIC`` and ``not-better:METRIC`` describe.

    Raises:
        InvalidOptionError: E75, an entry cannot be read.
    """
    conditions = []
    for entry in entries:
        kind, _, metric = entry.partition(":")
        if kind not in _KINDS or not metric:
            reason = f"must be worse:METRIC or not-better:METRIC, not {entry!r}"
            raise InvalidOptionError(option=_OPTION, reason=reason)
        conditions.append(Condition(cast("Literal['worse', 'not-better']", kind), metric))
    return conditions


def check_conditions(conditions: Sequence[Condition], comparison: Comparison) -> None:
    """Check that all metrics of conditions are compared.

    Raises:
        InvalidOptionError: E75, one is not.
    """
    names = [one.metric for one in comparison.metrics]
    for condition in conditions:
        if condition.metric not in names:
            near = nearest(condition.metric, names)
            hint = f"did you mean {near!r}?" if near is not None else f"there are {', '.join(names)}"
            reason = f"{condition}: this metric is not compared; {hint}"
            raise InvalidOptionError(option=_OPTION, reason=reason)


def met_conditions(
    conditions: Sequence[Condition], comparison: Comparison
) -> list[tuple[Condition, MetricComparison]]:
    """Return the conditions that a comparison meets, each with the metric that meets it."""
    return [(one, comparison[one.metric]) for one in conditions if one.is_met(comparison[one.metric])]
