"""Trace databases of any size and ended spans, copied from those of real runs."""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
from agents.tracing.util import gen_span_id
from kantan_llm.tracing import NoOpTracer, SQLiteTracer

from benchmarks.measure import RunOnce
from kantan_agents import set_trace_processors
from kantan_agents.traces.ids import new_run_id, trace_id_of

_FILL_KIB = 500_000


@attrs.frozen
class Ended:
    """A trace or a span as a processor receives it at its end."""

    trace_id: str
    span_id: str
    exported: dict[str, Any]

    def export(self) -> dict[str, Any]:
        """Return the exported dict."""
        return self.exported


@attrs.frozen
class EndedTrace:
    """A trace with its spans, in the order in which they ended."""

    trace: Ended
    spans: tuple[Ended, ...]

    def copied(self) -> EndedTrace:
        """Return a copy with new ids, generated as for runs."""
        trace_id = trace_id_of(new_run_id())
        ids = {span.span_id: gen_span_id() for span in self.spans}
        spans = []
        for span in self.spans:
            span_id, parent_id = ids[span.span_id], ids.get(span.exported["parent_id"])
            place = {"id": span_id, "trace_id": trace_id, "parent_id": parent_id}
            spans.append(Ended(trace_id, span_id, {**span.exported, **place}))
        return EndedTrace(Ended(trace_id, "", {**self.trace.exported, "id": trace_id}), tuple(spans))

    def record(self, processor: Any) -> None:
        """Pass it to ``processor``."""
        processor.on_trace_start(self.trace)
        for span in self.spans:
            processor.on_span_end(span)
        processor.on_trace_end(self.trace)


class _Collector(NoOpTracer):
    def __init__(self) -> None:
        self.trace: Ended | None = None
        self.spans: list[Ended] = []

    def on_trace_start(self, trace: Any) -> None:
        self.trace = Ended(trace.trace_id, "", trace.export())

    def on_span_end(self, span: Any) -> None:
        self.spans.append(Ended(span.trace_id, span.span_id, span.export()))


async def ended_trace(run: RunOnce) -> EndedTrace:
    """Return the trace that ``run`` creates.

    Raises:
        RuntimeError: It creates none.
    """
    collector = _Collector()
    set_trace_processors([collector])  # type: ignore[list-item]
    await run()
    if collector.trace is None:
        raise RuntimeError("the run made no trace")
    return EndedTrace(collector.trace, tuple(collector.spans))


def copies(original: EndedTrace, spans: int) -> list[EndedTrace]:
    """Return enough copies for at least ``spans`` spans."""
    return [original.copied() for _ in range(0, spans, len(original.spans))]


def fill(path: Path, originals: Sequence[EndedTrace], spans: int) -> None:
    """Create a database with ``spans`` spans, or a few more to complete the last trace.

    kantan-llm's own tracer writes the tables and the rows that are then multiplied.
    """
    tracer = SQLiteTracer(str(path))
    for original in originals:
        original.record(tracer)
    tracer.shutdown()
    times = math.ceil(spans / sum(len(original.spans) for original in originals))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(f"PRAGMA cache_size = -{_FILL_KIB}")
        connection.execute("BEGIN")
        # By their first digits, these traces are older than any created from now on.
        trace_id = "printf('trace_%024x', n.i) || substr({}, -8)"
        _multiply(connection, "traces", {"id": trace_id.format("id")}, times)
        span_id = "'span_' || lower(hex(randomblob(12)))"
        _multiply(connection, "spans", {"id": span_id, "trace_id": trace_id.format("trace_id")}, times)
        connection.execute("COMMIT")
    _onto_disk(path)


def _multiply(connection: sqlite3.Connection, table: str, changed: dict[str, str], times: int) -> None:
    columns = [column for _, column, *_ in connection.execute(f"PRAGMA table_info({table})")]
    values = ",".join(changed.get(column, column) for column in columns)
    connection.execute(f"CREATE TEMP TABLE model_{table} AS SELECT * FROM {table}")
    connection.execute(f"DELETE FROM {table}")
    connection.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
        f"INSERT INTO {table}({','.join(columns)}) SELECT {values} FROM n CROSS JOIN model_{table}",
        (times,),
    )


def _onto_disk(path: Path) -> None:
    """Make the system write the file now, not during a measurement."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def copied_file(path: Path, to: Path) -> Path:
    """Return ``to``, a copy of ``path``."""
    shutil.copyfile(path, to)
    _onto_disk(to)
    return to


def fresh_paths(folder: Path, name: str) -> Iterator[Path]:
    """Yield paths of new files, and remove the previous file each time."""
    number = 0
    while True:
        path = folder / f"{name}-{number}.sqlite3"
        yield path
        for old in folder.glob(f"{path.name}*"):
            old.unlink()
        number += 1
