"""The metrics of a rollout, and their meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import attrs

from kantan_agents.lab.experiment.flat_rows import Row, Tabular, flat
from kantan_agents.lab.experiment.markdown import markdown_list, markdown_table, markdown_text
from kantan_agents.lab.rollout.state.rows import RolloutState

Verdict = Literal["continue", "promote", "stop"]
_RESULTS: Final = {True: "exceeded", False: "within, so far"}


@attrs.frozen
class ArmMetrics:
    """The metrics of one arm's finished runs.

    Attributes:
        name: Name of the arm.
        share: Its current share, 0 to 1.
        runs: Number of finished runs.
        units: Number of users that got this arm, even in an active run; a user may have had several.
        scored: Number of users with a score of the metric, once for each time that their arm was assigned.
        mean_score: Mean of their first scores; None without any.
        failed: The share of runs that have failed or were canceled; None without any.
        mean_cost: Mean cost of a run; None if no cost is known.
        mean_tokens: Mean number of tokens of a run; None if none is known.
        latency_p50: Median duration of a run that did not fail, in seconds.
        latency_p95: Its 95th percentile.
    """

    name: str
    share: float
    runs: int
    units: int
    scored: int
    mean_score: float | None
    failed: float | None
    mean_cost: float | None
    mean_tokens: float | None
    latency_p50: float | None
    latency_p95: float | None


@attrs.frozen
class MetricEvidence:
    """The evidence of the scores about a new arm and the control.

    Attributes:
        arm: Name of the new arm.
        difference: The new arm's mean minus the control's; None if unknown.
        low: Lower bound of the interval, which holds whenever you look.
        high: Upper bound.
        p_better: Anytime-valid p-value against "not better than the control".
        p_worse: The same against "not worse".
        is_better: Whether it is better than the control.
        is_worse: Whether it is worse.
        more_units: Estimated number of additional users with a score to show the difference; None if unknown.
        units: Number of users of both arms whose scores count so far.
    """

    arm: str
    difference: float | None
    low: float | None
    high: float | None
    p_better: float
    p_worse: float
    is_better: bool
    is_worse: bool
    more_units: int | None
    units: int


@attrs.frozen
class GuardEvidence:
    """The evidence of the runs about one guard of a new arm.

    Attributes:
        arm: Name of the new arm.
        guard: Name of the guard.
        limit: Its limit, in its original form.
        p: Anytime-valid p-value against "within the limit".
        has_fired: Whether the limit is exceeded.
        units: Number of users of both arms whose first run has a value, once for each assignment of their
            arm.
    """

    arm: str
    guard: str
    limit: str | float
    p: float
    has_fired: bool
    units: int


@attrs.frozen
class RolloutStatus(Tabular):
    """The metrics of a rollout, and their meaning.

    Attributes:
        state: The stored rollout.
        arms: The metrics of each arm, the control first.
        metric: The evidence about the metric, for each new arm.
        guards: The evidence about each guard, for each new arm.
        p_ratio: Anytime-valid p-value against "the users were assigned with these shares".
        verdict: ``"promote"`` if a new arm is better and no guard has fired; ``"stop"`` if a guard has fired,
            a new arm is worse, or the arms lack users; otherwise ``"continue"``.
        arm: The arm that the verdict is about.
        reason: The reason, in a sentence.
        warnings: Caveats about these metrics.
    """

    state: RolloutState
    arms: Sequence[ArmMetrics]
    metric: Sequence[MetricEvidence]
    guards: Sequence[GuardEvidence]
    p_ratio: float
    verdict: Verdict
    arm: str | None
    reason: str
    warnings: Sequence[str]

    @property
    def name(self) -> str:
        """Name of the rollout."""
        return self.state.name

    @property
    def is_alarm(self) -> bool:
        """Whether the verdict is ``"stop"``, so that a running rollout returns to the control."""
        return self.verdict == "stop"

    def rows(self) -> list[Row]:
        """Return a row for each arm, with the evidence about it; see ``Tabular.rows``."""
        found = []
        for arm in self.arms:
            guards = {one.guard: attrs.asdict(one) for one in self.guards if one.arm == arm.name}
            metric = next((attrs.asdict(one) for one in self.metric if one.arm == arm.name), {})
            own = {"rollout": self.name, "verdict": self.verdict, "reason": self.reason}
            found.append(flat({**own, **attrs.asdict(arm), "metric_evidence": metric, "guards": guards}))
        return found

    def to_markdown(self) -> str:
        """Return the verdict, the arms and the guards as Markdown, for a comment."""
        lines = [f"**{self.verdict}**: {markdown_text(self.reason, 500)}", ""]
        rows = [
            [
                arm.name,
                f"{100 * arm.share:.4g}%",
                f"{arm.units:,}",
                f"{arm.runs:,}",
                "" if arm.mean_score is None else f"{arm.mean_score:.3g}",
                "" if arm.failed is None else f"{arm.failed:.1%}",
            ]
            for arm in self.arms
        ]
        lines += markdown_table([self.name, "share", "units", "runs", "score", "failed"], rows)
        if self.guards:
            guards = [
                [
                    one.guard,
                    one.arm,
                    f"{one.limit}",
                    f"{one.p:.3f}",
                    _RESULTS[one.has_fired],
                ]
                for one in self.guards
            ]
            lines += ["", *markdown_table(["guard", "arm", "limit", "p", "result"], guards)]
        if self.warnings:
            lines += ["", *markdown_list(self.warnings, len(self.warnings))]
        return "\n".join(lines) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return the status as JSON data."""
        state = self.state
        return {
            "rollout": state.name,
            "agent": state.plan.agent,
            "status": state.status,
            "step": state.step,
            "share": state.share,
            "promoted_arm": state.arm,
            "verdict": self.verdict,
            "arm": self.arm,
            "reason": self.reason,
            "warnings": list(self.warnings),
            "p_ratio": self.p_ratio,
            "arms": [attrs.asdict(arm) for arm in self.arms],
            "metric": state.plan.metric,
            "metric_evidence": [attrs.asdict(one) for one in self.metric],
            "guards": [attrs.asdict(one) for one in self.guards],
            "alpha": state.plan.alpha,
        }


def evidence_of(status: RolloutStatus) -> Mapping[str, Any]:
    """Return the part of a status that the history stores."""
    data = status.to_dict()
    return {key: data[key] for key in ("verdict", "reason", "arms", "metric_evidence", "guards", "p_ratio")}
