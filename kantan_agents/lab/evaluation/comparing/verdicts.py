"""Verdicts of comparisons, each p adjusted for all of them."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kantan_agents.lab.evaluation.comparing.comparison import Comparison, MetricComparison, Verdict
from kantan_agents.lab.evaluation.statistics import fewest_cases, fewest_cases_at_any_look, holm
from kantan_agents.lab.evaluation.statistics.holm import needed_p


def judged(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons with verdicts; the probability that any is false is at most 1 - level."""
    tested = [one for each in comparisons for one in each.metrics if one.p is not None and not one.reason]
    known = [one.p for one in tested if one.p is not None]
    adjusted = iter(holm(known))
    found = []
    for each in comparisons:
        metrics = []
        for one in each.metrics:
            p = next(adjusted) if one.p is not None and not one.reason else None
            others = [each_p for test, each_p in zip(tested, known, strict=True) if test is not one]
            fewest = _fewest(one, others, each) if one.fewest else 0
            metrics.append(attrs.evolve(one, p_adjusted=p, fewest=fewest, verdict=_verdict(one, p, each)))
        found.append(attrs.evolve(each, metrics=tuple(metrics)))
    return found


def _fewest(one: MetricComparison, others: Sequence[float], of: Comparison) -> int:
    alpha = needed_p(others, 1.0 - of.level)
    if of.looks == "one":
        return fewest_cases(alpha=alpha)
    # Without bounds, which gives no interval, it takes more.
    return fewest_cases_at_any_look(bound=None if one.low is None else 1.0, alpha=alpha)


def _verdict(one: MetricComparison, p: float | None, of: Comparison) -> Verdict:
    if p is None or p > 1 - of.level or not one.difference:
        return "cannot tell"
    if one.low is not None and one.high is not None and one.low <= 0 <= one.high:
        return "cannot tell"
    return "better" if (one.difference > 0) == (one.better == "higher") else "worse"
