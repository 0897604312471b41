"""Rollouts with a known truth, in which the tests of a rollout are tried."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.situations import Floats, Random
from kantan_agents.lab.rollout.evidence import Evidence, mean_difference, relative_increase, tail_increase

Flags = npt.NDArray[np.bool_]

SHARES: dict[str, Callable[[int], Floats]] = {
    "10 %": lambda size: np.full(size, 0.1),
    "50 %": lambda size: np.full(size, 0.5),
    "ramp": lambda size: np.repeat([0.1, 0.5, 1.0], [size * 3 // 10, size * 5 // 10, size - size * 8 // 10]),
}
"""The share of the new arm over time; the ramp has 10 %, then 50 %, and 100 % for the last fifth."""

COST_FACTOR, LATENCY_FACTOR = 1.1, 1.2


class Metric(NamedTuple):
    """What each unit gives.

    Attributes:
        name: Of which kind it is.
        draw: Draws a value for each level. The level is the mean, or the scale of a heavy tail.
        levels: The level of the control at the beginning and at the end, if it drifts; else it is in the
            middle.
        variance: The variance at a level.
    """

    name: str
    draw: Callable[[Random, Floats], Floats]
    levels: tuple[float, float]
    variance: Callable[[float], float]

    def control(self, size: int, *, drifts: bool) -> Floats:
        """Return the level of the control for each of so many units."""
        middle = sum(self.levels) / 2.0
        return np.linspace(*self.levels, size) if drifts else np.full(size, middle)


class Guard(NamedTuple):
    """A test with its fixed settings.

    Attributes:
        name: What it guards against, or hopes for.
        metric: What it is about.
        test: The test, of values, arms and shares.
        allowed: From the level of the control to the worst level of the new arm that is still allowed.
        factor: The t-test compares the new arm with so many times the control; None if it cannot.
    """

    name: str
    metric: Metric
    test: Callable[[Floats, Flags, Floats], Evidence]
    allowed: Callable[[Floats], Floats] = np.copy
    factor: float | None = 1.0


def _yes_or_no(random: Random, level: Floats) -> Floats:
    return (random.random(len(level)) < level).astype(np.float64)


def _graded(random: Random, level: Floats) -> Floats:
    return random.beta(6.0 * level, 6.0 * (1.0 - level))


def _heavy(random: Random, level: Floats) -> Floats:
    result: Floats = level * random.lognormal(0.0, 1.0, len(level))
    return result


YES_OR_NO = Metric("yes or no", _yes_or_no, (0.55, 0.85), lambda level: level * (1.0 - level))
GRADED = Metric("graded, 0 to 1", _graded, (0.45, 0.75), lambda level: level * (1.0 - level) / 7.0)
HEAVY = Metric("heavy-tailed", _heavy, (0.5, 1.5), lambda level: level**2 * float(np.exp(2.0) - np.exp(1.0)))


def better(values: Floats, is_new: Flags, share: Floats) -> Evidence:
    """Return the evidence that the new arm has the higher mean."""
    return mean_difference(values, is_new, share, lowest=0.0, highest=1.0)


def worse(values: Floats, is_new: Flags, share: Floats) -> Evidence:
    """Return the evidence that the new arm has the lower mean."""
    return mean_difference(-values, is_new, share, lowest=-1.0, highest=0.0)


def dearer(values: Floats, is_new: Flags, share: Floats) -> Evidence:
    """Return the evidence that the new arm's mean is too high a multiple of the control's."""
    return relative_increase(values, is_new, share, factor=COST_FACTOR)


def slower(values: Floats, is_new: Flags, share: Floats) -> Evidence:
    """Return the evidence that the new arm's 95 % quantile is too high a multiple of the control's."""
    return tail_increase(values, is_new, share, factor=LATENCY_FACTOR)


GUARDS = (
    Guard("score is better", YES_OR_NO, better),
    Guard("score is worse", YES_OR_NO, worse),
    Guard("score is better", GRADED, better),
    Guard("score is worse", GRADED, worse),
    Guard("cost", HEAVY, dearer, lambda level: COST_FACTOR * level, COST_FACTOR),
    Guard("latency", HEAVY, slower, lambda level: LATENCY_FACTOR * level, None),
)
"""All are tried at the very edge of what is allowed, where false alarms are most frequent."""


def drawn(
    random: Random, metric: Metric, share: Floats, control: Floats, new: Floats
) -> tuple[Floats, Flags]:
    """Draw the arms and the values of a rollout.

    Args:
        random: Where chance is from.
        metric: What to draw.
        share: Shape (units,): probability of the new arm.
        control: Shape (units,): level of the control.
        new: Shape (units,): level of the new arm.
    """
    is_new = random.random(len(share)) < share
    return metric.draw(random, np.where(is_new, new, control)), is_new
