"""The interval of an estimate whose data may be skewed."""

from __future__ import annotations

import math
from typing import Final

from kantan_agents.lab.evaluation.statistics.distributions import t_quantile
from kantan_agents.lab.evaluation.statistics.intervals import Interval

_ROUNDING: Final = 1e-9


def skew_corrected(estimate: float, error: float, skewness: float, freedom: float, level: float) -> Interval:
    """Return an interval whose bounds are Hall's or Student's t, whichever is farther from the estimate.

    Hall's transformation suits skewed data and is too short for heavy tails, and t the other way around.
    ``skewness`` is of the estimate.

    Source: Hall, On the removal of skewness by transformation, Journal of the Royal Statistical Society B 54
    (1992), section 2, the second transformation.
    """
    t = t_quantile((1.0 + level) / 2.0, freedom)
    return Interval(
        estimate - max(t, _untransformed(t, skewness)) * error,
        estimate - min(-t, _untransformed(-t, skewness)) * error,
    )


def _untransformed(value: float, skewness: float) -> float:
    if abs(skewness) < _ROUNDING:
        return value
    cube = 1.0 + skewness * (value - skewness / 6.0)
    return 3.0 / skewness * (math.copysign(abs(cube) ** (1.0 / 3.0), cube) - 1.0)
