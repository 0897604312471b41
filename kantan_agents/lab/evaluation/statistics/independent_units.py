"""Paired differences as independent sampling units."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Literal

import attrs
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@attrs.frozen(eq=False)
class Units:
    """Sampling units of paired differences: cases, or conversations of several cases.

    Order and sign are canonical, so results with a fixed seed depend neither on the order of the cases nor on
    which side is called a. ``direction`` is -1.0 if all signs in ``totals`` are negated, 0.0 if both signs
    give the same totals.
    """

    totals: Floats
    sizes: Floats
    direction: Literal[1, 0, -1]

    @property
    def count(self) -> int:
        """Number of sampling units."""
        return len(self.totals)

    @property
    def cases(self) -> int:
        """Number of cases."""
        return int(self.sizes.sum())

    @property
    def mean(self) -> float:
        """Mean of all differences, in canonical direction."""
        return math.fsum(self.totals) / self.cases

    @property
    def standard_error(self) -> float:
        """The standard error of the mean; NaN for fewer than two sampling units.

        For conversations it is the error of a ratio of two sums: Cochran, Sampling Techniques (3rd edition,
        1977), sections 2.11 and 6.4.
        """
        if self.count == 1:
            return math.nan
        rest = self.totals - self.mean * self.sizes
        if _is_nothing(rest, self.totals):
            return 0.0
        return math.sqrt(self.count / (self.count - 1) * math.fsum(rest * rest)) / self.cases


def units_of(differences: npt.ArrayLike, clusters: Sequence[Hashable | None] | None = None) -> Units:
    """Return the sampling units of differences, b minus a."""
    given = checked_differences(differences, clusters)
    if clusters is None:
        return _canonical(given, np.ones_like(given))
    units = numbers_of(clusters, len(given))
    members: list[list[float]] = [[] for _ in range(int(units.max()) + 1)]
    for unit, value in zip(units.tolist(), given.tolist(), strict=True):
        members[unit].append(value)
    # fsum rounds once, so the order of the cases and the sign do not matter.
    totals = np.array([math.fsum(values) for values in members]) + 0.0
    return _canonical(totals, np.array([float(len(values)) for values in members]))


def numbers_of(clusters: Sequence[Hashable | None] | None, count: int) -> npt.NDArray[np.intp]:
    """Return the sampling unit of each observation: numbers from 0 in the order of first appearance."""
    if clusters is None:
        return np.arange(count)
    if len(clusters) != count:
        raise ValueError(f"there are {len(clusters)} clusters for {count} observations")
    numbers: dict[Hashable, int] = {}
    keys = (("alone", index) if one is None else ("in", one) for index, one in enumerate(clusters))
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.intp)


def checked_differences(differences: npt.ArrayLike, clusters: Sequence[Hashable | None] | None) -> Floats:
    """Return paired differences as an array."""
    given = np.asarray(differences, dtype=np.float64) + 0.0  # -0.0 becomes 0.0
    if given.ndim != 1 or not len(given):
        raise ValueError(f"differences must be a list of at least one number, not of shape {given.shape}")
    if not np.isfinite(given).all():
        raise ValueError("differences must be finite numbers")
    if clusters is not None and len(clusters) != len(given):
        raise ValueError(f"there are {len(clusters)} clusters for {len(given)} differences")
    return given


def _canonical(totals: Floats, sizes: Floats) -> Units:
    here, turned = _ordered(totals, sizes), _ordered(0.0 - totals, sizes)
    for one, other in zip(here, turned, strict=True):
        unequal = np.flatnonzero(one != other)
        if len(unequal):
            first = unequal[0]
            return Units(*here, 1) if one[first] > other[first] else Units(*turned, -1)
    return Units(*here, 0)


def _ordered(totals: Floats, sizes: Floats) -> tuple[Floats, Floats]:
    order = np.lexsort((sizes, totals))
    return totals[order], sizes[order]


def _is_nothing(rest: Floats, totals: Floats) -> bool:
    return bool(np.abs(rest).max() <= 1e-12 * np.abs(totals).max())
