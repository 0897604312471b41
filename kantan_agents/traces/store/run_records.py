"""Reads the complete records of runs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final

from kantan_agents.traces.capture import RunRecord
from kantan_agents.traces.capture.canonical import decode
from kantan_agents.traces.capture.reading import UnknownVersionError, run_record
from kantan_agents.traces.record_tables import CONTENTS, RUNS

NO_RECORD: Final = (
    "run {}: it has no record: the process ended before it was written, the run keeps its content out of "
    "traces, record_requests was off, or it was recorded by an earlier version"
)
INSIDE_OPEN: Final = "run {}: what it is inside of has not ended, or its process was killed"
READING_ERRORS: Final = (
    AttributeError,
    LookupError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)
_IDS_PER_STATEMENT: Final = 500


def has_run_tables(connection: sqlite3.Connection) -> bool:
    """Return whether the tables for records exist."""
    query = "SELECT COUNT(*) FROM main.sqlite_master WHERE type = 'table' AND name IN (?, ?)"
    return bool(connection.execute(query, (CONTENTS, RUNS)).fetchone()[0] == 2)  # noqa: PLR2004


class Contents:
    """The content items of a file, each read once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._known: dict[int, Any] = {}

    def get(self, content: int) -> Any:
        """Return an item as JSON data, or raise KeyError."""
        if content not in self._known:
            self.load([content])
        return self._known[content]

    def load(self, ids: Iterable[int]) -> None:
        """Prefetch items."""
        wanted = [content for content in dict.fromkeys(ids) if content not in self._known]
        for start in range(0, len(wanted), _IDS_PER_STATEMENT):
            chunk = wanted[start : start + _IDS_PER_STATEMENT]
            marks = ",".join("?" * len(chunk))
            query = f"SELECT id, parts, CAST(body AS BLOB) FROM {CONTENTS} WHERE id IN ({marks})"  # noqa: S608
            for content, parts, body in self._connection.execute(query, chunk).fetchall():
                self._known[content] = decode(body) if parts is None else self._parts(json.loads(parts))

    def _parts(self, ids: Sequence[int]) -> list[Any]:
        self.load(ids)
        return [self._known[content] for content in ids]


def read_runs(connection: sqlite3.Connection, trace_id: str) -> tuple[list[RunRecord], list[str]]:
    """Return a trace's records by start, and descriptions of unreadable ones."""
    if not has_run_tables(connection):
        return [], []
    # As bytes: one invalid string must not stop everything else.
    columns = "CAST(run_id AS BLOB), CAST(contents AS BLOB), CAST(body AS BLOB)"
    query = f"SELECT {columns} FROM {RUNS} WHERE trace_id = ?"  # noqa: S608
    rows = connection.execute(query, (trace_id,)).fetchall()
    known = Contents(connection)
    runs: list[RunRecord] = []
    unreadable: list[str] = []
    for run_id, contents, body in rows:
        found = _record(known, trace_id, run_id, contents, body)
        if isinstance(found, str):
            unreadable.append(found)
        else:
            runs.append(found)
    return sorted(runs, key=lambda run: (run.started_at, run.id)), unreadable


def _record(
    known: Contents, trace_id: str, packed_id: bytes, contents: bytes, body: bytes
) -> RunRecord | str:
    run_id = packed_id.hex() if isinstance(packed_id, bytes) else str(packed_id)
    try:
        ids = json.loads(contents)
        known.load(ids)
        return run_record(run_id, trace_id, decode(body), lambda place: known.get(ids[place]))
    except READING_ERRORS as error:
        return unreadable(run_id, error)


def unreadable(run_id: str, error: Exception) -> str:
    """Describe a record that cannot be read."""
    reason = str(error) if isinstance(error, UnknownVersionError) else "it is damaged"
    return f"the record of run {run_id} cannot be read: {reason}"


def missing_of(runs: Sequence[RunRecord], run_ids: Iterable[str], unreadable: Sequence[str]) -> list[str]:
    """Describe the missing records; the spans name ``run_ids``."""
    found = {run.id for run in runs}
    inner = [run_id for run in runs for run_id in run.inner_runs]
    named = list(dict.fromkeys([*run_ids, *inner]))
    missing = [f"run {run.id}: {reason}" for run in runs for reason in run.missing]
    missing += [NO_RECORD.format(run_id) for run_id in named if run_id not in found]
    if not found and not named:
        missing.append("no run of an Agent of this library is in it")
    return [*missing, *unreadable]
