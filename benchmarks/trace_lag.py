"""How late an event loop is while many runs go on in it."""

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
"""Runs that go on at the same time."""

TICK = 0.001
"""Seconds from tick to tick."""

Lateness = Callable[[], Awaitable[float]]
"""Returns the 99th percentile of how late the ticks were, in seconds."""


async def lateness(run: RunOnce, processor: Any, seconds: float) -> float:
    """Return how late a tick was, in seconds, 99th percentile, while runs went on for ``seconds``.

    Every tick that was due counts, also those that came in a bunch because the loop was held: each stands
    for a request that came at that moment.
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
    # They do not begin together, or they would go on in step.
    await asyncio.sleep(share * (end - time.perf_counter()) / 4)
    while time.perf_counter() < end:
        await run()


async def compare_lateness(base: Lateness, others: list[Lateness], rounds: int) -> tuple[float, list[float]]:
    """Return the median of ``base`` and how much later each of ``others`` is, median of the rounds."""
    sides = [base, *others]
    figures: list[list[float]] = [[] for _ in sides]
    for number in range(rounds):
        # Another one goes first in each round.
        for place in range(len(sides)):
            side = (number + place) % len(sides)
            figures[side].append(await sides[side]())
    later = [
        statistics.median(other - plain for plain, other in zip(figures[0], figure, strict=True))
        for figure in figures[1:]
    ]
    return statistics.median(figures[0]), later
