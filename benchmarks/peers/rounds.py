"""Two sides take turns, and only ratios of neighbours count."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence

import attrs
from typing_extensions import Self

Measure = Callable[[], float]
"""Returns what one run costs."""


@attrs.frozen
class Spread:
    """The quartiles of some figures."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, figures: Sequence[float]) -> Self:
        """Return the quartiles of ``figures``, of which there is at least one."""
        if len(figures) == 1:
            return cls(figures[0], figures[0], figures[0])
        low, median, high = statistics.quantiles(figures, n=4, method="inclusive")
        return cls(low, median, high)

    def times(self, factor: float) -> Spread:
        """Return the same in another unit."""
        return Spread(self.low * factor, self.median * factor, self.high * factor)


@attrs.frozen
class Pair:
    """Two neighbouring figures."""

    base: float
    other: float

    @property
    def ratio(self) -> float:
        """How many times the base the other is."""
        return self.other / self.base


def take_turns(base: Measure, other: Measure, pairs: int) -> list[Pair]:
    """Measure both sides in turn, so often.

    Which side goes first alternates, so that a drift of the machine favours neither.
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
    """Return the quartiles of what the other side costs."""
    return Spread.of([pair.other for pair in pairs])
