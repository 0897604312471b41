"""An interval of the difference that holds at all times at once."""

from __future__ import annotations

import math
from typing import Final

import attrs
import numpy as np
import numpy.typing as npt

from kantan_agents.lab.rollout.evidence.betting import log_wealths, mixed, threshold
from kantan_agents.lab.rollout.evidence.differences import weighted_differences
from kantan_agents.lab.rollout.evidence.observations import drawn
from kantan_agents.lab.rollout.evidence.weighting import Weighted

_PRECISION: Final = 0.02


@attrs.frozen
class DifferenceInterval:
    """By how much the mean of the new arm is above that of the control.

    Attributes:
        difference: The estimate, in the unit of the metric; negative if the new arm's mean is lower. It may
            leave the interval, which remembers what was rejected earlier.
        low: Lower bound, in the same unit.
        high: Upper bound.
        observations: How many observations count.
    """

    difference: float
    low: float
    high: float
    observations: int


def difference_interval(
    values: npt.ArrayLike,
    is_new: npt.ArrayLike,
    share: npt.ArrayLike,
    *,
    lowest: float,
    highest: float,
    alpha: float = 0.05,
) -> DifferenceInterval | None:
    """Return the new arm's mean minus the control's, with an interval for anyone who looks at any time.

    If the true difference does not change, the probability that the interval ever leaves it out is at most
    ``alpha``. Each bound holds with ``alpha`` / 2. It is the set of all margins that `mean_difference` has
    never rejected, in either direction, so it never grows as observations are added, and it agrees with the
    verdicts at ``alpha`` / 2. If the true difference changes over time, it may be empty; then ``low`` is
    above ``high``.

    Args:
        values: Shape (observations,): in the order of assignment, from ``lowest`` to ``highest``.
        is_new: Shape (observations,): True for the new arm, False for the control.
        share: Shape (observations,): the probability with which the unit got the new arm. Observations with a
            share of 0 or 1 are skipped.
        lowest: The least possible value, in the unit of the metric.
        highest: The largest possible value.
        alpha: Probability of an interval that is ever wrong.

    Returns:
        The interval; None without any observation that counts.

    Raises:
        ValueError: As for `mean_difference`, or ``alpha`` is not between 0 and 1.

    Source: Waudby-Smith and Ramdas (2024), as for `log_e_process`, section 4, inverting the bets by
    bisection. The estimate is the mean of the estimates of `weighted`, each with the weight p * (1 - p).
    """
    limit = threshold(alpha) + math.log(2.0)  # for each bound
    seen = drawn(values, is_new, share)
    above = weighted_differences(seen, lowest, highest)
    if not len(seen.values):
        return None
    mirrored = attrs.evolve(seen, values=-seen.values)
    below = weighted_differences(mirrored, -highest, -lowest)
    precise = seen.share * (1.0 - seen.share)
    difference = float(np.clip(precise @ above.values / precise.sum(), lowest - highest, highest - lowest))
    low = _lower_bound(above, highest - lowest, limit)
    high = -_lower_bound(below, highest - lowest, limit)
    return DifferenceInterval(difference, low, high, len(seen.values))


def _lower_bound(estimates: Weighted, extent: float, limit: float) -> float:
    """Return the largest margin that is rejected, found by bisection; ``-extent`` if none is.

    The larger the margin, the smaller each gambler's wealth at each time, so what is rejected is an interval.
    With a fixed stake s, 1 + s * (value - margin) falls. With the largest safe stake f / (margin - lowest),
    it is 1 - f + f * (value - lowest) / (margin - lowest), which falls too. A gambler bets the smaller of
    both stakes, and where the smaller one changes, they are equal.
    """
    rejected, kept = -extent, extent
    error = float(np.std(estimates.values)) / math.sqrt(len(estimates.values))
    wanted = max(_PRECISION * error, _PRECISION**2 * extent)
    while kept - rejected > wanted:
        middle = rejected + (kept - rejected) / 2.0
        if _reaches(estimates, middle, limit):
            rejected = middle
        else:
            kept = middle
    return rejected


def _reaches(estimates: Weighted, margin: float, limit: float) -> bool:
    wealths = log_wealths(estimates.values - margin, estimates.lowest - margin, estimates.scale)
    # The average is between the largest and its part of it, so it need not be computed at most times.
    largest = wealths.max(axis=0)
    if largest.max() < limit:
        return False
    near = largest >= limit
    return bool(mixed(wealths[:, near]).max() >= limit)
