"""Finds new traces in a file."""

from __future__ import annotations

import sqlite3
import time
from collections import deque
from collections.abc import Collection, Generator, Iterable
from contextlib import closing

import attrs

from kantan_agents.errors import TraceDatabaseError
from kantan_agents.traces.backend import backend_of
from kantan_agents.traces.database_url import Place
from kantan_agents.traces.store.connection import reading, sqlite_errors
from kantan_agents.traces.store.records import TraceSummary
from kantan_agents.traces.store.span_records import mapping_of
from kantan_agents.traces.store.summarize import read_summaries

# Several: they may be deleted, and SQLite then reuses their rowids.
_REMEMBERED = 100

_FINAL = "span_type = 'generation' AND name IS NULL AND parent_id IS NULL"
_OPEN = "span_type = 'custom' AND started_at IS NOT NULL AND ended_at IS NULL"  # as `has_only_begun`
_GONE = "it was deleted or replaced while it was followed"


@attrs.frozen
class _State:
    spans: int
    last: int
    ended: bool


def newest_traces(path: Place) -> list[str]:
    """Return the ids of the latest traces, the latest last."""
    with reading(path, by_trace=False) as connection:
        rows = connection.execute("SELECT id FROM all_traces ORDER BY rowid DESC LIMIT ?", (_REMEMBERED,))
        return [row["id"] for row in rows][::-1]


def traces_without_spans(connection: sqlite3.Connection, known: Collection[str]) -> list[str]:
    """Return the known traces without spans, and so without a start."""
    marks = ",".join("?" * len(known))
    rows = connection.execute(
        f"SELECT id FROM all_traces WHERE id IN ({marks}) "  # noqa: S608
        "AND NOT EXISTS (SELECT 1 FROM spans WHERE trace_id = all_traces.id) ORDER BY rowid",
        tuple(known),
    )
    return [row["id"] for row in rows]


def follow_traces(follower: Follower, poll: float) -> Generator[TraceSummary, None, None]:
    """Yield completed traces, polling; close ``follower`` at the end."""
    with closing(follower):
        while True:
            yield from follower.poll()
            time.sleep(poll)


class Follower:
    """Finds the traces completed since the last poll; for one thread at a time."""

    def __init__(self, path: Place, known: Iterable[str], earlier: Iterable[str] = ()) -> None:
        self._path = path
        self._known = deque(known, _REMEMBERED)
        self._waiting: dict[str, _State | None] = dict.fromkeys(earlier)
        self._version: object = None
        self._connection: sqlite3.Connection | None = None
        self._backend = backend_of(path)
        self._identity = self._backend.identity()

    def poll(self) -> list[TraceSummary]:
        """Return the traces completed since the last poll, the oldest first.

        A trace is complete if its final span is recorded and nothing was added since the last poll.
        """
        if self._backend.identity() != self._identity:
            raise TraceDatabaseError(path=str(self._path), reason=_GONE)
        with sqlite_errors(self._path):
            connection = self._opened()
            version = self._backend.changes(connection)
            if version != self._version:
                self._version = version
                self._add_new(connection)
                complete = [trace_id for trace_id in [*self._waiting] if self._update(connection, trace_id)]
            else:
                complete = [trace_id for trace_id, state in self._waiting.items() if state and state.ended]
            for trace_id in complete:
                del self._waiting[trace_id]
            return read_summaries(connection, complete)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._backend.open_to_read(any_thread=True)
            self._backend.prepare(self._connection, by_trace=False)
        return self._connection

    def _add_new(self, connection: sqlite3.Connection) -> None:
        marks = ",".join("?" * len(self._known))
        rows = connection.execute(
            "SELECT id FROM all_traces WHERE rowid > "  # noqa: S608
            f"(SELECT COALESCE(MAX(rowid), 0) FROM all_traces WHERE id IN ({marks})) ORDER BY rowid",
            tuple(self._known),
        )
        for row in rows:
            self._waiting[row["id"]] = None
            self._known.append(row["id"])

    def _update(self, connection: sqlite3.Connection, trace_id: str) -> bool:
        before, now = self._waiting[trace_id], _state(connection, trace_id)
        if now is None:
            del self._waiting[trace_id]
            return False
        self._waiting[trace_id] = now
        return now == before and now.ended


def _state(connection: sqlite3.Connection, trace_id: str) -> _State | None:
    trace = connection.execute("SELECT metadata_json FROM all_traces WHERE id = ?", (trace_id,)).fetchone()
    if trace is None:
        return None
    # A run records its final span last, shortly after the SDK's spans.
    has_final_span = "agent_run_id" in mapping_of(trace["metadata_json"])
    ending = _FINAL if has_final_span else "parent_id IS NULL"
    spans, last, ended, is_open = connection.execute(
        "SELECT COUNT(*), COALESCE(MAX(ingest_seq), 0), "  # noqa: S608
        f"MAX(CASE WHEN {ending} THEN 1 ELSE 0 END), MAX(CASE WHEN {_OPEN} THEN 1 ELSE 0 END) "
        "FROM spans WHERE trace_id = ?",
        (trace_id,),
    ).fetchone()
    return _State(spans, last, bool(ended) and not is_open)
