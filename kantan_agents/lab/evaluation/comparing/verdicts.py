"""Gives the verdicts of comparisons that are made together, each p adjusted for all of them."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kantan_agents.lab.evaluation.comparing.comparison import Comparison, MetricComparison, Verdict
from kantan_agents.lab.evaluation.statistics import holm


def judged(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons with their verdicts: the probability that any is false is at most 1 - level.

    Args:
        comparisons: Of one level, each p not adjusted yet.
    """
    known = [one.p for each in comparisons for one in each.metrics if one.p is not None and not one.reason]
    adjusted = iter(holm(known))
    found = []
    for each in comparisons:
        metrics = []
        for one in each.metrics:
            p = next(adjusted) if one.p is not None and not one.reason else None
            metrics.append(attrs.evolve(one, p_adjusted=p, verdict=_verdict(one, p, each)))
        found.append(attrs.evolve(each, metrics=tuple(metrics)))
    return found


def _verdict(one: MetricComparison, p: float | None, of: Comparison) -> Verdict:
    if p is None or p > 1 - of.level or not one.difference:
        return "cannot tell"
    if one.low is not None and one.high is not None and one.low <= 0 <= one.high:
        return "cannot tell"
    return "better" if (one.difference > 0) == (one.better == "higher") else "worse"
