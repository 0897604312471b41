"""``Agreement``: how well raters agree beyond chance, with an interval by the bootstrap."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from kantan_agents.lab.evaluation.statistics.distributions import t_quantile
from kantan_agents.lab.evaluation.statistics.intervals import Interval
from kantan_agents.lab.evaluation.statistics.units import Floats

_ALMOST_ONE: Final = 0.999
_FEWEST: Final = 0.5
"""At least this share of the resamples must have a value."""


class Agreement(NamedTuple):
    """How well raters agree.

    Attributes:
        value: 1 for perfect agreement, 0 for as much as by chance, below 0 for less. None if it is undefined,
            because all ratings are the same.
        interval: Its interval; None if it cannot be known, as when the raters agree on all items.
        items: How many items there are that at least two raters have rated.
    """

    value: float | None
    interval: Interval | None
    items: int


def agreement_interval(value: float, resampled: Floats, items: int, level: float) -> Interval | None:
    """Return the interval of an agreement, with the standard error of its bootstrap resamples.

    It is computed on Fisher's z scale, because the closer an agreement is to 1, the less it varies. That
    covers better than percentiles of the resamples, which are too close to the value for few items.

    Args:
        value: The agreement.
        resampled: Shape (resamples,): its value in resamples of the items, NaN where it is undefined.
        items: How many items there are.
        level: The confidence level.

    Returns:
        The interval; None if the resamples do not vary or most have no value.

    Source: for the scale Lin, A concordance correlation coefficient to evaluate reproducibility, Biometrics
    45 (1989), section 3; for the standard error Efron and Tibshirani, An Introduction to the Bootstrap
    (1993), chapter 6.
    """
    defined = resampled[~np.isnan(resampled)]
    if items == 1 or len(defined) < _FEWEST * len(resampled) or np.ptp(defined) == 0.0:
        return None
    limited = min(max(value, -_ALMOST_ONE), _ALMOST_ONE)
    half = t_quantile((1.0 + level) / 2.0, items - 1) * float(np.std(defined)) / (1.0 - limited**2)
    middle = math.atanh(limited)
    return Interval(math.tanh(middle - half), math.tanh(middle + half))
