"""Curves of trace databases: recording a run, and searching."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

from kantan_llm.tracing import SQLiteTracer, TraceQuery

from benchmarks.growth.checked_runs import ANSWER, answered
from benchmarks.growth.curve import PLAIN, Curve, Sides
from benchmarks.measure import Measure, RunOnce, timed_call
from benchmarks.overhead import make_tools, pair
from benchmarks.trace_files import copied_file, ended_trace, fill
from benchmarks.trace_runs import (
    INTERVAL,
    TracedModel,
    flush,
    one_turn,
    recorded_by_kantan_llm,
    seconds_of,
    traced_tool_turn,
)
from kantan_agents import TraceStore
from kantan_agents.traces.recorder import SQLiteRecorder

FREQUENT, RARE = "sunny", "hurricane"
LIMIT = 20
"""Number of traces that a search must find."""

_THEIR_SEARCH = "kantan-llm's search"


@asynccontextmanager
async def recorded(size: int, folder: Path) -> AsyncIterator[Sides]:
    """Yield a run with a tool call, until all its spans are in a file that already has ``size`` spans.

    The other side is the SDK's run, recorded by kantan-llm's tracer.
    """
    place = folder / f"recorded-{size}"
    place.mkdir()
    our_file, their_file = place / "ours.sqlite3", place / "theirs.sqlite3"
    if size:
        copied_file(await _indexed(size, folder), our_file)
        copied_file(await _filled(size, folder), their_file)
    plain, ours = pair(TracedModel(ANSWER, calls_tool=True), make_tools(1))
    recorder = SQLiteRecorder(our_file)
    our_measure = _until_written(answered(ours), recorder)
    await our_measure(1)
    with _tracer(their_file) as tracer:
        tracer.get_trace("")  # creates the tables
    before = _traces(their_file)
    yield Sides(our_measure, recorded_by_kantan_llm(answered(plain), lambda: their_file))
    recorder.shutdown()
    if _traces(their_file) == before:
        raise RuntimeError("kantan-llm's tracer recorded nothing")
    shutil.rmtree(place)


def _until_written(run: RunOnce, recorder: SQLiteRecorder) -> Measure:
    async def batch(count: int) -> float:
        before = recorder.stats().written
        seconds = await seconds_of(run, count, recorder)
        start = time.perf_counter()
        flush(recorder)
        waited = time.perf_counter() - start
        if recorder.stats().written - before < count:
            raise RuntimeError(f"of {count} runs {recorder.stats().written - before} spans were written")
        return seconds + waited / count

    return batch


def _traces(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        return int(connection.execute("SELECT COUNT(*) FROM traces").fetchone()[0])


@asynccontextmanager
async def search(size: int, folder: Path) -> AsyncIterator[Sides]:
    """Yield the search for the newest traces with a word that every trace contains; the file is open."""
    file = await _indexed(size, folder)
    with TraceStore(file) as store, _tracer(file) as tracer:
        yield _searches(store, tracer, FREQUENT, LIMIT)


@asynccontextmanager
async def search_opened(size: int, folder: Path) -> AsyncIterator[Sides]:
    """Yield the same search; our side opens the file each time."""
    file = await _indexed(size, folder)
    with _tracer(file) as tracer:
        yield _searches(TraceStore(file), tracer, FREQUENT, LIMIT)


@asynccontextmanager
async def search_read(size: int, folder: Path) -> AsyncIterator[Sides]:
    """Yield the same search; kantan-llm's side reads the spans found, for what a summary has."""
    file = await _indexed(size, folder)
    with TraceStore(file) as store, _tracer(file) as tracer:
        yield _searches(store, tracer, FREQUENT, LIMIT, reads_spans=True)


@asynccontextmanager
async def rare_search(size: int, folder: Path) -> AsyncIterator[Sides]:
    """Yield the search for a word that only the oldest trace contains."""
    file = await _indexed(size, folder)
    with _tracer(file) as tracer:
        yield _searches(TraceStore(file), tracer, RARE, 1)


@contextmanager
def _tracer(file: Path) -> Iterator[SQLiteTracer]:
    tracer = SQLiteTracer(str(file))
    try:
        yield tracer
    finally:
        tracer.shutdown()


