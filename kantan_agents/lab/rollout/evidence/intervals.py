"""An interval of the difference that holds at all times."""

from __future__ import annotations

import math

import attrs
import numpy as np
import numpy.typing as npt

from kantan_agents.lab.betting.bounds import lower_bound
from kantan_agents.lab.betting.wealth import threshold
from kantan_agents.lab.rollout.evidence.differences import weighted_differences
from kantan_agents.lab.rollout.evidence.observations import drawn


@attrs.frozen
class DifferenceInterval:
    """The new arm's mean minus the control's.

    Attributes:
        difference: The estimate, on the scale of the metric; negative if the new arm's mean is lower. It may
            leave the interval, which remembers earlier rejections.
        low: Lower bound, on the same scale.
        high: Upper bound.
        observations: Number of observations that count.
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
    """Return the new arm's mean minus the control's, with an interval that holds whenever you look.

    If the true difference does not change, the probability that the interval ever excludes it is at most
    ``alpha``, and ``alpha`` / 2 for each bound. It is the set of all margins that `mean_difference` has never
    rejected, in either direction. So it never grows as observations are added, and it agrees with the
    verdicts at ``alpha`` / 2. If the true difference changes over time, it may be empty; then ``low`` is
    above ``high``.

    Args:
        values: Shape (observations,): in the order of assignment, from ``lowest`` to ``highest``.
        is_new: Shape (observations,): True for the new arm, False for the control.
        share: Shape (observations,): the probability with which the user got the new arm. Observations with a
            share of 0 or 1 are skipped.
        lowest: The least possible value, on the scale of the metric.
        highest: The largest possible value.
        alpha: Probability that the interval is ever wrong.

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
    low = lower_bound(*above, extent=highest - lowest, limit=limit)
    high = -lower_bound(*below, extent=highest - lowest, limit=limit)
    return DifferenceInterval(difference, low, high, len(seen.values))
