"""A lower bound of a mean."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from kantan_agents.lab.betting.running import Floats
from kantan_agents.lab.betting.wealth import log_wealths, mixed

_PRECISION: Final = 0.02


def lower_bound(values: Floats, lowest: Floats, scale: Floats, *, extent: float, limit: float) -> float:
    """Return the largest mean in +-``extent`` that is rejected from above; ``-extent`` without one.

    The larger the mean, the smaller each gambler's wealth, with a fixed stake as with the largest safe one.
    So the rejected means are an interval. ``limit`` is the logarithm of the wealth that rejects.

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
