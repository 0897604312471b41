"""Measures what the complete records of runs add to the file and to the work of the writer."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Measure, RunOnce
from benchmarks.overhead import make_tools, pair
from benchmarks.report import Report
from benchmarks.trace_runs import FLUSH_SECONDS, TEXT, TracedModel, flush
from kantan_agents import set_trace_processors
from kantan_agents.traces.recorder import SQLiteRecorder

GROWTH = 1.15
THROUGHPUT = 1 / (1 - 0.15)
"""How long a span may take in the writer, for 15 % fewer spans a second."""

TOOLS = 10
_AT_ONCE = 100
_BETWEEN_FLUSHES = 1_000
_NEVER = 3600.0
_SPANS_A_RUN = 8


def ten_tools() -> RunOnce:
    """Return a run of one agent that has ten tools and calls one of them."""
    return pair(TracedModel(TEXT, calls_tool=True), make_tools(TOOLS))[1]


async def measure_records(
    report: Report, fresh: Callable[[str], Callable[[], Path]], runs: int, spans: int
) -> None:
    """Compare recording with the records of runs to recording without them.

    Args:
        report: Where to print.
        fresh: Returns a function that returns new paths, for files of a name.
        runs: Runs in the file whose size is measured.
        spans: Spans that the writer receives at a time.
    """
    without = await _size(fresh("size-without")(), runs, is_wanted=False)
    records = await _size(fresh("size-with")(), runs, is_wanted=True)
    ratio = records / without
    report.say(
        f"\n{runs:,} runs of an agent with {TOOLS} tools: {without / runs:,.0f} bytes a run without records, "
        f"{records / runs:,.0f} with them, {ratio - 1:+.1%} (goal {GROWTH - 1:+.0%})"
    )
    report.judge("records in the file", ratio, GROWTH, f"{ratio - 1:+.1%}")
    report.begin("6. records, the writer, a span", "without", "with")
    await report.row(
        f"{TOOLS} tools",
        _written(fresh("without"), is_wanted=False),
        _written(fresh("with"), is_wanted=True),
        max(1, spans // _SPANS_A_RUN // 5),  # the runs themselves take much longer
        goal=THROUGHPUT,
    )


async def _size(path: Path, runs: int, *, is_wanted: bool) -> int:
    recorder = SQLiteRecorder(path, record_requests=is_wanted)
    run = ten_tools()
    for done in range(0, runs, _BETWEEN_FLUSHES):
        await _run_often(recorder, run, min(_BETWEEN_FLUSHES, runs - done))
        flush(recorder)  # the queue holds no more
    recorder.shutdown(FLUSH_SECONDS)
    return path.stat().st_size  # noqa: ASYNC240 - nothing else runs


async def _run_often(recorder: SQLiteRecorder, run: RunOnce, runs: int) -> None:
    set_trace_processors([recorder])
    for done in range(0, runs, _AT_ONCE):
        await asyncio.gather(*(run() for _ in range(min(_AT_ONCE, runs - done))))
    set_trace_processors([])


def _written(path: Callable[[], Path], *, is_wanted: bool) -> Measure:
    """Return the measure of writing one span, with the record of its run if ``is_wanted``."""
    run = ten_tools()

    async def batch(count: int) -> float:
        recorder = SQLiteRecorder(
            path(), record_requests=is_wanted, flush_interval=_NEVER, max_queue=40 * count + 1_000
        )
        await _run_often(recorder, run, 10)
        flush(recorder)
        before = recorder.stats().written
        await _run_often(recorder, run, count)
        if recorder.stats().written != before:
            raise RuntimeError("the writer has begun already")
        gc.collect()
        start = time.perf_counter()
        flush(recorder)
        seconds = time.perf_counter() - start
        spans = recorder.stats().written - before
        recorder.shutdown()
        return seconds / spans

    return batch
