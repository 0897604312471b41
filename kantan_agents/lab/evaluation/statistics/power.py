"""Detectable differences and needed cases."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.evaluation.statistics.distributions import noncentral_t_quantile, t_quantile
from kantan_agents.lab.evaluation.statistics.independent_units import Units, units_of

_MOST_UNITS: Final = 10**12
_SAME: Final = 1e-12


def fewest_cases(*, alpha: float = 0.05, metrics: int = 1) -> int:
    """Return the smallest number of differing independent cases with which a paired test can reach ``alpha``.

    If all differ in one direction, two sign patterns are as extreme: that one and its mirror image. So p is
    at least 2 * 0.5 ** cases.

    Args:
        alpha: Probability of a false alarm.
        metrics: Number of metrics that `holm` tests together; the first must reach ``alpha / metrics``.

    Returns:
        The number of cases: 6 for one metric at 0.05, 8 for five.

    Raises:
        ValueError: ``alpha`` is not between 0 and 1, or ``metrics`` is below 1.

    Source: as for `sign_flip_p`, `mcnemar` and `holm`.
    """
    _check(0.5, alpha, metrics)
    cases = 1
    while 2.0 * 0.5**cases > alpha / metrics:
        cases += 1
    return cases


def detectable_difference(
    differences: npt.ArrayLike,
    clusters: Sequence[Hashable | None] | None = None,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    metrics: int = 1,
) -> float | None:
    """Return the smallest true difference that these cases would have shown.

    A paired test at ``alpha`` finds a difference of this size with probability ``power``, on as many cases
    that vary as these do. After "cannot tell", the true difference may be anywhere below it.

    Args:
        differences: Shape (cases,): score of b minus score of a.
        clusters: As for `paired_difference`.
        power: Probability of finding it.
        alpha: Probability of a false alarm.
        metrics: Number of metrics that `holm` tests together; it assumes that only one of them differs.

    Returns:
        A difference above 0, on the scale of the metric. None if the differences do not vary, or if fewer
        than `fewest_cases` differ: then p is above ``alpha`` even if all differ in one direction.

    Raises:
        ValueError: The arrays are empty, have other shapes, or contain NaN or infinity; or an option is out
            of range.

    Source: Julious and Owen, Sample size calculations for clinical studies allowing for uncertainty about the
    variance, Pharmaceutical Statistics 5 (2006). If all nonzero differences are equal, as for pass or fail, p
    takes steps, which costs as much as the correction for continuity: Fleiss, Levin and Paik, Statistical
    Methods for Rates and Proportions (3rd edition, 2003), chapter 13.
    """
    _check(power, alpha, metrics)
    units = units_of(differences, clusters)
    if not _is_known(units, alpha / metrics) or units.count < _fewest_units(units, alpha / metrics):
        return None
    half_step = _step(units) / units.count / 2.0
    errors = _needed_errors(units.count, units.count, power, alpha / metrics)
    needed = errors * units.standard_error
    # The root of: difference * root of (1 - step / difference) = needed.
    difference = half_step + math.hypot(needed, half_step)
    return difference if math.isfinite(difference) else None


def more_cases(
    differences: npt.ArrayLike,
    wanted: float,
    clusters: Sequence[Hashable | None] | None = None,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    metrics: int = 1,
) -> int | None:
    """Return how many more cases a difference of a given size needs to be shown.

    It assumes that new cases vary like these, that as many of them differ, and that new conversations are as
    long. It allows for the uncertainty of the variance: on average over such data, the difference is found
    with probability ``power``. At least `fewest_cases` must differ.

    Args:
        differences: Shape (cases,): score of b minus score of a.
        wanted: The true difference to show, on the scale of the metric; its sign does not matter.
        clusters: As for `paired_difference`.
        power: Probability of finding it.
        alpha: Probability of a false alarm.
        metrics: As for `detectable_difference`.

    Returns:
        The number of cases, 0 if these suffice. None for fewer independent cases than `fewest_cases`, if the
        differences do not vary, or if ``wanted`` is 0.

    Raises:
        ValueError: As for `detectable_difference`, or ``wanted`` is not finite.

    Source: as for `detectable_difference`.
    """
    if not math.isfinite(wanted):
        raise ValueError(f"wanted must be a finite number, not {wanted}")
    _check(power, alpha, metrics)
    units = units_of(differences, clusters)
    if not _is_known(units, alpha / metrics) or wanted == 0.0:
        return None
    total = _needed_units(units, abs(wanted), power, alpha / metrics)
    return None if total is None else math.ceil((total - units.count) * units.cases / units.count)


def _is_known(units: Units, alpha: float) -> bool:
    return units.count >= fewest_cases(alpha=alpha) and units.standard_error > 0.0


def _needed_units(units: Units, wanted: float, power: float, alpha: float) -> int | None:
    ratio = units.standard_error * math.sqrt(units.count) / wanted
    steps = _step(units) / wanted

    def suffices(count: int) -> bool:
        return _needed_errors(count, units.count, power, alpha) * ratio <= math.sqrt(max(count - steps, 0.0))

    low = high = max(units.count, _fewest_units(units, alpha))
    if suffices(high):
        return high
    while not suffices(high):
        low, high = high, 2 * high
        if high > _MOST_UNITS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def _needed_errors(count: int, known: int, power: float, alpha: float) -> float:
    """The standard error is estimated from ``known`` sampling units."""
    return noncentral_t_quantile(power, known - 1, -t_quantile(alpha / 2.0, count - 1))


def _step(units: Units) -> float:
    """Return the common size of all nonzero differences; 0 if they vary."""
    sizes = np.abs(units.totals[units.totals != 0.0])
    largest = float(sizes.max())
    return largest * units.count / units.cases if sizes.min() >= largest * (1.0 - _SAME) else 0.0


def _fewest_units(units: Units, alpha: float) -> int:
    return math.ceil(fewest_cases(alpha=alpha) * units.count / int(np.count_nonzero(units.totals)))


def _check(power: float, alpha: float, metrics: int) -> None:
    if not (0.0 < alpha < 1.0 and 0.0 < power < 1.0):
        raise ValueError(f"power and alpha must be between 0 and 1, not {power} and {alpha}")
    if metrics < 1:
        raise ValueError(f"metrics must be at least 1, not {metrics}")
