"""Reads the source of a copy in pages."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import attrs

from kantan_agents.traces.record_tables import CONTENTS, RUNS
from kantan_agents.traces.recorder.run_rows import Content, RunRow
from kantan_agents.traces.schema import COLUMNS
from kantan_agents.traces.store.run_records import has_run_tables

TraceRow = tuple[Any, ...]

_TRACES: Final = ", ".join(COLUMNS["traces"])
_SPANS: Final = ", ".join(COLUMNS["spans"])

# Tables that are not copied.
_LEFT_OUT: Final = {
    "kantan_agents_evaluations": "evaluations",
    "kantan_agents_scores": "scores of evaluations",
    "kantan_agents_experiments": "experiments",
    "kantan_agents_rollouts": "rollouts",
    "kantan_agents_run_scores": "scores of runs",
    "kantan_agents_sealed_openings": "openings of held-out cases",
}


class State(NamedTuple):
    """Equal for an unchanged trace in both databases."""

    row: TraceRow
    spans: int
    last_end: str | None
    runs: int


@attrs.frozen
class TracePage:
    """Some traces with their spans and records."""

    traces: Sequence[TraceRow]
    spans: Sequence[tuple[Any, ...]]
    runs: Sequence[RunRow]


class CopySource:
    """The source database."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._has_runs = has_run_tables(connection)
        self._contents: dict[int, Content] = {}

    def count(self) -> int:
        """Return the number of traces."""
        return int(self._connection.execute("SELECT COUNT(*) FROM all_traces").fetchone()[0])

    def pages(self, size: int) -> Iterator[list[TraceRow]]:
        """Yield the rows of the traces, the oldest first."""
        place = -1
        query = f"SELECT rowid, {_TRACES} FROM all_traces WHERE rowid > ? ORDER BY rowid LIMIT ?"  # noqa: S608
        while rows := self._connection.execute(query, (place, size)).fetchall():
            place = rows[-1][0]
            yield [tuple(row)[1:] for row in rows if row[1] is not None]

    def states(self, page: Sequence[TraceRow]) -> dict[str, State]:
        """Return the state of each trace."""
        return states_of(self._connection, page, has_runs=self._has_runs)

    def read(self, page: Sequence[TraceRow]) -> TracePage:
        """Return these traces with their spans and records."""
        ids = [row[0] for row in page]
        query = f"SELECT {_SPANS} FROM spans WHERE trace_id IN ({_marks(ids)}) ORDER BY ingest_seq"  # noqa: S608
        spans = [tuple(row) for row in self._connection.execute(query, ids)]
        return TracePage(page, spans, self._runs(ids) if self._has_runs else [])

    def _runs(self, ids: Sequence[str]) -> list[RunRow]:
        query = f"SELECT trace_id, run_id, contents, body FROM {RUNS} WHERE trace_id IN ({_marks(ids)})"  # noqa: S608
        found = [(*row[:3], row[3]) for row in map(tuple, self._connection.execute(query, ids))]
        numbers = {row[2]: json.loads(row[2]) for row in found}
        self._load({one for some in numbers.values() for one in some})
        return [
            RunRow(trace_id, bytes(run_id), tuple(self._contents[one] for one in numbers[contents]), body)
            for trace_id, run_id, contents, body in found
            if all(one in self._contents for one in numbers[contents])
        ]

    def _load(self, wanted: set[int]) -> None:
        missing = [*(wanted - self._contents.keys())]
        for start in range(0, len(missing), 500):
            chunk = missing[start : start + 500]
            query = f"SELECT id, hash, kind, parts, body FROM {CONTENTS} WHERE id IN ({_marks(chunk)})"  # noqa: S608
            rows = [tuple(row) for row in self._connection.execute(query, chunk)]
            parts: Mapping[int, list[int]] = {
                row[0]: json.loads(row[3]) for row in rows if row[3] is not None
            }
            self._load({one for some in parts.values() for one in some})
            for number, hashed, kind, _, body in rows:
                whole = tuple(self._contents[one] for one in parts.get(number, ()) if one in self._contents)
                self._contents[number] = Content(bytes(hashed), kind, body, whole)

    def left_out(self) -> list[str]:
        """Return the kinds of data that are not copied."""
        query = f"SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ({_marks(_LEFT_OUT)})"  # noqa: S608
        existing = [row[0] for row in self._connection.execute(query, [*_LEFT_OUT])]
        filled = [
            name
            for name in existing
            if self._connection.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone() is not None  # noqa: S608
        ]
        return [called for name, called in _LEFT_OUT.items() if name in filled]


def states_of(
    connection: sqlite3.Connection, page: Sequence[TraceRow], *, has_runs: bool
) -> dict[str, State]:
    """Return the states of the existing traces."""
    ids = [row[0] for row in page]
    query = f"SELECT {_TRACES} FROM all_traces WHERE id IN ({_marks(ids)})"  # noqa: S608
    rows = {row[0]: tuple(row) for row in connection.execute(query, ids)}
    query = (
        "SELECT trace_id, COUNT(*), MAX(ended_at) FROM spans "  # noqa: S608
        f"WHERE trace_id IN ({_marks(ids)}) GROUP BY trace_id"
    )
    spans = {row[0]: (row[1], row[2]) for row in connection.execute(query, ids)}
    runs: dict[str, int] = {}
    if has_runs:
        query = f"SELECT trace_id, COUNT(*) FROM {RUNS} WHERE trace_id IN ({_marks(ids)}) GROUP BY trace_id"  # noqa: S608
        runs = {row[0]: row[1] for row in connection.execute(query, ids)}
    return {
        trace_id: State(row, *spans.get(trace_id, (0, None)), runs.get(trace_id, 0))
        for trace_id, row in rows.items()
    }


def _marks(values: object) -> str:
    return ",".join("?" * len(values))  # type: ignore[arg-type]
