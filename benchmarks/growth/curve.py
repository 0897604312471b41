"""What a growth curve is: something whose cost is measured as one number of it grows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import attrs

from benchmarks.measure import Measure

PLAIN = "plain SDK"


@attrs.frozen
class Sides:
    """What is measured at one size.

    Attributes:
        ours: The measure of kantan_agents.
        other: The measure of what does the same without it; None where there is no such thing.
        units: How many of the units in which the cost is told one measured call does.
    """

    ours: Measure
    other: Measure | None = None
    units: int = 1


@attrs.frozen
class Curve:
    """One cost against one number.

    Attributes:
        name: What it is called on the command line.
        title: What is measured, in one line.
        x: What is counted.
        per: What a cost is the cost of: ``"run"``, ``"file"``, ...
        sizes: The counts, from the smallest to the largest.
        quick_sizes: The same for a quick check.
        sides: Prepares one size in a folder, and checks at the end that the work was done. Curves share the
            folder, so that one may use the files of another.
        other: What the other side is; None where there is none.
        batch: Seconds that a batch takes at least; None where it need not be long.
    """

    name: str
    title: str
    x: str
    per: str
    sizes: tuple[int, ...]
    quick_sizes: tuple[int, ...]
    sides: Callable[[int, Path], AbstractAsyncContextManager[Sides]] = attrs.field(repr=False)
    other: str | None = None
    batch: float | None = None
