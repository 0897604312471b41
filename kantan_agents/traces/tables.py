"""The layout of kantan-llm's tables, and temporary views that add missing parts.

The views have the names of the tables, so kantan-llm's search works unchanged.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import attrs

from kantan_agents.errors import TraceDatabaseError
from kantan_agents.traces.metadata import finite

# The columns that kantan-llm has always had or adds to older files.
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
class _Layout:
    columns: Mapping[str, frozenset[str]]
    has_index_by_trace: bool

    def lacks(self, table: str, columns: Mapping[str, tuple[str, ...]]) -> list[str]:
        return [column for column in columns[table] if column not in self.columns[table]]

    @property
    def has_all_columns(self) -> bool:
        return not any(self.lacks(table, columns) for columns in (REQUIRED, ADDED) for table in columns)


_known: dict[str, _Layout] = {}


def _layout_of(connection: sqlite3.Connection) -> _Layout:
    definitions = connection.execute(_DEFINITIONS).fetchone()[0]
    known = _known.get(definitions)
    if known is not None:
        return known
    layout = _Layout(
        {table: _columns_of(connection, table) for table in REQUIRED}, _has_index_by_trace(connection)
    )
    if _are_tables(definitions):
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[definitions] = layout
    return layout


def _are_tables(definitions: str) -> bool:
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


def check_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Check that the tables are kantan-llm's; raise E60 otherwise."""
    layout = _layout_of(connection)
    for table in REQUIRED:
        missing = layout.lacks(table, REQUIRED)
        if missing:
            has_table = bool(layout.columns[table])
            problem = f'table "{table}" lacks {", ".join(missing)}' if has_table else f'no table "{table}"'
            raise TraceDatabaseError(path=str(path), reason=f"it is not a trace database: {problem}")


def prepare(connection: sqlite3.Connection, *, by_trace: bool) -> None:
    """Prepare a new connection, with views only if the file needs them."""
    layout = _layout_of(connection)
    if layout.has_all_columns and (layout.has_index_by_trace or not by_trace):
        connection.create_function("repair", 1, _repair, deterministic=True)
    else:
        create_views(connection, by_trace=by_trace)


def create_views(connection: sqlite3.Connection, *, by_trace: bool) -> None:
    """Create missing views over the tables, with repaired metadata and all columns.

    ``all_traces`` has all rows, even while a search restricts ``traces``. No statement may be running.
    """
    if connection.execute("SELECT 1 FROM temp.sqlite_master WHERE name = 'all_traces'").fetchone():
        return
    connection.create_function("repair", 1, _repair, deterministic=True)
    layout = _layout_of(connection)
    metadata = "NULL" if layout.lacks("traces", ADDED) else valid_json("metadata_json")
    connection.execute(
        "CREATE TEMP VIEW all_traces AS SELECT rowid AS rowid, id, workflow_name, group_id, "  # noqa: S608
        f"{metadata} AS metadata_json FROM main.traces"
    )
    connection.execute("CREATE TEMP VIEW traces AS SELECT * FROM all_traces")
    missing = layout.lacks("spans", ADDED)
    needs_index = by_trace and not layout.has_index_by_trace
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
    """Return SQL that repairs JSON: kantan-llm writes NaN, which fails a search."""
    return f"CASE WHEN json_valid({column}) THEN {column} WHEN {column} IS NOT NULL THEN repair({column}) END"


def storable_json(value: Any) -> str:
    """Encode JSON for SQLite, without NaN and lone surrogates.

    Non-ASCII characters are not escaped, as in kantan-llm's rows: SQLite compares keys literally.
    """
    return storable_text(json.dumps(finite(value), ensure_ascii=False))


def storable_text(text: str) -> str:
    """Replace characters that UTF-8 cannot encode by "?"."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _repair(text: Any) -> str | None:
    try:
        return storable_json(json.loads(text))
    except (TypeError, ValueError):
        return None


def _create_spans_view(connection: sqlite3.Connection, missing: Collection[str], *, with_index: bool) -> None:
    columns = [f"s.{name} AS {name}" for name in REQUIRED["spans"]]
    columns += [f"{'NULL' if name in missing else f's.{name}'} AS {name}" for name in ADDED["spans"]]
    source = "main.spans s"
    if with_index:
        source += " JOIN temp.spans_of_trace i ON i.trace_id = s.trace_id AND i.span = s.rowid"
    connection.execute(
        f"CREATE TEMP VIEW spans AS SELECT s.rowid AS rowid, {', '.join(columns)} FROM {source}"  # noqa: S608
    )
