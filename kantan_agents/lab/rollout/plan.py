"""The stored definition of a rollout, fixed once the rollout has started."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import attrs

from kantan_agents.errors import InvalidRolloutError
from kantan_agents.lab.experiment.prices import Prices
from kantan_agents.lab.rollout.guard_limits import RolloutGuard, checked_guards

_SUM: Final = 1e-9  # the rounding error of a sum of decimal fractions


_PLURALS: Final = {
    "agent": "agents",
    "arms": "arms",
    "weights": "shares",
    "ramp": "steps of its ramp",
    "unit": "units",
    "metric": "metrics",
    "metric_range": "ranges of its metric",
    "score_within": "times for scores",
    "guards": "guards",
    "alpha": "levels of alpha",
}
"""Parts that may differ, as words after "other"; prices may."""


@attrs.frozen
class RolloutPlan:
    """The stored definition of a rollout; prices are not part of the identity."""

    agent: str
    arms: Mapping[str, Mapping[str, Any]]
    weights: Sequence[float]
    ramp: Sequence[float]
    unit: str
    metric: str | None
    metric_range: tuple[float, float]
    score_within: float
    guards: Sequence[RolloutGuard]
    alpha: float
    prices: Prices = attrs.field(eq=False)

    @property
    def control(self) -> str:
        """Name of the control."""
        return next(iter(self.arms))

    @property
    def new_arms(self) -> tuple[str, ...]:
        """Names of the new arms."""
        return tuple(self.arms)[1:]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON data."""
        return {
            "agent": self.agent,
            "arms": {name: dict(arm) for name, arm in self.arms.items()},
            "weights": list(self.weights),
            "ramp": list(self.ramp),
            "unit": self.unit,
            "metric": self.metric,
            "metric_range": list(self.metric_range),
            "score_within": self.score_within,
            "guards": {guard.name: guard.limit for guard in self.guards},
            "alpha": self.alpha,
            "prices": {model: list(pair) for model, pair in self.prices.of_models.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RolloutPlan:
        """Raise KeyError, TypeError or ValueError for other data."""
        low, high = data["metric_range"]
        return cls(
            agent=data["agent"],
            arms=dict(data["arms"]),
            weights=tuple(data["weights"]),
            ramp=tuple(data["ramp"]),
            unit=data["unit"],
            metric=data["metric"],
            metric_range=(float(low), float(high)),
            score_within=float(data["score_within"]),
            guards=checked_guards(data["guards"]),
            alpha=float(data["alpha"]),
            prices=Prices({model: (pair[0], pair[1]) for model, pair in data["prices"].items()}),
        )

    def difference(self, other: RolloutPlan) -> str | None:
        """Return the difference of another plan, as words after "other"."""
        one, two = self.to_dict(), other.to_dict()
        if list(one["arms"]) != list(two["arms"]):
            return "arms"
        return next((_PLURALS[name] for name in _PLURALS if one[name] != two[name]), None)


def checked_shares(
    shares: Any, ramp: Any, arms: Sequence[str]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the proportions of new arms, and the ramp."""
    control, *new = arms
    if shares is None:
        if ramp is None:
            raise InvalidRolloutError(option="shares", reason=f"is missing: {_example(arms)}")
        return tuple(1.0 / len(new) for _ in new), _checked_ramp(ramp)
    _check_shares(shares, arms)
    total = round(1 - shares[control], 12)
    steps = _checked_ramp((total, 1.0) if ramp is None else ramp)
    if abs(steps[0] - total) > _SUM:
        reason = f"must begin with the share of the new arms, {total:.6g}, not {steps[0]:.6g}"
        raise InvalidRolloutError(option="ramp", reason=reason)
    if total == 0:
        return tuple(1.0 / len(new) for _ in new), steps
    for name in new:
        if shares[name] == 0:
            reason = f"of {name!r} must be above 0, or that of all new arms must be 0"
            raise InvalidRolloutError(option="shares", reason=reason)
    return tuple(float(shares[name]) / total for name in new), steps


def _check_shares(shares: Any, arms: Sequence[str]) -> None:
    if not isinstance(shares, Mapping) or set(shares) != set(arms):
        reason = f"must have the share of each arm, such as {_example(arms)}, not {shares!r}"
        raise InvalidRolloutError(option="shares", reason=reason)
    for name, share in shares.items():
        if not _is_share(share):
            reason = f"of {name!r} must be a number from 0 to 1, not {share!r}"
            raise InvalidRolloutError(option="shares", reason=reason)
    if abs(math.fsum(shares.values()) - 1) > _SUM:
        reason = f"must sum to 1, not {math.fsum(shares.values()):.6g}"
        raise InvalidRolloutError(option="shares", reason=reason)


def _checked_ramp(ramp: Any) -> tuple[float, ...]:
    steps = tuple(ramp) if isinstance(ramp, (list, tuple)) else ()
    grows = all(_is_share(step) for step in steps) and all(one < other for one, other in pairwise(steps))
    if not steps or not grows:
        reason = f"must be growing numbers from 0 to 1, such as (0.1, 0.5, 1), not {ramp!r}"
        raise InvalidRolloutError(option="ramp", reason=reason)
    return tuple(float(step) for step in steps)


def _is_share(share: Any) -> bool:
    return isinstance(share, (int, float)) and not isinstance(share, bool) and 0 <= share <= 1


def _example(arms: Sequence[str]) -> str:
    control, *new = arms
    each = round(0.1 / len(new), 4)
    return str({control: 0.9, **dict.fromkeys(new, each)})
