"""The tables of kantan-llm, as they are found: which columns there are, and whether it is them at all."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from kantan_agents.errors import TraceDatabaseError

# What kantan-llm has had from the beginning, and what it adds to a file of an older version.
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
    """Make sure that the tables are kantan-llm's.

    Raises:
        TraceDatabaseError: E60, they are not.
        sqlite3.Error: The file is no database.
    """
    for table, columns in REQUIRED.items():
        found = columns_of(connection, table)
        missing = [column for column in columns if column not in found]
        if missing:
            problem = f'table "{table}" lacks {", ".join(missing)}' if found else f'no table "{table}"'
            raise TraceDatabaseError(path=str(path), reason=f"it is not a trace database: {problem}")


def columns_of(connection: sqlite3.Connection, table: str) -> set[str]:
    """Return the names of the columns of ``table``; none if there is no such table."""
    return {row["name"] for row in connection.execute(f"PRAGMA main.table_info({table})")}


def has_index_by_trace(connection: sqlite3.Connection) -> bool:
    """Return whether spans can be found by their trace without reading all of them."""
    return any(
        not index["partial"] and _first_column(connection, index["name"]) == "trace_id"
        for index in connection.execute("PRAGMA main.index_list(spans)").fetchall()
    )


def _first_column(connection: sqlite3.Connection, index: str) -> str | None:
    quoted = index.replace('"', '""')
    rows = connection.execute(f'PRAGMA main.index_info("{quoted}")').fetchall()
    return next((row["name"] for row in rows if row["seqno"] == 0), None)
