"""Measures the cost of recording traces: in the run, on the event loop, in the writer, and as the file grows.

    python benchmarks/tracing.py [--repeats 31] [--quick] [--plot FILE]

Two sides take turns in short batches; a figure is the median, a ratio the median of the ratios of
neighbouring batches, and ``A/A`` a side against itself. The runs are those of kantan_agents on a model that
answers at once, so that nothing hides a cost. A run is measured in two ways:

- at the caller: in batches so short that the recorder's thread writes only after the timed part;
- sustained: in batches of several flush intervals, during which that thread writes and competes with the runs
  for the interpreter lock.

Below each of these tables is the number of spans that were written within the timed parts.

Files of up to 3 GB are created in a temporary directory (see ``TMPDIR``) and removed. Missed goals are listed
at the end, and the exit code is then 1, except with ``--quick``.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import attrs
from kantan_llm.tracing import NoOpTracer, SQLiteTracer
from rich.console import Console

if __name__ == "__main__":
    # Not this folder, whose statistics.py would hide that of the standard library.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks import measure
from benchmarks.measure import Measure, Rows, RunOnce, environment
from benchmarks.overhead import at_once
from benchmarks.report import Report, milliseconds
from benchmarks.trace_files import ended_trace, fresh_paths
from benchmarks.trace_growth import measure_growth
from benchmarks.trace_lag import AT_ONCE, compare_lateness, lateness
from benchmarks.trace_records import measure_records
from benchmarks.trace_runs import (
    INTERVAL,
    SHORT,
    Recorded,
    flush,
    one_turn,
    recorded_by_kantan_llm,
    runs_in,
    tool_turn,
    traced_tool_turn,
    unrecorded,
    waiting_turn,
)
from benchmarks.trace_writing import fresh_recorders, written, written_by_kantan_llm
from kantan_agents.traces.recorder import SQLiteRecorder

AT_THE_CALLER = 1.10
MANY_AT_ONCE = 1.15
SUSTAINED = 1.15
AGAINST_KANTAN_LLM = 0.25
LATER = 0.005
SPANS_A_SECOND = 20_000
TIMES_AS_FAST = 10

FEW_RUNS = 5
"""Runs in a batch of kantan-llm's tracer; few, so that its file stays almost empty."""

MODEL_SECONDS = 0.5
"""Seconds that a model takes in runs that wait for it."""

PACKAGES = ("openai-agents", "openai", "kantan-llm")


@attrs.frozen
class Sizes:
    """How much to measure.

    Attributes:
        repeats: Batches per side.
        long_repeats: Batches per side if a batch takes about a second.
        long_seconds: Seconds of a sustained batch, and of a measurement of the event loop.
        written: Spans that the writer receives at a time.
        files: Numbers of spans in the files.
        slow_repeats: Batches of kantan-llm's tracer on a large file.
        recorded_runs: Runs in the file whose growth by records is measured.
    """

    repeats: int
    long_repeats: int
    long_seconds: float
    written: int
    files: tuple[int, ...]
    slow_repeats: int
    recorded_runs: int


QUICK = Sizes(
    repeats=3,
    long_repeats=1,
    long_seconds=3 * INTERVAL,
    written=4_000,
    files=(10_000, 50_000),
    slow_repeats=1,
    recorded_runs=1_000,
)
WHOLE = Sizes(
    repeats=31,
    long_repeats=7,
    long_seconds=6 * INTERVAL,
    written=20_000,
    files=(10_000, 100_000, 1_000_000),
    slow_repeats=3,
    recorded_runs=10_000,
)


@attrs.frozen
class Bench:
    """The shared parts of the benchmark."""

    report: Report
    sizes: Sizes
    folder: Path

    def recorder(self, name: str) -> SQLiteRecorder:
        """Return a recorder with default options and its own file."""
        return SQLiteRecorder(self.folder / f"{name}.sqlite3")

    def fresh(self, name: str) -> Callable[[], Path]:
        """Return a function that returns a new path each time."""
        return partial(next, fresh_paths(self.folder, name))


