"""Checks kantan-llm's tables in a file, and adds temporary views for what an older or foreign file lacks.

The views have the names of the tables, so that kantan-llm's search uses them unchanged. They belong to the
connection; the file is not changed.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from kantan_agents.errors import TraceDatabaseError
from kantan_agents.tracing.metadata import finite

# The columns that kantan-llm has always had, and those that it adds to a file of an older version.
REQUIRED = {
    "traces": ("id", "workflow_name", "group_id"),
    "spans": (
        "id",
        "trace_id",
        "parent_id",
        "started_at",
        "ended_at",
        "span_type",
        "input",
        "output",
        "error_json",
        "raw_json",
    ),
}
ADDED = {
    "traces": ("metadata_json",),
    "spans": (
        "name",
        "ingest_seq",
        "output_kind",
        "tool_calls_json",
        "structured_json",
        "rubric_json",
        "usage_json",
    ),
}


def check_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Check that the tables are kantan-llm's.

    Raises:
        TraceDatabaseError: E60, they are not.
        sqlite3.Error: The file is not a database.
    """
    for table, columns in REQUIRED.items():
        found = _columns_of(connection, table)
        missing = [column for column in columns if column not in found]
        if missing:
            problem = f'table "{table}" lacks {", ".join(missing)}' if found else f'no table "{table}"'
            raise TraceDatabaseError(path=str(path), reason=f"it is not a trace database: {problem}")


def create_views(connection: sqlite3.Connection, *, by_trace: bool) -> None:
    """Create views that hide the tables, with repaired metadata and all columns.

    kantan-llm's search reads ``traces`` and ``spans``. ``all_traces`` has the same rows as ``traces``, and
    keeps them while a search restricts ``traces``.

    Args:
        connection: A new connection.
        by_trace: Whether spans will be read by trace. If the file has no index for that, a table in memory
            replaces it, for which the file is read once.
    """
    connection.create_function("repair", 1, _repair, deterministic=True)
    found = _columns_of(connection, "traces")
    metadata = valid_json("metadata_json") if "metadata_json" in found else "NULL"
    connection.execute(
        "CREATE TEMP VIEW all_traces AS SELECT rowid AS rowid, id, workflow_name, group_id, "  # noqa: S608
        f"{metadata} AS metadata_json FROM main.traces"
    )
    connection.execute("CREATE TEMP VIEW traces AS SELECT * FROM all_traces")
    missing = set(ADDED["spans"]) - _columns_of(connection, "spans")
    needs_index = by_trace and not _has_index_by_trace(connection)
    if needs_index:
        connection.execute(
            "CREATE TEMP TABLE spans_of_trace(trace_id TEXT, span INTEGER, PRIMARY KEY(trace_id, span)) "
            "WITHOUT ROWID"
        )
        connection.execute(
            "INSERT INTO spans_of_trace SELECT trace_id, rowid FROM main.spans WHERE trace_id IS NOT NULL"
        )
    if needs_index or missing:
        _create_spans_view(connection, missing, with_index=needs_index)


def valid_json(column: str) -> str:
    """Return SQL for the repaired JSON in ``column``: a NaN, which kantan-llm writes, fails a search."""
    return f"CASE WHEN json_valid({column}) THEN {column} WHEN {column} IS NOT NULL THEN repair({column}) END"


def storable_json(value: Any) -> str:
    """Return ``value`` as JSON text that SQLite accepts: without NaN and halves of surrogate pairs.

    Non-ASCII characters are not escaped, as in kantan-llm's rows: SQLite compares keys as they are written.
    """
    return storable_text(json.dumps(finite(value), ensure_ascii=False))


def storable_text(text: str) -> str:
    """Return ``text`` with "?" for characters that UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _repair(text: Any) -> str | None:
    """Return JSON text with null for NaN and infinities; None for text that is not JSON."""
    try:
        return storable_json(json.loads(text))
    except (TypeError, ValueError):
        return None


def _create_spans_view(connection: sqlite3.Connection, missing: set[str], *, with_index: bool) -> None:
    columns = [f"s.{name} AS {name}" for name in REQUIRED["spans"]]
    columns += [f"{'NULL' if name in missing else f's.{name}'} AS {name}" for name in ADDED["spans"]]
    source = "main.spans s"
    if with_index:
        source += " JOIN temp.spans_of_trace i ON i.trace_id = s.trace_id AND i.span = s.rowid"
    connection.execute(
        f"CREATE TEMP VIEW spans AS SELECT s.rowid AS rowid, {', '.join(columns)} FROM {source}"  # noqa: S608
    )


def _columns_of(connection: sqlite3.Connection, table: str) -> set[str]:
    """Return the names of the columns of ``table``; an empty set if the table is missing."""
    return {row["name"] for row in connection.execute(f"PRAGMA main.table_info({table})")}


def _has_index_by_trace(connection: sqlite3.Connection) -> bool:
    """Return whether the file has an index that finds the spans of a trace."""
    return any(
        not index["partial"] and _first_column(connection, index["name"]) == "trace_id"
        for index in connection.execute("PRAGMA main.index_list(spans)").fetchall()
    )


def _first_column(connection: sqlite3.Connection, index: str) -> str | None:
    quoted = index.replace('"', '""')
    rows = connection.execute(f'PRAGMA main.index_info("{quoted}")').fetchall()
    return next((row["name"] for row in rows if row["seqno"] == 0), None)
