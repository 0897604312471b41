"""Measures a curve: both sides against each other at each size, and the largest size against the smallest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import attrs

from benchmarks.growth.curve import Curve, Sides
from benchmarks.growth.results import Growth, Point
from benchmarks.measure import Measure, compare


@attrs.frozen
class Effort:
    """How long and how often to measure.

    Attributes:
        batch: Minimum seconds of a batch.
        least: Minimum number of batches per side.
        most: Maximum number of batches per side.
        seconds: Target for the total time of both sides' batches.
    """

    batch: float
    least: int
    most: int
    seconds: float

    def repeats(self, seconds: float) -> int:
        """Return the number of pairs of batches if one pair takes ``seconds``."""
        return max(self.least, min(self.most, math.floor(self.seconds / seconds)))


WHOLE = Effort(batch=0.02, least=3, most=15, seconds=1.5)
QUICK = Effort(batch=0.01, least=3, most=3, seconds=0.0)


@attrs.frozen
class _Batches:
    """Batches of one side, whose size does not depend on the other side.

    Attributes:
        measure: Returns the seconds per unit; its argument is ignored.
        seconds: Duration of a batch.
    """

    measure: Measure
    seconds: float

    @classmethod
    async def of(cls, measure: Measure, units: int, effort: Effort) -> _Batches:
        """Return the batches of a measure, after warming it up and timing it."""
        one = await measure(1)
        if one < effort.batch:
            one = await measure(1)  # the first one included the warm-up
        count = max(1, math.ceil(effort.batch / one))

        async def batch(_count: int) -> float:
            return await measure(count) / units

        return cls(batch, count * one)


@attrs.frozen
class _Pair:
    """The batches of both sides at one size."""

    ours: _Batches
    other: _Batches | None

    @classmethod
    async def of(cls, sides: Sides, effort: Effort) -> _Pair:
        ours = await _Batches.of(sides.ours, sides.units, effort)
        other = None if sides.other is None else await _Batches.of(sides.other, sides.units, effort)
        return cls(ours, other)


async def measure_curve(curve: Curve, sizes: Sequence[int], folder: Path, effort: Effort) -> Growth:
    """Measure ``curve`` and return the result.

    Args:
        curve: The curve to measure.
        sizes: The sizes, from the smallest to the largest; at least two.
        folder: The folder for its files, which other curves may share.
        effort: How long to measure.

    Raises:
        RuntimeError: The measured code did not do its work.
    """
    if curve.batch is not None:
        effort = attrs.evolve(effort, batch=curve.batch)
    smallest, *between, largest = sizes
    async with curve.sides(smallest, folder) as sides:
        first = await _Pair.of(sides, effort)
        points = [await _point(smallest, first, effort)]
        for size in between:
            async with curve.sides(size, folder) as more:
                points.append(await _point(size, await _Pair.of(more, effort), effort))
        async with curve.sides(largest, folder) as most:
            last = await _Pair.of(most, effort)
            points.append(await _point(largest, last, effort))
            # From neighbouring batches, because the machine may have changed between the first and the last
            # point.
            _, growth = await _compared(first.ours, last.ours, effort)
    return Growth(curve, tuple(points), growth)


async def _point(size: int, pair: _Pair, effort: Effort) -> Point:
    if pair.other is None:
        seconds, _ = await _compared(pair.ours, pair.ours, effort)
        return Point(size, seconds)
    seconds, ratio = await _compared(pair.other, pair.ours, effort)
    return Point(size, seconds * ratio, seconds)


async def _compared(one: _Batches, two: _Batches, effort: Effort) -> tuple[float, float]:
    return await compare(one.measure, two.measure, effort.repeats(one.seconds + two.seconds), 1)