async def at_the_caller(bench: Bench) -> dict[str, float]:
    """Measure the cost of recording for the run; return the ratios."""
    report, recorder, ratios, sides = bench.report, bench.recorder("caller"), {}, []
    report.repeats = bench.sizes.repeats
    report.begin("1. recorded, at the caller", "no-op", "recorder")
    for name, run, goal in _runs():
        side = Recorded(run, recorder)
        _, ratios[name] = await report.row(name, unrecorded(run), side, await runs_in(SHORT, run), goal=goal)
        sides.append(side)
    _say_written(report, sides)
    recorder.shutdown()
    return ratios


async def sustained(bench: Bench) -> None:
    """Measure the cost of recording for runs that never pause, while the writer works at the same time."""
    report, recorder, sides = bench.report, bench.recorder("sustained"), []
    report.repeats = bench.sizes.long_repeats
    report.begin("   recorded, sustained", "no-op", "recorder")
    for name, run, _ in _runs():
        if name == "tool turn":
            continue  # the next run includes everything of this one
        side = Recorded(run, recorder)
        count = await runs_in(bench.sizes.long_seconds, run)
        await report.row(f"{name}, sustained", unrecorded(run), side, count, goal=SUSTAINED)
        sides.append(side)
    _say_written(report, sides)
    recorder.shutdown()


def _runs() -> list[tuple[str, RunOnce, float]]:
    """Return the runs and the maximum cost of recording each, at the caller."""
    return [
        ("one turn", one_turn(), AT_THE_CALLER),
        ("tool turn", tool_turn(), AT_THE_CALLER),
        ("tool turn, model spans", traced_tool_turn(), AT_THE_CALLER),
        (f"{AT_ONCE} at once", at_once(one_turn(), AT_ONCE), MANY_AT_ONCE),
    ]


def _say_written(report: Report, sides: list[Recorded]) -> None:
    ended, meanwhile = sum(side.ended for side in sides), sum(side.written for side in sides)
    report.say(f"   written within the timed parts: {meanwhile:,} of {ended:,} spans")


