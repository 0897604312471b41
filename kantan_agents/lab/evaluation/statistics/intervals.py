"""Bounds of confidence intervals, and the intervals of proportions such as pass rates."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final, NamedTuple

from kantan_agents.lab.evaluation.statistics.distributions import beta_quantile

_NOTHING: Final = 1e-9


class Interval(NamedTuple):
    """The bounds of a confidence interval, on the scale of the estimate."""

    low: float
    high: float

    def negated(self) -> Interval:
        """Return the interval of the negated quantity."""
        return Interval(-self.high, -self.low)


def check_level(level: float) -> None:
    """Raise ValueError unless ``level`` is between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be between 0 and 1, not {level}")


def wilson(successes: int, total: int, *, level: float = 0.95) -> Interval:
    """Return Wilson's score interval, whose average coverage over all rates is its level.

    Use it to show a pass rate. It stays inside 0 and 1, and has a width even if none or all passed.

    Args:
        successes: Number that passed.
        total: Number of independent results, at least 1. For dependent results, use `proportion`.
        level: Confidence level.

    Raises:
        ValueError: The counts or the level are out of range.

    Source: Wilson, Journal of the American Statistical Association 22 (1927), pages 209 to 212. Recommended
    by Brown, Cai and DasGupta, Interval estimation for a binomial proportion, Statistical Science 16 (2001),
    section 5.
    """
    _check(successes, total, level)
    z = NormalDist().inv_cdf((1.0 + level) / 2.0)
    rate = successes / total
    middle = (rate + z * z / (2 * total)) / (1 + z * z / total)
    half = z / (1 + z * z / total) * math.sqrt(rate * (1 - rate) / total + z * z / (4 * total * total))
    return Interval(
        0.0 if successes == 0 else middle - half,
        1.0 if successes == total else middle + half,
    )


def clopper_pearson(successes: int, total: int, *, level: float = 0.95) -> Interval:
    """Return the exact interval, which covers at least as often as its level and is wider than Wilson's.

    Use it where a false promise costs more than a wide interval, such as the exit code of a CI job.

    Args:
        successes: Number that passed.
        total: Number of independent results, at least 1. For dependent results, use `proportion`.
        level: Confidence level.

    Raises:
        ValueError: The counts or the level are out of range.

    Source: Clopper and Pearson, The use of confidence or fiducial limits illustrated in the case of the
    binomial, Biometrika 26 (1934).
    """
    _check(successes, total, level)
    return exact_bounds(successes, total, level)


def exact_bounds(successes: float, total: float, level: float = 0.95) -> Interval:
    """Return Clopper and Pearson's interval, even for fractional counts."""
    tail = (1.0 - level) / 2.0
    failures = total - successes
    return Interval(
        0.0 if successes < _NOTHING else beta_quantile(tail, successes, failures + 1.0),
        1.0 if failures < _NOTHING else 1.0 - beta_quantile(tail, failures, successes + 1.0),
    )


def _check(successes: int, total: int, level: float) -> None:
    check_level(level)
    if total < 1 or not 0 <= successes <= total:
        raise ValueError(f"there cannot be {successes} successes of {total}")
