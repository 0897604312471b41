"""Measures how the cost of recording grows with the file, also with kantan-llm's tracer."""

from __future__ import annotations

import shutil
import time
from collections.abc import Generator, Sequence
from functools import partial
from pathlib import Path

import attrs

from benchmarks.measure import RunOnce, compare
from benchmarks.report import Report
from benchmarks.trace_files import EndedTrace, copied_file, ended_trace, fill, fresh_paths
from benchmarks.trace_runs import (
    SHORT,
    Recorded,
    flush,
    one_turn,
    recorded_by_kantan_llm,
    runs_in,
    traced_tool_turn,
    unrecorded,
)
from benchmarks.trace_writing import collecting, fresh_recorders, written
from kantan_agents.traces.recorder import SQLiteRecorder

FLAT = 1.10
AT_A_TIME = 4_000
"""Spans that the writer receives at a time."""


@attrs.frozen
class Point:
    """Costs in seconds at one size of the file.

    Attributes:
        spans: Spans in the file.
        run: A recorded run, at the caller.
        writing: The recorder's thread, for the spans of one run.
        theirs: A run that kantan-llm's tracer records.
    """

    spans: int
    run: float
    writing: float
    theirs: float


@attrs.frozen
class Growth:
    """The cost of a run by the size of the file; ``unrecorded`` is the run alone, in seconds."""

    unrecorded: float
    points: list[Point]


async def measure_growth(
    report: Report, folder: Path, sizes: Sequence[int], repeats: int, slow_repeats: int
) -> Growth:
    """Measure the cost with an empty file against that with each of ``sizes``, and print the table."""
    run = traced_tool_turn()
    count = await runs_in(SHORT, run)
    originals = [await ended_trace(traced_tool_turn()), await ended_trace(one_turn())]
    recorder = SQLiteRecorder(folder / "plain.sqlite3")
    _, of_recording = await compare(unrecorded(run), Recorded(run, recorder), repeats, count)
    recorder.shutdown()
    report.begin("7. spans in the file", "none", "so many")
    points: list[Point] = []
    for size in sizes:
        place = folder / f"{size}-spans"
        place.mkdir()
        file = place / "kantan-llm.sqlite3"
        fill(file, originals, size)
        bench = _Size(report, place, file, size, originals[0])
        report.repeats = repeats
        empty_run, run_ratio = await bench.at_the_caller(run, count)
        report.repeats = max(3, repeats // 3)
        empty_span, span_ratio = await bench.in_the_writer()
        report.repeats = slow_repeats
        empty_theirs, their_ratio = await bench.by_kantan_llm(run)
        if not points:
            points.append(Point(0, empty_run, empty_span * bench.spans_a_run, empty_theirs))
        # From the ratios, because the machine's speed may have changed between two sizes.
        first = points[0]
        points.append(
            Point(size, first.run * run_ratio, first.writing * span_ratio, first.theirs * their_ratio)
        )
        shutil.rmtree(place)
    return Growth(points[0].run / of_recording, points)


@attrs.frozen
class _Size:
    report: Report
    folder: Path
    file: Path
    size: int
    original: EndedTrace

    @property
    def spans_a_run(self) -> int:
        return len(self.original.spans)

    async def at_the_caller(self, run: RunOnce, count: int) -> tuple[float, float]:
        empty = SQLiteRecorder(self.folder / "empty.sqlite3")
        large = SQLiteRecorder(copied_file(self.file, self.folder / "large.sqlite3"))
        self.original.copied().record(large)
        start = time.perf_counter()
        flush(large)
        opened = time.perf_counter() - start
        figures = await self.report.row(
            f"recorded run, {self.size:,}", Recorded(run, empty), Recorded(run, large), count, goal=FLAT
        )
        self.report.say(f"   the indexes of a file of {self.size:,} were made in {opened:.1f} s, once")
        empty.shutdown()
        large.shutdown()
        return figures

    async def in_the_writer(self) -> tuple[float, float]:
        empty = fresh_recorders(partial(next, fresh_paths(self.folder, "none")), AT_A_TIME)
        if self.size < 10 * AT_A_TIME * self.report.repeats:
            # Otherwise the file would soon be much larger.
            paths = fresh_paths(self.folder, "copy")
            large = fresh_recorders(lambda: copied_file(self.file, next(paths)), AT_A_TIME)
        else:
            large = _always(collecting(self.folder / "large.sqlite3", AT_A_TIME))
        figures = await self.report.row(
            f"writer, a span, {self.size:,}",
            written(self.original, partial(next, empty)),
            written(self.original, partial(next, large)),
            AT_A_TIME,
            goal=FLAT,
        )
        empty.close()
        large.close()
        return figures

    async def by_kantan_llm(self, run: RunOnce) -> tuple[float, float]:
        paths = fresh_paths(self.folder, "theirs")
        return await self.report.row(
            f"SQLiteTracer's run, {self.size:,}",
            recorded_by_kantan_llm(run, partial(next, paths)),
            recorded_by_kantan_llm(run, lambda: self.file),
            1,
        )


def _always(recorder: SQLiteRecorder) -> Generator[SQLiteRecorder, None, None]:
    try:
        while True:
            yield recorder
    finally:
        recorder.shutdown()
