"""What a dataset can show: the smallest difference, and how many more cases a smaller one takes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.evaluation.statistics.distributions import t_quantile
from kantan_agents.lab.evaluation.statistics.independent_units import Units, units_of

_MOST_UNITS: Final = 10**12


def detectable_difference(
    differences: npt.ArrayLike,
    clusters: Sequence[Hashable | None] | None = None,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
) -> float | None:
    """Return the smallest true difference that these cases would have shown.

    A true difference of this size is found with probability ``power`` by a paired test at ``alpha``, on as
    many cases whose differences vary as these do. "Cannot tell" means that the truth may be anywhere below
    it.

    A paired test looks at the cases that differ. If there are fewer than 6, its p is above 5 % even if all
    of them favour one side, so no difference can be shown.

    Args:
        differences: Shape (cases,): score of b minus score of a, for each case.
        clusters: For each case what it belongs to, such as its conversation; None for a case of its own.
        power: Probability of finding it.
        alpha: Probability of a false alarm.

    Returns:
        A difference above 0, in the units of the metric. None if none can be shown, or it cannot be known: at
        ``alpha`` 0.05 if fewer than 6 independent cases differ, or if the differences do not vary.

    Raises:
        ValueError: The arrays are empty, have other shapes, or contain NaN or infinity; or a probability is
            out of range.

    Source: Cohen, Statistical Power Analysis for the Behavioral Sciences (2nd edition, 1988), section 2.3.4,
    by the shifted t approximation; the standard error of conversations as in `Units.standard_error`. The
    least number of cases is that of the sign flip and of McNemar's exact test.
    """
    _check(power, alpha)
    units = units_of(differences, clusters)
    if not units.standard_error > 0.0 or units.count < _fewest_units(units, alpha):
        return None
    return _needed_errors(units.count, power, alpha) * units.standard_error


def more_cases(
    differences: npt.ArrayLike,
    wanted: float,
    clusters: Sequence[Hashable | None] | None = None,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
) -> int | None:
    """Return how many more cases it takes to show a difference of a given size.

    It assumes that new cases vary as these do, that as many of them differ, and that new conversations are as
    long as these. However large the difference, at ``alpha`` 0.05 at least 6 independent cases must differ.

    Args:
        differences: Shape (cases,): score of b minus score of a, for each case.
        wanted: The true difference to be shown, in the units of the metric; its sign does not matter.
        clusters: For each case what it belongs to, such as its conversation; None for a case of its own.
        power: Probability of finding it.
        alpha: Probability of a false alarm.

    Returns:
        The number of cases, 0 if these suffice. None if it cannot be known: for fewer than two independent
        cases, if the differences do not vary, or if ``wanted`` is 0.

    Raises:
        ValueError: As for `detectable_difference`, or ``wanted`` is not finite.

    Source: as for `detectable_difference`.
    """
    if not math.isfinite(wanted):
        raise ValueError(f"wanted must be a finite number, not {wanted}")
    _check(power, alpha)
    units = units_of(differences, clusters)
    if not units.standard_error > 0.0 or wanted == 0.0:
        return None
    spread = units.standard_error * math.sqrt(units.count)
    total = _needed_units(units, spread / abs(wanted), power, alpha)
    return None if total is None else math.ceil((total - units.count) * units.cases / units.count)


def _needed_units(units: Units, ratio: float, power: float, alpha: float) -> int | None:
    """Return how many units it takes if a unit's spread is ``ratio`` times the difference."""

    def suffices(count: int) -> bool:
        return _needed_errors(count, power, alpha) * ratio <= math.sqrt(count)

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


def _needed_errors(count: int, power: float, alpha: float) -> float:
    """Return how many standard errors a difference must have to be found."""
    freedom = count - 1
    return t_quantile(1.0 - alpha / 2.0, freedom) + t_quantile(power, freedom)


def _fewest_units(units: Units, alpha: float) -> int:
    """Return from how many units on a paired test can reach ``alpha``, if as many of them differ as of these.

    If all units that differ favour one side, two of their patterns of signs are as extreme: that one, and its
    mirror image.
    """
    differing = 1
    while 2.0 * 0.5**differing > alpha:
        differing += 1
    return math.ceil(differing * units.count / int(np.count_nonzero(units.totals)))


def _check(power: float, alpha: float) -> None:
    if not (0.0 < alpha < 1.0 and 0.0 < power < 1.0):
        raise ValueError(f"power and alpha must be between 0 and 1, not {power} and {alpha}")
