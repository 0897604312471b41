"""The method of the benchmarks: two sides take turns, and only ratios within one run count.

A figure is the median over many short batches, and a ratio the median of the ratios of neighbouring batches.
The control ``A/A`` measures a side against itself in the same way, which shows how much of a ratio is noise.
"""

from __future__ import annotations

import gc
import platform
import statistics
import time
from collections.abc import Awaitable, Callable, Coroutine
from importlib.metadata import version
from typing import Any

from rich.console import Console

RunOnce = Callable[[], Coroutine[Any, Any, Any]]

Measure = Callable[[int], Awaitable[float]]
"""Returns the average seconds of a run over ``count`` consecutive runs."""


shortest = False
"""Whether ``compare`` only shows that its sides run; ``benchmarks.smoke`` sets it."""


def timed(run: RunOnce) -> Measure:
    """Return the measure of a coroutine function."""

    async def batch(count: int) -> float:
        gc.collect()
        start = time.perf_counter()
        for _ in range(count):
            await run()
        return (time.perf_counter() - start) / count

    return batch


def timed_call(call: Callable[[], object]) -> Measure:
    """Return the measure of a plain function."""

    async def batch(count: int) -> float:
        gc.collect()
        start = time.perf_counter()
        for _ in range(count):
            call()
        return (time.perf_counter() - start) / count

    return batch


async def compare(a: Measure, b: Measure, repeats: int, count: int) -> tuple[float, float]:
    """Return the median seconds of ``a`` and the median ratio b/a of neighbouring batches."""
    if shortest:
        repeats, count = 1, min(count, 2)
    else:
        await a(count)
        await b(count)
    seconds, ratios = [], []
    for number in range(repeats):
        # The sides alternate in going first, so that a drift of the machine favours neither.
        first, second = (a, b) if number % 2 == 0 else (b, a)
        one, two = await first(count), await second(count)
        plain, other = (one, two) if number % 2 == 0 else (two, one)
        seconds.append(plain)
        ratios.append(other / plain)
    return statistics.median(seconds), statistics.median(ratios)


def environment(*packages: str) -> str:
    """Return the environment of the figures: Python, packages, machine."""
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return f"Python {platform.python_version()}, {versions}; {platform.machine()}, {platform.system()}"


class Rows:
    """Prints a table row by row while the figures are measured."""

    def __init__(self, console: Console, name: str, *headings: str, widths: tuple[int, ...]) -> None:
        self._console = console
        self._widths = widths
        self.row(name, *headings)

    def row(self, name: str, *cells: str) -> None:
        """Print one row."""
        first, *others = self._widths
        row = "".join(f"{cell:>{width}}" for cell, width in zip(cells, others, strict=True))
        self._console.print(f"{name:<{first}}{row}", highlight=False, markup=False)


RATIO_WIDTHS = (22, 16, 16, 6, 6, 6)
"""Widths of the columns: name, two sides, their ratio, the control, the goal."""