async def against_kantan_llm(bench: Bench, ratios: dict[str, float]) -> None:
    """Measure a recorded run against one that kantan-llm's tracer records, each batch in a new file."""
    report, recorder = bench.report, bench.recorder("against")
    report.repeats = max(3, bench.sizes.repeats // 2)
    report.begin("2. against kantan-llm, empty file", "SQLiteTracer", "recorder")
    for name, run, _ in _runs()[:-1]:
        theirs = recorded_by_kantan_llm(run, bench.fresh("theirs"))
        ours = Recorded(run, recorder)
        _, ratio = await report.row(f"{name}, recorded", theirs, ours, FEW_RUNS, goal=AGAINST_KANTAN_LLM)
        # What each adds to the run with a no-op processor, which both contain.
        added = (ratios[name] - 1) / (ratios[name] / ratio - 1)
        report.say(f"   of what SQLiteTracer adds to the run, the recorder adds {added:.1%}")
    recorder.shutdown()


async def event_loop(bench: Bench) -> None:
    """Measure the lag of the event loop with many concurrent runs."""
    report, recorder, path = bench.report, bench.recorder("loop"), bench.fresh("theirs")
    noop: Any = NoOpTracer()
    report.say(
        f"\nHow late the event loop is, p99, with {AT_ONCE} runs at a time; "
        f"median of {bench.sizes.long_repeats} rounds"
    )
    headings = ("no-op", "recorder", "goal", "SQLiteTracer")
    rows = Rows(report.console, "3. event loop", *headings, widths=(36, 14, 14, 14, 16))
    for name, run in (
        (f"models take {MODEL_SECONDS:g} s", waiting_turn(MODEL_SECONDS)),
        ("models answer at once", one_turn()),
    ):
        late = partial(lateness, run, seconds=bench.sizes.long_seconds)

        async def theirs(late: Any = late) -> float:
            tracer = SQLiteTracer(str(path()))
            tracer.get_trace("")
            try:
                return float(await late(tracer))
            finally:
                tracer.shutdown()

        async def ours(late: Any = late) -> float:
            try:
                return float(await late(recorder))
            finally:
                flush(recorder)

        plain, (later, much_later) = await compare_lateness(
            partial(late, noop), [ours, theirs], bench.sizes.long_repeats
        )
        rows.row(name, milliseconds(plain), *(_more(seconds) for seconds in (later, LATER, much_later)))
        report.judge(name, later, LATER, f"the event loop is {milliseconds(later)} later")
    recorder.shutdown()


def _more(seconds: float) -> str:
    sign = "+" if seconds >= 0 else ""
    return f"{sign}{milliseconds(seconds)}"


async def writer(bench: Bench) -> None:
    """Measure how fast queued spans are written."""
    report, sizes = bench.report, bench.sizes
    original = await ended_trace(traced_tool_turn())
    kinds = ", ".join(sorted({span.exported["span_data"]["type"] for span in original.spans}))
    report.say(f"\nSpans as a run on a real model leaves them: {len(original.spans)} a run ({kinds})")
    report.repeats = sizes.long_repeats
    report.begin("4. writer, a span", "SQLiteTracer", "recorder")
    recorders = fresh_recorders(bench.fresh("writer"), sizes.written)
    ours = written(original, partial(next, recorders))
    theirs = written_by_kantan_llm(original, bench.fresh("theirs"))
    few = sizes.written // 50
    seconds, ratio = await report.row(
        "on an empty file", theirs, _of(ours, sizes.written), few, goal=1 / TIMES_AS_FAST
    )
    recorders.close()
    rates = [round(1 / seconds), round(1 / seconds / ratio)]
    report.say(
        f"   spans a second: {rates[0]:,} and {rates[1]:,} (goal {SPANS_A_SECOND:,}), "
        f"{1 / ratio:.0f} times as many (goal {TIMES_AS_FAST})"
    )
    report.judge("writer", seconds * ratio, 1 / SPANS_A_SECOND, f"{rates[1]:,} spans a second")


def _of(measure: Measure, count: int) -> Measure:
    """Return the same measure with batches of ``count``, independent of the other side's batches."""
    return lambda _: measure(count)


def machine() -> str:
    """Return a description of the machine and the versions."""
    return f"{environment(*PACKAGES)}, {os.cpu_count()} cores"


async def main(sizes: Sizes, plot: Path | None) -> list[str]:
    """Measure everything, print the tables, draw the plot, and return the goals that were missed."""
    if plot is not None:
        from benchmarks.trace_plot import draw  # matplotlib is needed for this alone
    report = Report(Console(width=110), sizes.repeats)
    report.say(machine())
    report.say(f"{sizes.repeats} repeats, {sizes.long_repeats} of long batches")
    start = time.perf_counter()
    gc.collect()
    gc.freeze()  # so that collections between the batches are fast
    with tempfile.TemporaryDirectory(prefix="kantan-agents-") as folder:
        bench = Bench(report, sizes, Path(folder))
        ratios = await at_the_caller(bench)
        await sustained(bench)
        await against_kantan_llm(bench, ratios)
        await event_loop(bench)
        await writer(bench)
        await measure_records(report, bench.fresh, sizes.recorded_runs, sizes.written)
        growth = await measure_growth(
            report, bench.folder, sizes.files, repeats=sizes.repeats, slow_repeats=sizes.slow_repeats
        )
    if plot is not None:
        draw(growth, plot, machine())
        report.say(f"\ndrawn: {plot}")
    report.say(f"\n{time.perf_counter() - start:,.0f} s")
    return report.missed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, help=f"batches a side (default {WHOLE.repeats})")
    parser.add_argument("--quick", action="store_true", help="few repeats and small files, for CI")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw cost against spans in the file (PNG)")
    options = parser.parse_args()
    chosen = QUICK if options.quick else WHOLE
    if measure.shortest:
        chosen = attrs.evolve(chosen, files=(500, 1_000))
    if options.repeats is not None:
        chosen = attrs.evolve(chosen, repeats=max(3, options.repeats))
    missed = asyncio.run(main(chosen, options.plot))
    for goal in missed:
        sys.stdout.write(f"GOAL MISSED  {goal}\n")
    sys.exit(1 if missed and not options.quick else 0)
