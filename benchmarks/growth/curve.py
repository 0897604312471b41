"""The type of a growth curve: a cost that is measured as one size grows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import attrs

from benchmarks.measure import Measure

PLAIN = "plain SDK"


@attrs.frozen
class Sides:
    """The measures at one size.

    Attributes:
        ours: The measure of kantan_agents.
        other: The measure of the same work without kantan_agents, if there is any.
        units: Number of units of work per measured call; costs are given per unit.
    """

    ours: Measure
    other: Measure | None = None
    units: int = 1


@attrs.frozen
class Curve:
    """One cost by one size.

    Attributes:
        name: Its name on the command line.
        title: What is measured, in one line.
        x: Name of the size.
        per: The unit of work that a cost is for: ``"run"``, ``"file"``, ...
        sizes: The sizes, from the smallest to the largest.
        quick_sizes: The sizes of a quick check.
        sides: Prepares one size in a folder, and checks at the end that the work was done. Curves share the
            folder, so that one may use the files of another.
        other: Name of the other side, or None.
        batch: Minimum seconds of a batch, or None.
        is_published: Whether it is part of a whole run, whose results are published; otherwise it is measured
            only if it is named.
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
    is_published: bool = True
