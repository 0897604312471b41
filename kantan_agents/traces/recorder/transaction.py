"""Writes the rows of a batch in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from kantan_agents.traces.recorder.merge import TraceRow, merge_traces
from kantan_agents.traces.recorder.rows import SpanRow
from kantan_agents.traces.recorder.run_rows import RunRow
from kantan_agents.traces.recorder.run_writing import has_run, write_runs
from kantan_agents.traces.schema import COLUMNS

# SQLite executes a statement without the GIL, and a busy event loop returns it after up to 5 ms. A span has
# 17 values, and older versions of SQLite accept at most 999 in a statement.
ROWS_PER_STATEMENT = 58

# Not REPLACE: traces are listed by rowid, which must stay.
_UPDATE = "ON CONFLICT(id) DO UPDATE SET " + ", ".join(
    f"{column} = excluded.{column}" for column in COLUMNS["traces"][1:]
)


def write_rows(
    connection: sqlite3.Connection,
    traces: Sequence[tuple[Any, ...]],
    spans: Sequence[SpanRow],
    runs: Sequence[RunRow],
) -> None:
    """Write all rows or none."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        traces_of_spans = {span.values[1]: None for span in spans}
        found = _found(connection, list({**{row[0]: None for row in traces}, **traces_of_spans}))
        _insert(connection, "INSERT", "traces", merge_traces(found, traces, spans), _UPDATE)
        _insert(connection, "INSERT OR REPLACE", "spans", _numbered(connection, spans, list(traces_of_spans)))
        if runs:
            write_runs(connection, runs)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def has_rows(
    connection: sqlite3.Connection,
    traces: Sequence[tuple[Any, ...]],
    spans: Sequence[SpanRow],
    runs: Sequence[RunRow],
) -> bool:
    """Return whether the database has these rows, by the last of the transaction."""
    if runs:
        return has_run(connection, runs[-1])
    table, row_id = ("spans", spans[-1].values[0]) if spans else ("traces", traces[-1][0] if traces else None)
    query = f"SELECT 1 FROM {table} WHERE id = ?"  # noqa: S608
    return row_id is None or connection.execute(query, (row_id,)).fetchone() is not None


def _found(connection: sqlite3.Connection, trace_ids: Sequence[str]) -> dict[str, TraceRow]:
    columns = ",".join(COLUMNS["traces"])
    found: dict[str, TraceRow] = {}
    for chunk in _chunks(trace_ids):
        query = f"SELECT {columns} FROM traces WHERE id IN ({','.join('?' * len(chunk))})"  # noqa: S608
        found.update((row[0], row) for row in connection.execute(query, chunk))
    return found


def _insert(
    connection: sqlite3.Connection,
    verb: str,
    table: str,
    rows: Sequence[tuple[Any, ...]],
    on_conflict: str = "",
) -> None:
    columns = COLUMNS[table]
    for chunk in _chunks(rows):
        values = ",".join([f"({','.join('?' * len(columns))})"] * len(chunk))
        statement = f"{verb} INTO {table}({','.join(columns)}) VALUES {values} {on_conflict}"
        connection.execute(statement, list(chain.from_iterable(chunk)))


def _numbered(
    connection: sqlite3.Connection, spans: Sequence[SpanRow], trace_ids: Sequence[str]
) -> list[tuple[Any, ...]]:
    last: dict[str, int] = {}
    for chunk in _chunks(trace_ids):
        marks = ",".join("?" * len(chunk))
        query = f"SELECT trace_id, MAX(ingest_seq) FROM spans WHERE trace_id IN ({marks}) GROUP BY trace_id"  # noqa: S608
        last.update((trace_id, number or 0) for trace_id, number in connection.execute(query, chunk))
    rows = []
    for span in spans:
        trace_id = span.values[1]
        number = last.get(trace_id, 0) + 1
        last[trace_id] = number
        rows.append((*span.values, number))
    return rows


def _chunks(rows: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (rows[start : start + ROWS_PER_STATEMENT] for start in range(0, len(rows), ROWS_PER_STATEMENT))
