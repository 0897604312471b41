"""Measures a curve: both sides at each size, and the largest size against the smallest."""

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
    """How long and how often is measured.

    Attributes:
        batch: Seconds of a batch, at least.
        least: Batches a side where a batch takes long.
        most: Batches a side where it does not.
        seconds: Of all batches of two sides, about, between ``least`` and ``most``.
    """

    batch: float
    least: int
    most: int
    seconds: float

    def repeats(self, seconds: float) -> int:
        """Return how many pairs of batches to make where one takes so many seconds."""
        return max(self.least, min(self.most, math.floor(self.seconds / seconds)))


WHOLE = Effort(batch=0.02, least=3, most=15, seconds=1.5)
QUICK = Effort(batch=0.01, least=3, most=3, seconds=0.0)


@attrs.frozen
class _Batches:
    """Batches of one side, all of one size whatever the other side's are.

    Attributes:
        measure: Returns the seconds of a unit; its argument is not looked at.
        seconds: How long a batch takes.
    """

    measure: Measure
    seconds: float

    @classmethod
    async def of(cls, measure: Measure, units: int, effort: Effort) -> _Batches:
        """Return the batches of a measure, which is warmed up and tried for it."""
        one = await measure(1)
        if one < effort.batch:
            one = await measure(1)  # the first was a warm-up as well
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
    """Return what ``curve`` comes to.

    Args:
        curve: What to measure.
        sizes: The counts, from the smallest to the largest; at least two.
        folder: Where its files may lie; it may be used by other curves as well.
        effort: How long to measure.

    Raises:
        RuntimeError: Something that was measured did not do its work.
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
            # Of neighbouring batches: between the first point and the last the machine may have changed.
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
