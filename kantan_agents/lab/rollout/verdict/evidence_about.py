"""Tests each question of a rollout on the observed runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from kantan_agents.lab.betting.wealth import threshold
from kantan_agents.lab.rollout.evidence import (
    Evidence,
    difference_interval,
    mean_difference,
    more_observations,
    sample_ratio,
)
from kantan_agents.lab.rollout.evidence.bets import strongest
from kantan_agents.lab.rollout.evidence.differences import difference_bets
from kantan_agents.lab.rollout.evidence.relative import relative_bets
from kantan_agents.lab.rollout.evidence.tail import tail_bets
from kantan_agents.lab.rollout.guard_limits import RolloutGuard
from kantan_agents.lab.rollout.observed.samples import Sample, Samples, values_of
from kantan_agents.lab.rollout.plan import RolloutPlan
from kantan_agents.lab.rollout.verdict.status import ArmMetrics, GuardEvidence, MetricEvidence


def alarm_level(plan: RolloutPlan) -> float:
    """Return the alpha of one alarm; all alarms together have the plan's (Bonferroni).

    The alarms are the guards and "the metric is worse" of each new arm, and the check of the shares.
    """
    of_arm = len(plan.guards) + (plan.metric is not None)
    return plan.alpha / (of_arm * len(plan.new_arms) + 1)


def promotion_level(plan: RolloutPlan) -> float:
    """Return the alpha of "the metric is better" of one new arm."""
    return plan.alpha / len(plan.new_arms)


def figures(samples: Samples, plan: RolloutPlan, shares: Mapping[str, float]) -> list[ArmMetrics]:
    """Return the metrics of each arm."""
    units, scores = samples.units(), samples.all_scores()
    arms = np.array([run.arm for run in samples.runs], dtype=np.int64)
    failed, costs, tokens, seconds = (
        values_of(samples.runs, kind) for kind in ("error", "cost", "tokens", "latency")
    )
    found = []
    for number, name in enumerate(plan.arms):
        own, scored = arms == number, scores.values[scores.arms == number]
        found.append(
            ArmMetrics(
                name,
                shares[name],
                int(own.sum()),
                units[number],
                len(scored),
                _mean(scored),
                _mean(failed[own]),
                _mean(costs[own]),
                _mean(tokens[own]),
                _quantile(seconds[own], 0.5),
                _quantile(seconds[own], 0.95),
            )
        )
    return found


def metric_evidence(samples: Samples, plan: RolloutPlan, number: int) -> MetricEvidence:
    """Return the evidence of the scores about a new arm."""
    low, high = plan.metric_range
    sample = samples.scores()
    chosen, share = sample.against_control(number, plan.weights[number - 1])
    values, is_new = sample.values[chosen], sample.arms[chosen] == number
    better = mean_difference(values, is_new, share, lowest=low, highest=high)
    mirrored = attrs.evolve(sample.later, values=-sample.later.values)
    bets = difference_bets(-values, is_new, share, lowest=-high, highest=-low)
    worse = strongest(bets, -values, np.ones(len(values), dtype=np.bool_), mirrored, chosen)
    level = promotion_level(plan)
    interval = difference_interval(values, is_new, share, lowest=low, highest=high, alpha=level)
    more = more_observations(values, is_new, share, lowest=low, highest=high, alpha=level)
    return MetricEvidence(
        plan.new_arms[number - 1],
        None if interval is None else _difference(values, is_new, share, interval.low, interval.high),
        None if interval is None else interval.low,
        None if interval is None else interval.high,
        better.p,
        math.exp(-worse),
        better.rejects(level),
        worse >= threshold(alarm_level(plan)),
        more,
        len(values),
    )


def _difference(values: Any, is_new: Any, share: Any, low: float, high: float) -> float | None:
    """Return the difference of the means, each weighted by the inverse probability of the arm.

    It stays inside the interval, unless that is empty.

    Source: Hajek (1971), the ratio estimator of a mean from a sample with unequal probabilities.
    """
    drawn = (share > 0) & (share < 1)
    values, is_new, share = values[drawn], is_new[drawn], share[drawn]
    if is_new.all() or not is_new.any():
        return None
    new, control = is_new / share, ~is_new / (1 - share)
    difference = values @ new / new.sum() - values @ control / control.sum()
    return float(min(max(difference, low), high)) if low <= high else float(difference)


def guard_evidence(sample: Sample, plan: RolloutPlan, guard: RolloutGuard, number: int) -> GuardEvidence:
    """Return the evidence about a guard of an arm."""
    chosen, share = sample.against_control(number, plan.weights[number - 1])
    values, is_new = sample.values[chosen], sample.arms[chosen] == number
    counts = ~np.isnan(values)
    values = np.where(counts, values, 0.0)
    times = None if sample.times is None else (sample.times[0][chosen], sample.times[1][chosen])
    if guard.kind == "error":
        bets = difference_bets(
            values, is_new, share, lowest=0.0, highest=1.0, margin=guard.margin, times=times
        )
    elif guard.kind == "latency":
        bets = tail_bets(values, is_new, share, factor=guard.factor, quantile=guard.quantile, times=times)
    else:
        bets = relative_bets(values, is_new, share, factor=guard.factor, times=times)
    found = strongest(bets, values, counts, sample.later, chosen)
    fired = found >= threshold(alarm_level(plan))
    units = int((counts & bets.seen.used).sum())
    return GuardEvidence(plan.new_arms[number - 1], guard.name, guard.limit, math.exp(-found), fired, units)


def ratio_evidence(units: Sample) -> Evidence:
    """Return whether users got new arms with the recorded shares."""
    return sample_ratio(units.arms > 0, units.chances)


def _mean(values: npt.NDArray[np.float64]) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def _quantile(values: npt.NDArray[np.float64], quantile: float) -> float | None:
    known = values[~np.isnan(values)]
    return float(np.quantile(known, quantile, method="inverted_cdf")) if len(known) else None
