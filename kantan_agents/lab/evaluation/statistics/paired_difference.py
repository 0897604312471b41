"""The mean of paired differences, with an interval by the studentized bootstrap."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.evaluation.statistics.distributions import t_quantile
from kantan_agents.lab.evaluation.statistics.independent_units import Floats, Units, units_of
from kantan_agents.lab.evaluation.statistics.intervals import Interval, check_level
from kantan_agents.lab.evaluation.statistics.resampling import resampled_sums

_LEAST_ERROR: Final = 0.25
"""As a share of the observed error."""
_FEWEST: Final = 10
_FEWEST_DIFFERING: Final = 2
_SAME: Final = 1e-12


class PairedDifference(NamedTuple):
    """The mean difference of two versions on the same cases.

    Attributes:
        mean: Mean of b minus mean of a.
        interval: Its interval; None if it cannot be known.
        standard_error: Its standard error; None where the interval is.
        cases: Number of cases.
        units: Number of independent cases or conversations.
        missing: Why the interval is missing; None otherwise.
    """

    mean: float
    interval: Interval | None
    standard_error: float | None
    cases: int
    units: int
    missing: str | None = None


def paired_difference(
    differences: npt.ArrayLike,
    clusters: Sequence[Hashable | None] | None = None,
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> PairedDifference:
    """Return the mean difference of two versions with its interval.

    Each bound is the one of the studentized bootstrap, for skewed differences, or of Student's t, for heavy
    tails or few values, whichever is farther from the mean. A resample's standard error counts as at least a
    quarter of the observed one, since equal values have none. Few cases show about half of their skewness, so
    the bound at the long tail moves outwards by twice the correction for it.

    The interval is missing for fewer than 10 independent cases, if fewer than 2 differ, or if all differences
    are equal. For pass or fail, use `paired_proportions`.

    The order of the cases does not matter, and swapping a and b only changes signs.

    Args:
        differences: Shape (cases,): score of b minus score of a; average repeats first.
        clusters: The group of each case, such as its conversation; None for an independent case.
        level: Confidence level.
        resamples: Number of resamples of cases or whole clusters.
        seed: The same seed gives the same interval.

    Raises:
        ValueError: The arrays are empty, have other shapes, or contain NaN or infinity; or ``level`` or
            ``resamples`` is out of range.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), section 12.5; Davison and Hinkley,
    Bootstrap Methods and their Application (1997), section 2.4, and section 3.8 for clusters; for the
    skewness Johnson, Modified t tests and confidence intervals for asymmetrical populations, Journal of the
    American Statistical Association 73 (1978), section 2. ``benchmarks/statistics.py`` measures the coverage.
    """
    check_level(level)
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, not {resamples}")
    units = units_of(differences, clusters)
    mean = units.mean * (units.direction or 1)
    error = units.standard_error
    missing = _missing(units)
    if missing is not None:
        return PairedDifference(mean, None, None, units.cases, units.count, missing)
    interval = _turned(_interval(units, error, level, resamples, seed), units.direction)
    return PairedDifference(mean, interval, error, units.cases, units.count)


def _missing(units: Units) -> str | None:
    sizes = np.abs(units.totals)
    differing = int(np.count_nonzero(sizes > _SAME * sizes.max()))
    if not differing:
        return "no case differs"
    if units.count < _FEWEST:
        return f"it takes at least {_FEWEST} independent cases"
    if not units.standard_error > 0.0:
        return "all differences are equal"
    return None if differing >= _FEWEST_DIFFERING else f"at least {_FEWEST_DIFFERING} cases must differ"


def _interval(units: Units, error: float, level: float, resamples: int, seed: int) -> Interval:
    tail = (1.0 - level) / 2.0
    t = t_quantile(1.0 - tail, units.count - 1)
    low, high = _outer_quantiles(_studentised(units, error, resamples, seed), tail)
    further = (2.0 * t * t + 1.0) / 3.0 * _skewness(units) / math.sqrt(units.count)
    below, above = max(t, high) + max(0.0, -further), max(t, -low) + max(0.0, further)
    return Interval(units.mean - below * error, units.mean + above * error)


def _skewness(units: Units) -> float:
    """For conversations, the skewness of their residuals."""
    rest = units.totals - units.mean * units.sizes
    return math.fsum(rest**3) / len(rest) / math.pow(math.fsum(rest**2) / len(rest), 1.5)


def _outer_quantiles(values: Floats, tail: float) -> tuple[float, float]:
    """``np.quantile`` would import ``numpy.ma``, 5 % of the time of a comparison."""
    index, share = divmod(tail * (len(values) - 1), 1.0)
    first, second = int(index), min(int(index) + 1, len(values) - 1)
    ordered = np.sort(values)
    low = ordered[first] + share * (ordered[second] - ordered[first])
    high = ordered[-1 - first] + share * (ordered[-1 - second] - ordered[-1 - first])
    return float(low), float(high)


def _studentised(units: Units, error: float, resamples: int, seed: int) -> Floats:
    """Return (mean of the resample - mean) / standard error of the resample."""
    count, sizes = units.count, units.sizes
    rest = (units.totals - units.mean * sizes) / (error * units.cases)
    is_plain = bool((sizes == 1.0).all())
    columns = [sizes, rest, rest**2]
    if not is_plain:
        columns += [rest * sizes, sizes**2, np.ones_like(sizes)]
    sums = resampled_sums(np.column_stack(columns), resamples, seed).T
    cases, rests, squares = sums[:3]
    products, sizes_squared, drawn = (rests, cases, cases) if is_plain else sums[3:]
    shift = rests / cases
    spread = squares - 2.0 * shift * products + shift**2 * sizes_squared
    # Weights do not sum to the number of sampling units; shares of their sum do.
    per_unit = count / drawn
    observed = float(np.sum(rest**2)) / (count - 1)
    variance = np.maximum(spread * per_unit / (count - 1), observed * _LEAST_ERROR**2)
    result: Floats = shift * cases * per_unit / np.sqrt(count * variance)
    return result


def _turned(interval: Interval, direction: int) -> Interval:
    if direction == 0:  # no side is preferred, so chance may not prefer one
        half = (interval.high - interval.low) / 2.0
        return Interval(-half, half)
    return interval if direction > 0 else interval.negated()
