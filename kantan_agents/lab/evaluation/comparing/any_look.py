"""Comparisons that hold at any look, while cases are added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from kantan_agents.lab.evaluation.comparing.comparison import MetricComparison
from kantan_agents.lab.evaluation.comparing.how import How
from kantan_agents.lab.evaluation.comparing.paired_values import FIGURES, PairedValues
from kantan_agents.lab.evaluation.statistics import any_look, more_cases_at_any_look

# Equal up to rounding: means of repeats are sums divided by their number.
_EQUAL: Final = 1e-12
_NO_WORST: Final = (
    "at any look, what a run without a score counts as must not depend on later scores; "
    "give scores from 0 to 1, or ignore missing ones"
)
_NO_INTERVAL: Final = "at any look, one takes scores from 0 to 1 whose difference has not changed meanwhile"


def at_any_look(
    one: MetricComparison, values: PairedValues, order: Mapping[str, int], how: How
) -> MetricComparison:
    """Return a comparison whose p and interval hold at any look, with the p not yet adjusted.

    Without bounds, a missing score has no worst value that would hold at all looks, so there is no verdict.
    If the evidence contradicts the direction of the mean, p is 1.
    """
    if not values.cases:
        return one
    bound = 1.0 if _is_share(values) else None
    if bound is None and values.worst is not None:
        nothing: dict[str, Any] = dict.fromkeys(("low", "high", "p", "detectable", "more_cases"))
        return attrs.evolve(one, **nothing, reason=_NO_WORST, no_interval=_NO_WORST, fewest=0)
    places = sorted(range(len(values.cases)), key=lambda place: order[values.cases[place]])
    scale = max(map(abs, (*values.a, *values.b)))
    differences = [values.b[place] - values.a[place] for place in places]
    units = (
        [0.0 if abs(each) <= _EQUAL * scale else each for each in differences],
        [values.conversations[place] for place in places],
    )
    found = any_look(*units, bound=bound, level=how.level)
    # Assumes the adjustment of the least p: no more is known before.
    adjusted = 1.0 - (1.0 - how.level) / how.tests
    more = more_cases_at_any_look(units[0], one.wanted or 0.0, units[1], bound=bound, level=adjusted)
    interval = found.interval if found.interval is None or found.interval.low <= found.interval.high else None
    # If the difference has changed while cases were added, the evidence may contradict the mean.
    is_evidence = found.direction * found.mean > 0 and interval == found.interval
    return attrs.evolve(
        one,
        difference=found.mean,
        low=None if interval is None else interval.low,
        high=None if interval is None else interval.high,
        p=found.p if is_evidence else 1.0,
        detectable=None,
        more_cases=more,
        no_interval=None if interval is not None else _NO_INTERVAL,
    )


def _is_share(values: PairedValues) -> bool:
    is_score = values.metric == "failed" or values.metric not in FIGURES
    return is_score and all(0 <= value <= 1 for value in (*values.a, *values.b))
