"""Tests each question of a rollout on what was observed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

import numpy as np

from kantan_agents.lab.rollout.evidence import (
    Evidence,
    difference_interval,
    mean_difference,
    more_observations,
    relative_increase,
    sample_ratio,
    tail_increase,
)
from kantan_agents.lab.rollout.guard_limits import RolloutGuard
from kantan_agents.lab.rollout.observed.samples import Measure, Sample, Samples
from kantan_agents.lab.rollout.plan import RolloutPlan
from kantan_agents.lab.rollout.verdict.status import ArmFigures, GuardEvidence, MetricEvidence

_MEASURES: Final[Mapping[Literal["error", "cost", "tokens", "latency"], Measure]] = {
    "error": lambda run: float(run.failed),
    "cost": lambda run: run.cost,
    "tokens": lambda run: run.tokens,
    "latency": lambda run: run.seconds,
}


def alarm_level(plan: RolloutPlan) -> float:
    """Return the alpha of one alarm: all of them together have the plan's (Bonferroni).

    The alarms are the guards and "the metric is worse" of each new arm, and the check of the shares.
    """
    of_arm = len(plan.guards) + (plan.metric is not None)
    return plan.alpha / (of_arm * len(plan.new_arms) + 1)


def promotion_level(plan: RolloutPlan) -> float:
    """Return the alpha of "the metric is better" of one new arm; all new arms together have the plan's."""
    return plan.alpha / len(plan.new_arms)


def figures(samples: Samples, plan: RolloutPlan, shares: Mapping[str, float]) -> list[ArmFigures]:
    """Return the figures of each arm.

    Args:
        samples: What was observed.
        plan: The plan.
        shares: The share of each arm now.
    """
    units, scores = samples.assigned(), samples.all_scores()
    errors, costs, tokens, seconds = (
        samples.measure(_MEASURES[kind], settled=False) for kind in ("error", "cost", "tokens", "latency")
    )
    runs = np.bincount([run.arm for run in samples.runs], minlength=len(plan.arms))
    return [
        ArmFigures(
            name,
            shares[name],
            int(runs[number]),
            len(units.of_arm(number)),
            len(scores.of_arm(number)),
            _mean(scores, number),
            _mean(errors, number),
            _mean(costs, number),
            _mean(tokens, number),
            _quantile(seconds, number, 0.5),
            _quantile(seconds, number, 0.95),
        )
        for number, name in enumerate(plan.arms)
    ]


def metric_evidence(samples: Samples, plan: RolloutPlan, number: int) -> MetricEvidence:
    """Return what the scores say about a new arm.

    Args:
        samples: What was observed.
        plan: The plan; it has a metric.
        number: Number of the arm.
    """
    low, high = plan.metric_range
    values, is_new, share = samples.scores().against_control(number, plan.weights[number - 1])
    better = mean_difference(values, is_new, share, lowest=low, highest=high)
    worse = mean_difference(-values, is_new, share, lowest=-high, highest=-low)
    level = promotion_level(plan)
    interval = difference_interval(values, is_new, share, lowest=low, highest=high, alpha=level)
    more = more_observations(values, is_new, share, lowest=low, highest=high, alpha=level)
    return MetricEvidence(
        plan.new_arms[number - 1],
        None if interval is None else _difference(values, is_new, share, interval.low, interval.high),
        None if interval is None else interval.low,
        None if interval is None else interval.high,
        better.p,
        worse.p,
        better.rejects(level),
        worse.rejects(alarm_level(plan)),
        more,
        len(values),
    )


def _difference(values: Any, is_new: Any, share: Any, low: float, high: float) -> float | None:
    """Return the difference of the means, each weighted by the inverse probability of the arm.

    With one share for all, it is the difference of the plain means, as the table of arms shows them. It is
    kept inside the interval, unless that is empty. None if an arm has no value.

    Source: Hajek (1971), the ratio estimator of a mean from a sample with unequal probabilities.
    """
    drawn = (share > 0) & (share < 1)
    values, is_new, share = values[drawn], is_new[drawn], share[drawn]
    if is_new.all() or not is_new.any():
        return None
    new, control = is_new / share, ~is_new / (1 - share)
    difference = values @ new / new.sum() - values @ control / control.sum()
    return float(min(max(difference, low), high)) if low <= high else float(difference)


def guard_evidence(samples: Samples, plan: RolloutPlan, guard: RolloutGuard, number: int) -> GuardEvidence:
    """Return what the runs say about a guard of a new arm.

    Args:
        samples: What was observed.
        plan: The plan.
        guard: The guard.
        number: Number of the arm.
    """
    sample = samples.measure(_MEASURES[guard.kind])
    values, is_new, share = sample.against_control(number, plan.weights[number - 1])
    evidence: Evidence
    if guard.kind == "error":
        evidence = mean_difference(values, is_new, share, lowest=0.0, highest=1.0, margin=guard.margin)
    elif guard.kind == "latency":
        evidence = tail_increase(values, is_new, share, factor=guard.factor, quantile=guard.quantile)
    else:
        evidence = relative_increase(values, is_new, share, factor=guard.factor)
    fired = evidence.rejects(alarm_level(plan))
    return GuardEvidence(plan.new_arms[number - 1], guard.name, guard.limit, evidence.p, fired, len(values))


def ratio_evidence(units: Sample) -> Evidence:
    """Return whether units got new arms with the recorded shares."""
    return sample_ratio(units.arms > 0, units.shares)


def _mean(sample: Sample, arm: int) -> float | None:
    values = sample.of_arm(arm)
    return float(values.mean()) if len(values) else None


def _quantile(sample: Sample, arm: int, quantile: float) -> float | None:
    values = sample.of_arm(arm)
    return float(np.quantile(values, quantile, method="inverted_cdf")) if len(values) else None
