"""Measurements in which two sides take turns, and only ratios of neighbouring figures count."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence

import attrs
from typing_extensions import Self

Measure = Callable[[], float]
"""Returns the cost of one run."""


@attrs.frozen
class Spread:
    """The quartiles of some figures."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, figures: Sequence[float]) -> Self:
        """Return the quartiles of at least one figure."""
        if len(figures) == 1:
            return cls(figures[0], figures[0], figures[0])
        low, median, high = statistics.quantiles(figures, n=4, method="inclusive")
        return cls(low, median, high)

    def times(self, factor: float) -> Spread:
        """Return the quartiles multiplied by a factor, such as for another unit."""
        return Spread(self.low * factor, self.median * factor, self.high * factor)


@attrs.frozen
class Pair:
    """Two neighbouring figures."""

    base: float
    other: float

    @property
    def ratio(self) -> float:
        """The ratio of the other figure to the base."""
        return self.other / self.base


def take_turns(base: Measure, other: Measure, pairs: int) -> list[Pair]:
    """Measure both sides in turn.

    The sides alternate in going first, so that a drift of the machine favours neither.
    """
    measured = []
    for number in range(pairs):
        if number % 2 == 0:
            plain = base()
            measured.append(Pair(plain, other()))
        else:
            figure = other()
            measured.append(Pair(base(), figure))
    return measured


def ratios(pairs: Iterable[Pair]) -> Spread:
    """Return the quartiles of the ratios."""
    return Spread.of([pair.ratio for pair in pairs])


def others(pairs: Iterable[Pair]) -> Spread:
    """Return the quartiles of the other side's figures."""
    return Spread.of([pair.other for pair in pairs])
