"""A pass rate of results that may be dependent."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.evaluation.statistics.distributions import t_quantile
from kantan_agents.lab.evaluation.statistics.independent_units import Floats, units_of
from kantan_agents.lab.evaluation.statistics.intervals import Interval, check_level, exact_bounds

_ROUNDING: Final = 1e-9


class Proportion(NamedTuple):
    """A rate with its interval.

    Attributes:
        value: The rate, from 0 to 1.
        interval: Its interval, inside 0 and 1; None if several results are all of one cluster.
        units: Number of independent results and clusters.
        effective: The number of independent results that carry as much information.
    """

    value: float
    interval: Interval | None
    units: int
    effective: float


def proportion(
    values: npt.ArrayLike, clusters: Sequence[Hashable | None] | None = None, *, level: float = 0.95
) -> Proportion:
    """Return a pass rate with an interval that allows for dependent results.

    Ten repeats of a case are worth between one and ten results, depending on how alike they are. The interval
    is Clopper and Pearson's for that number. Two artificial clusters, of which one passes and one fails as a
    whole, prevent a few similar clusters from counting as many. For independent pass or fail, it is exactly
    `clopper_pearson`.

    Args:
        values: Shape (results,): 1 or True where a result passed, 0 or False where not, or a share.
        clusters: The group of each result, such as its case; None for an independent result.
        level: Confidence level.

    Raises:
        ValueError: The shapes differ, there are no values, one is not from 0 to 1, or ``level`` is out of
            range.

    Source: Korn and Graubard, Confidence intervals for proportions with small expected number of positive
    counts estimated from survey data, Survey Methodology 24 (1998), for the effective number of results and
    the degrees of freedom. The two clusters are an addition, like the two observations of Agresti and Caffo,
    The American Statistician 54 (2000). ``benchmarks/statistics.py`` measures the coverage.
    """
    check_level(level)
    given = np.asarray(values, dtype=np.float64)
    units = units_of(given, clusters)
    if given.min() < 0.0 or given.max() > 1.0:
        raise ValueError("values of a proportion must be from 0 to 1")
    totals = units.totals * (units.direction or 1)
    interval, effective = interval_of_units(totals, units.sizes, level)
    return Proportion(float(totals.sum() / units.cases), interval, units.count, effective)


def interval_of_units(totals: Floats, sizes: Floats, level: float) -> tuple[Interval | None, float]:
    """Return the interval of a rate of independent sampling units, and their effective number of results.

    One sampling unit of several results has no interval.
    """
    count, usual = float(sizes.sum()), float(np.sum(sizes**2) / sizes.sum())
    alike = count / usual  # as many equal clusters, each all or nothing
    if alike < 1.0 + _ROUNDING < count:
        return None, alike
    rate = (float(totals.sum()) + usual) / (count + 2.0 * usual)
    spread = float(np.sum((totals - rate * sizes) ** 2)) + usual**2 * (rate**2 + (1.0 - rate) ** 2)
    effective = count * (rate * (1.0 - rate) * (count + 2.0 * usual) / spread)
    effective *= freedom_factor(len(sizes) - 1.0, alike - 1.0, level)
    passed = min(max(float(totals.sum()) / count, 0.0), 1.0) * effective
    return exact_bounds(passed, effective, level), effective


def freedom_factor(usual: float, known: float, level: float) -> float:
    """Return the factor by which the number of results shrinks because their variance is uncertain."""
    if known > usual - _ROUNDING:
        return 1.0
    probability = (1.0 + level) / 2.0
    return (t_quantile(probability, usual) / t_quantile(probability, known)) ** 2
