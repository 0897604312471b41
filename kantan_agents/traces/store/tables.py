"""Checks kantan-llm's tables in a file, and adds temporary views for what an older or foreign file lacks.

The views have the names of the tables, so that kantan-llm's search uses them unchanged. They belong to the
connection; the file is not changed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection
from pathlib import Path
from typing import Any

from kantan_agents.errors import TraceDatabaseError
from kantan_agents.traces.database_url import is_server
from kantan_agents.traces.metadata import finite
from kantan_agents.traces.store.layout import ADDED, REQUIRED, layout_of


def check_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Check that the tables are kantan-llm's.

    Raises:
        TraceDatabaseError: E60, they are not.
        sqlite3.Error: The file is not a database.
    """
    layout = layout_of(connection)
    for table in REQUIRED:
        missing = layout.lacks(table, REQUIRED)
        if missing:
            has_table = bool(layout.columns[table])
            problem = f'table "{table}" lacks {", ".join(missing)}' if has_table else f'no table "{table}"'
            raise TraceDatabaseError(path=str(path), reason=f"it is not a trace database: {problem}")


def prepare(connection: sqlite3.Connection, *, by_trace: bool) -> None:
    """Prepare a new connection for queries on the two tables, with views only if the file needs them.

    Without views, ``metadata_json`` is not repaired, and kantan-llm's search cannot be used.

    Args:
        connection: A new connection.
        by_trace: As for ``create_views``.
    """
    if is_server(connection):
        return
    layout = layout_of(connection)
    if layout.has_all_columns and (layout.has_index_by_trace or not by_trace):
        connection.create_function("repair", 1, _repair, deterministic=True)
    else:
        create_views(connection, by_trace=by_trace)


def create_views(connection: sqlite3.Connection, *, by_trace: bool) -> None:
    """Create views that hide the tables, with repaired metadata and all columns; leave those that exist.

    kantan-llm's search reads ``traces`` and ``spans``. ``all_traces`` has the same rows as ``traces``, and
    keeps them while a search restricts ``traces``.

    Args:
        connection: A connection on which no statement is running.
        by_trace: Whether spans will be read by trace. If the file has no index for that, a table in memory
            replaces it, for which the file is read once.
    """
    if is_server(connection):
        return  # its tables have all columns, and valid JSON
    if connection.execute("SELECT 1 FROM temp.sqlite_master WHERE name = 'all_traces'").fetchone():
        return
    connection.create_function("repair", 1, _repair, deterministic=True)
    layout = layout_of(connection)
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


def _create_spans_view(connection: sqlite3.Connection, missing: Collection[str], *, with_index: bool) -> None:
    columns = [f"s.{name} AS {name}" for name in REQUIRED["spans"]]
    columns += [f"{'NULL' if name in missing else f's.{name}'} AS {name}" for name in ADDED["spans"]]
    source = "main.spans s"
    if with_index:
        source += " JOIN temp.spans_of_trace i ON i.trace_id = s.trace_id AND i.span = s.rowid"
    connection.execute(
        f"CREATE TEMP VIEW spans AS SELECT s.rowid AS rowid, {', '.join(columns)} FROM {source}"  # noqa: S608
    )
