"""A lower bound of a mean."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from kantan_agents.lab.betting.running import Floats
from kantan_agents.lab.betting.wealth import log_wealths, mixed

_PRECISION: Final = 0.02


def lower_bound(values: Floats, lowest: Floats, scale: Floats, *, extent: float, limit: float) -> float:
    """Return the largest mean that is rejected from above, found by bisection; ``-extent`` without one.

    The larger the mean, the smaller each gambler's wealth, so the rejected means are an interval. With a
    fixed stake s, 1 + s * (value - mean) falls. With the largest safe stake f / (mean - lowest), it is 1 - f
    + f * (value - lowest) / (mean - lowest), which falls too. A gambler bets the smaller of both stakes, and
    where the smaller one changes, they are equal.

    Args:
        values: Shape (observations,): at least one, as for `log_wealths`.
        lowest: Shape (observations,): a lower bound of each value.
        scale: Shape (observations,): about the standard deviation of each value.
        extent: The mean is from ``-extent`` to ``extent``.
        limit: The logarithm of the wealth that rejects.

    Source: Waudby-Smith and Ramdas, as for `log_e_process`, section 4.
    """
    rejected, kept = -extent, extent
    error = float(np.std(values)) / math.sqrt(len(values))
    wanted = max(_PRECISION * error, _PRECISION**2 * extent)
    while kept - rejected > wanted:
        middle = rejected + (kept - rejected) / 2.0
        if _reaches(values - middle, lowest - middle, scale, limit):
            rejected = middle
        else:
            kept = middle
    return rejected


def _reaches(values: Floats, lowest: Floats, scale: Floats, limit: float) -> bool:
    wealths = log_wealths(values, lowest, scale)
    # The average is between the largest wealth and its fraction, so it need not be computed at most times.
    largest = wealths.max(axis=0)
    if largest.max() < limit:
        return False
    near = largest >= limit
    return bool(mixed(wealths[:, near]).max() >= limit)
