"""Quantiles of Student's t distribution, without scipy."""

from __future__ import annotations

import math
from functools import lru_cache

from kantan_agents.lab.evaluation.statistics.beta import beta_quantile


@lru_cache(maxsize=1_024)
def t_quantile(probability: float, freedom: float) -> float:
    """Return the value below which a t variable is with this probability.

    Args:
        probability: Between 0 and 1, both excluded.
        freedom: Degrees of freedom, above 0; not necessarily a whole number.

    Raises:
        ValueError: An argument is out of range.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 26.7.1 and 26.5.27.
    """
    if not (0.0 < probability < 1.0 and freedom > 0.0):
        raise ValueError(f"t_quantile needs 0 < probability < 1 and freedom > 0: {probability}, {freedom}")
    outside = 2.0 * min(probability, 1.0 - probability)
    # t^2 / (freedom + t^2) has a beta distribution; far out, its complement is the more precise.
    inner = beta_quantile(1.0 - outside, 0.5, freedom / 2.0)
    outer = beta_quantile(outside, freedom / 2.0, 0.5) if 2.0 * inner > 1.0 else 1.0 - inner
    inner = min(inner, 1.0 - outer)
    return math.copysign(math.sqrt(freedom * inner / outer), probability - 0.5)