def _searches(
    store: TraceStore, tracer: SQLiteTracer, word: str, expected: int, *, reads_spans: bool = False
) -> Sides:
    query = TraceQuery(keywords=[word], limit=LIMIT)

    def ours() -> None:
        _check(store.traces(keywords=[word], limit=LIMIT), expected)

    def theirs() -> None:
        found = tracer.search_traces(query=query)
        _check(found, expected)
        for trace in found if reads_spans else ():
            if not tracer.get_spans_by_trace(trace.trace_id):
                raise RuntimeError(f"{trace.trace_id} has no spans")

    return Sides(timed_call(ours), timed_call(theirs))


def _check(found: list[Any], expected: int) -> None:
    if len(found) != expected:
        raise RuntimeError(f"{len(found)} traces were found, not {expected}")


async def _filled(size: int, folder: Path) -> Path:
    """Return a file of kantan-llm's tracer with ``size`` spans and the rare word in the oldest trace only."""
    file = folder / f"{size}-spans.sqlite3"
    if not file.exists():
        fill(file, [await ended_trace(traced_tool_turn()), await ended_trace(one_turn())], size)
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute(
                "UPDATE spans SET output = ? WHERE rowid = "
                "(SELECT s.rowid FROM spans s JOIN traces t ON s.trace_id = t.id ORDER BY t.rowid LIMIT 1)",
                (RARE,),
            )
    return file


async def _indexed(size: int, folder: Path) -> Path:
    """Return such a file with the indexes of a recorder, and all traces in the search index."""
    file = folder / f"{size}-spans-indexed.sqlite3"
    if not file.exists():
        copied_file(await _filled(size, folder), file)
        recorder = SQLiteRecorder(file)
        (await ended_trace(one_turn())).record(recorder)
        flush(recorder)
        recorder.shutdown()
        TraceStore(file).build_index()
    return file


_SPANS_TO_FIND = 1_000
"""Minimum number of spans, so that there are more traces than a search must find."""

DATABASE_CURVES = (
    Curve(
        name="recorded",
        title="Recorded run",
        x="spans in the file",
        per="run",
        sizes=(0, 10_000, 100_000, 1_000_000),
        quick_sizes=(0, 10_000),
        sides=recorded,
        other=f"{PLAIN}, kantan-llm's tracer",
        # As long as the recorder's own interval: each batch ends with a flush.
        batch=INTERVAL,
    ),
    Curve(
        name="search",
        title=f"Search for the latest {LIMIT} traces with a word",
        x="spans in the file",
        per="search",
        sizes=(_SPANS_TO_FIND, 10_000, 100_000, 1_000_000),
        quick_sizes=(_SPANS_TO_FIND, 10_000),
        sides=search,
        other=_THEIR_SEARCH,
    ),
    Curve(
        name="search-opened",
        title=f"Search for the latest {LIMIT} traces with a word, and open the file for it",
        x="spans in the file",
        per="search",
        sizes=(_SPANS_TO_FIND, 10_000, 100_000, 1_000_000),
        quick_sizes=(_SPANS_TO_FIND, 10_000),
        sides=search_opened,
        other=f"{_THEIR_SEARCH}, which is open",
        is_published=False,
    ),
    Curve(
        name="search-read",
        title=f"Search for the latest {LIMIT} traces with a word, and what was asked and answered",
        x="spans in the file",
        per="search",
        sizes=(_SPANS_TO_FIND, 10_000, 100_000, 1_000_000),
        quick_sizes=(_SPANS_TO_FIND, 10_000),
        sides=search_read,
        other=f"{_THEIR_SEARCH}, and the spans of each trace",
        is_published=False,
    ),
    Curve(
        name="rare-search",
        title="Search for a word that the oldest trace has",
        x="spans in the file",
        per="search",
        sizes=(_SPANS_TO_FIND, 10_000, 100_000, 1_000_000),
        quick_sizes=(_SPANS_TO_FIND, 10_000),
        sides=rare_search,
        other=_THEIR_SEARCH,
    ),
)
