"""Turns a rollout's metrics into a verdict: continue, promote or stop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import Final

from kantan_agents.lab.rollout.assignment import Assignment
from kantan_agents.lab.rollout.observed.read_scores import RUBRIC
from kantan_agents.lab.rollout.observed.samples import Samples
from kantan_agents.lab.rollout.plan import RolloutPlan
from kantan_agents.lab.rollout.state.rows import RolloutState
from kantan_agents.lab.rollout.verdict.evidence_about import (
    alarm_level,
    figures,
    guard_evidence,
    metric_evidence,
    ratio_evidence,
)
from kantan_agents.lab.rollout.verdict.status import (
    ArmMetrics,
    GuardEvidence,
    MetricEvidence,
    RolloutStatus,
    Verdict,
)

_ENOUGH_RUNS: Final = 20  # a metric that none of so many runs has is probably misspelled


def judge_rollout(state: RolloutState, samples: Samples) -> RolloutStatus:
    """Return the status of a rollout."""
    plan = state.plan
    numbers = range(1, len(plan.arms))
    arms = figures(samples, plan, shares_of(state))
    metric = [metric_evidence(samples, plan, number) for number in numbers] if plan.metric is not None else []
    measured = samples.measure({guard.kind for guard in plan.guards})
    guards = [
        guard_evidence(measured[guard.kind], plan, guard, number)
        for number in numbers
        for guard in plan.guards
    ]
    level = alarm_level(plan)
    ratio = ratio_evidence(samples.assigned())
    is_lopsided = ratio_evidence(samples.scores()).rejects(level)
    verdict, arm, reason = _verdict(
        plan, arms, metric, guards, is_broken=ratio.rejects(level), is_lopsided=is_lopsided
    )
    warnings = tuple(_warnings(plan, arms, samples, is_lopsided=is_lopsided))
    return RolloutStatus(state, arms, metric, guards, ratio.p, verdict, arm, reason, warnings)


def shares_of(state: RolloutState) -> dict[str, float]:
    """Return the current share of each arm."""
    plan = state.plan
    if state.status == "promoted":
        return {name: float(name == state.arm) for name in plan.arms}
    share = state.share if state.status == "running" else 0.0
    assignment = Assignment(state.name, plan.weights)
    return {name: assignment.share_of(number, share) for number, name in enumerate(plan.arms)}


def _verdict(
    plan: RolloutPlan,
    arms: Sequence[ArmMetrics],
    metric: Sequence[MetricEvidence],
    guards: Sequence[GuardEvidence],
    *,
    is_broken: bool,
    is_lopsided: bool,
) -> tuple[Verdict, str | None, str]:
    for guard in guards:
        if guard.has_fired:
            reason = (
                f"{guard.arm} exceeds the limit {_limit(guard)} of {guard.guard} "
                f"({_p(guard.p)}, {guard.units:,} units)"
            )
            return "stop", guard.arm, reason
    for one in metric:
        if one.is_worse:
            reason = f"{one.arm} is worse than {plan.control} on {plan.metric} {_by(one, one.p_worse)}"
            return "stop", one.arm, reason
    if is_broken:
        reason = (
            "the arms do not have the units that their shares give them, so no figure here can be trusted; "
            "are runs of one arm lost before they are recorded?"
        )
        return "stop", None, reason
    better = [one for one in metric if one.is_better]
    if better and is_lopsided:
        return "continue", None, "some runs have no score, and not alike in all arms; see the warning"
    if better:
        best = max(better, key=lambda one: one.difference or 0.0)
        reason = f"{best.arm} is better than {plan.control} on {plan.metric} {_by(best, best.p_better)}"
        return "promote", best.arm, reason
    return "continue", None, _not_yet(plan, arms, metric)


def _not_yet(plan: RolloutPlan, arms: Sequence[ArmMetrics], metric: Sequence[MetricEvidence]) -> str:
    if not any(arm.runs for arm in arms):
        return "no run has ended yet"
    if plan.metric is None:
        return "no guard has fired; without a metric, promotion is your decision"
    if not any(arm.scored for arm in arms):
        return f"no run has a score of {plan.metric} yet"
    leading = max(metric, key=lambda one: one.difference or 0.0)
    known = f"cannot tell yet whether {leading.arm} is better than {plan.control} on {plan.metric}"
    if leading.difference is None:
        return f"{known}: units of both arms must have a score"
    so_far = f"{known}: {leading.difference:+.3g} ({interval_text(leading)})"
    if leading.more_units is None:
        return so_far
    return f"{so_far}; about {leading.more_units:,} more units would show this difference"


def _warnings(
    plan: RolloutPlan, arms: Sequence[ArmMetrics], samples: Samples, *, is_lopsided: bool
) -> Iterator[str]:
    runs = sum(arm.runs for arm in arms)
    units = sum(arm.units for arm in arms)
    if plan.metric is not None and runs >= _ENOUGH_RUNS:
        how = "run a judge_agent" if plan.metric == RUBRIC else "call record_score"
        if not any(arm.scored for arm in arms):
            yield f"none of {runs:,} runs has a score of {plan.metric!r}; {how}, or choose another metric"
    if is_lopsided:
        listed = ", ".join(f"{arm.name} {arm.scored:,} of {arm.units:,}" for arm in arms)
        yield (
            f"units of some arms have a score more often than those of others ({listed}), so their scores "
            "cannot be compared: units without a score are left out"
        )
    for reason, count in samples.not_drawn.most_common():
        if reason != "resumed":
            yield f"{count:,} runs got the control without being drawn: {reason}"
    yield from _not_counted(plan, samples)
    kinds = {guard.kind for guard in plan.guards}
    if units >= _ENOUGH_RUNS and "cost" in kinds and all(arm.mean_cost is None for arm in arms):
        yield "no run has a known cost, so this guard is blind; give prices, and record requests"
    if units >= _ENOUGH_RUNS and "tokens" in kinds and all(arm.mean_tokens is None for arm in arms):
        yield "no run has a known number of tokens, so this guard is blind; record requests"


def _not_counted(plan: RolloutPlan, samples: Samples) -> Iterator[str]:
    under_way = samples.under_way()
    if under_way:
        yield (
            f"runs under way: {under_way:,}; until they end, for ten minutes at most, those of new arms "
            f"count as good and those of {plan.control} as bad"
        )
    never_ended = samples.never_ended()
    if never_ended:
        yield (
            f"runs that have not ended for ten minutes: {never_ended:,}; guards count them as failed, and "
            "the metrics of the arms leave them out"
        )
    certain, of_units = samples.not_compared()
    if certain:
        yield (
            f"runs that are not compared: {certain:,}, units: {of_units:,}; their arm was certain, because "
            "all units had the same, or the unit had a new arm before the share grew"
        )
    waiting, until = samples.held_up()
    if waiting:
        moment = datetime.fromtimestamp(until, timezone.utc)
        yield (
            f"{waiting:,} units with a score are not counted yet: an earlier unit has none, which may come "
            f"until {moment:%Y-%m-%d %H:%M} UTC (score_within)"
        )
    if samples.outside:
        low, high = plan.metric_range
        yield f"{samples.outside:,} scores are outside of metric_range, {low:g} to {high:g}, and do not count"


def _limit(guard: GuardEvidence) -> str:
    return guard.limit if isinstance(guard.limit, str) else f"+{guard.limit:g}"


def interval_text(one: MetricEvidence) -> str:
    """Return the interval of a difference as a string."""
    if one.low is None or one.high is None:
        return "no interval"
    if one.low > one.high:  # the interval only narrows, so it may become empty
        return "no interval: it has changed over time"
    return f"{one.low:+.3g} to {one.high:+.3g}"


def _by(one: MetricEvidence, p: float) -> str:
    if one.difference is None:
        return f"({_p(p)})"
    return f"by {abs(one.difference):.3g} ({interval_text(one)}, {_p(p)})"


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p {value:.3f}"  # noqa: PLR2004
