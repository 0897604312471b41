"""The beta distribution, Student's t and a fair coin, without scipy."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np

_SMALLEST: Final = 1e-300
_PRECISION: Final = 1e-15
_MOST_TERMS: Final = 100_000
_MOST_HALVINGS: Final = 1_100  # 64-bit floats need at most 1,074


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return the regularized incomplete beta function.

    Source: Press et al., Numerical Recipes (3rd edition, 2007), section 6.4.
    """
    if not (0.0 <= x <= 1.0 and a > 0.0 and b > 0.0):
        raise ValueError(f"beta_cdf needs 0 <= x <= 1 and positive shapes, not x={x}, a={a}, b={b}")
    if x in (0.0, 1.0):
        return x
    if x > (a + 1.0) / (a + b + 2.0):  # the fraction converges slowly here
        return 1.0 - beta_cdf(1.0 - x, b, a)
    log_front = a * math.log(x) + b * math.log1p(-x) - _log_beta(a, b) - math.log(a)
    return math.exp(log_front) * _continued_fraction(x, a, b)


@lru_cache(maxsize=1_024)
def beta_quantile(probability: float, a: float, b: float) -> float:
    """Return a quantile of the beta distribution, by bisection."""
    if not 0.0 <= probability <= 1.0:
        raise ValueError(f"a probability is between 0 and 1, not {probability}")
    low, high = 0.0, 1.0
    for _ in range(_MOST_HALVINGS):
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        if beta_cdf(middle, a, b) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0


@lru_cache(maxsize=1_024)
def t_quantile(probability: float, freedom: float) -> float:
    """Return a quantile of Student's t; ``freedom`` may be fractional.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions (1964), 26.7.1 and 26.5.27.
    """
    if not (0.0 < probability < 1.0 and freedom > 0.0):
        raise ValueError(f"t_quantile needs 0 < probability < 1 and freedom > 0: {probability}, {freedom}")
    outside = 2.0 * min(probability, 1.0 - probability)
    # t^2 / (freedom + t^2) has a beta distribution; in the tails, its complement is more precise.
    inner = beta_quantile(1.0 - outside, 0.5, freedom / 2.0)
    outer = beta_quantile(outside, freedom / 2.0, 0.5) if 2.0 * inner > 1.0 else 1.0 - inner
    inner = min(inner, 1.0 - outer)
    return math.copysign(math.sqrt(freedom * inner / outer), probability - 0.5)


def noncentral_t_quantile(probability: float, freedom: float, noncentrality: float) -> float:
    """Return an approximate quantile of the noncentral t distribution.

    For usual values of power, its error is within 2 % from 5 degrees of freedom on. It may be infinity for
    few.

    Source: Johnson and Welch, Applications of the non-central t-distribution, Biometrika 31 (1940).
    """
    z = NormalDist().inv_cdf(probability)
    # The mean of the root of chi-squared / freedom, and its variance.
    mean = math.sqrt(2.0 / freedom) * math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    variance = 1.0 - mean**2
    scale = mean**2 - z * z * variance
    inside = mean**2 + variance * (noncentrality**2 - z * z)
    if scale <= 0.0 or inside < 0.0:
        return math.inf
    return (noncentrality * mean + z * math.sqrt(inside)) / scale


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _continued_fraction(x: float, a: float, b: float) -> float:
    """The modified method of Lentz."""
    c = 1.0
    d = 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    result = d
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for term in (even, odd):
            d = 1.0 / _away_from_zero(1.0 + term * d)
            c = _away_from_zero(1.0 + term / c)
            result *= d * c
        if abs(d * c - 1.0) < _PRECISION:
            break
    return result


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _SMALLEST else _SMALLEST


def fair_coin_p(heads: int, tails: int) -> float:
    """Return the two-sided p of these counts if both sides are equally likely; 1.0 without any.

    Source: Conover, Practical Nonparametric Statistics (3rd edition, 1999), section 3.4.
    """
    if heads < 0 or tails < 0:
        raise ValueError(f"counts must not be negative: {heads}, {tails}")
    total, fewer = heads + tails, min(heads, tails)
    if total == 0:
        return 1.0
    # log of C(n, k) for k = 0..fewer, each from the previous one.
    k = np.arange(1, fewer + 1, dtype=np.float64)
    logs = np.concatenate([[0.0], np.cumsum(np.log((total - k + 1) / k))]) - total * math.log(2.0)
    return min(1.0, 2.0 * math.fsum(np.exp(logs)))
