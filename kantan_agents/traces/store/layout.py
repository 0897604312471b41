"""Which of kantan-llm's columns and indexes the tables of a file have."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping

import attrs

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

_DEFINITIONS = """SELECT json_group_array(json_array(name, type, sql)) FROM main.sqlite_master
WHERE tbl_name IN ('traces', 'spans') AND type IN ('table', 'index')"""

# A process reads files of very few layouts.
_MOST_KNOWN = 16


@attrs.frozen
class Layout:
    """The tables ``traces`` and ``spans`` of a file.

    Attributes:
        columns: The names of their columns; an empty set for a table that is missing.
        has_index_by_trace: Whether the spans of a trace are found by an index.
    """

    columns: Mapping[str, frozenset[str]]
    has_index_by_trace: bool

    def lacks(self, table: str, columns: Mapping[str, tuple[str, ...]]) -> list[str]:
        """Return those of ``columns`` that ``table`` lacks."""
        return [column for column in columns[table] if column not in self.columns[table]]

    @property
    def has_all_columns(self) -> bool:
        """Whether no column is missing."""
        return not any(self.lacks(table, columns) for columns in (REQUIRED, ADDED) for table in columns)


_known: dict[str, Layout] = {}


def layout_of(connection: sqlite3.Connection) -> Layout:
    """Return the layout of a file; one of the same definitions as an earlier file is not read again.

    Raises:
        sqlite3.Error: The file is not a database, or it is locked.
    """
    definitions = connection.execute(_DEFINITIONS).fetchone()[0]
    known = _known.get(definitions)
    if known is not None:
        return known
    layout = Layout(
        {table: _columns_of(connection, table) for table in REQUIRED}, _has_index_by_trace(connection)
    )
    if _are_tables(definitions):
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[definitions] = layout
    return layout


def _are_tables(definitions: str) -> bool:
    """Return whether both are tables whose columns are in their definitions: no views, no virtual tables."""
    found = {name: sql for name, kind, sql in json.loads(definitions) if kind == "table"}
    return found.keys() == REQUIRED.keys() and all(sql.startswith("CREATE TABLE") for sql in found.values())


def _columns_of(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    return frozenset(row["name"] for row in connection.execute(f"PRAGMA main.table_info({table})"))


def _has_index_by_trace(connection: sqlite3.Connection) -> bool:
    return any(
        not index["partial"] and _first_column(connection, index["name"]) == "trace_id"
        for index in connection.execute("PRAGMA main.index_list(spans)").fetchall()
    )


def _first_column(connection: sqlite3.Connection, index: str) -> str | None:
    quoted = index.replace('"', '""')
    rows = connection.execute(f'PRAGMA main.index_info("{quoted}")').fetchall()
    return next((row["name"] for row in rows if row["seqno"] == 0), None)
