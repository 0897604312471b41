"""Measures the lag of an event loop with many concurrent runs."""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

from benchmarks.measure import RunOnce
from kantan_agents import set_trace_processors

AT_ONCE = 50
"""Number of concurrent runs."""

TICK = 0.001
"""Seconds between ticks."""

Lateness = Callable[[], Awaitable[float]]
"""Returns the 99th percentile of the ticks' lag, in seconds."""


async def lateness(run: RunOnce, processor: Any, seconds: float) -> float:
    """Return the 99th percentile of the ticks' lag in seconds, while runs go on for ``seconds``.

    Every due tick counts, also those that came together because the loop was blocked: each represents a
    request that arrived at that moment.
    """
    set_trace_processors([processor])
    gc.collect()
    end = time.perf_counter() + seconds
    runs = [asyncio.create_task(_repeat(run, end, number / AT_ONCE)) for number in range(AT_ONCE)]
    late: list[float] = []
    due = time.perf_counter() + TICK
    while due < end:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        now = time.perf_counter()
        while due <= now:
            late.append(now - due)
            due += TICK
    await asyncio.gather(*runs)
    return statistics.quantiles(late, n=100)[-1]


async def _repeat(run: RunOnce, end: float, share: float) -> None:
    # Staggered, since runs that start together would stay in step.
    await asyncio.sleep(share * (end - time.perf_counter()) / 4)
    while time.perf_counter() < end:
        await run()


async def compare_lateness(base: Lateness, others: list[Lateness], rounds: int) -> tuple[float, list[float]]:
    """Return the lag of ``base`` and how much larger that of each of ``others`` is, as medians."""
    sides = [base, *others]
    figures: list[list[float]] = [[] for _ in sides]
    for number in range(rounds):
        # In each round, another side goes first.
        for place in range(len(sides)):
            side = (number + place) % len(sides)
            figures[side].append(await sides[side]())
    later = [
        statistics.median(other - plain for plain, other in zip(figures[0], figure, strict=True))
        for figure in figures[1:]
    ]
    return statistics.median(figures[0]), later
