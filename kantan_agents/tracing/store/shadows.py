"""Temporary views over kantan-llm's tables, for what a file lacks that its search needs.

They carry the tables' own names, so kantan-llm's search reads them without knowing; they belong to the
connection, so the file stays as it is.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from kantan_agents.tracing.metadata import finite
from kantan_agents.tracing.store.tables import ADDED, REQUIRED, columns_of, has_index_by_trace


def valid_json(column: str) -> str:
    """Return SQL for the JSON in ``column``: one NaN, which kantan-llm writes, would fail a whole search."""
    return f"CASE WHEN json_valid({column}) THEN {column} WHEN {column} IS NOT NULL THEN repair({column}) END"


def shadow_tables(connection: sqlite3.Connection, *, by_trace: bool) -> None:
    """Put views before the tables, with repaired metadata and all columns.

    ``traces`` and ``spans`` are what kantan-llm's search reads; ``all_traces`` is the same as ``traces``, and
    stays when that is made to show less.

    Args:
        connection: Just opened.
        by_trace: Whether spans will be looked up by their trace; without an index for that in the file,
            one is made in memory, which reads the file once.
    """
    connection.create_function("repair", 1, repair, deterministic=True)
    found = columns_of(connection, "traces")
    metadata = valid_json("metadata_json") if "metadata_json" in found else "NULL"
    connection.execute(
        "CREATE TEMP VIEW all_traces AS SELECT rowid AS rowid, id, workflow_name, group_id, "  # noqa: S608
        f"{metadata} AS metadata_json FROM main.traces"
    )
    connection.execute("CREATE TEMP VIEW traces AS SELECT * FROM all_traces")
    missing = set(ADDED["spans"]) - columns_of(connection, "spans")
    look_up = by_trace and not has_index_by_trace(connection)
    if look_up:
        connection.execute(
            "CREATE TEMP TABLE spans_of_trace(trace_id TEXT, span INTEGER, PRIMARY KEY(trace_id, span)) "
            "WITHOUT ROWID"
        )
        connection.execute(
            "INSERT INTO spans_of_trace SELECT trace_id, rowid FROM main.spans WHERE trace_id IS NOT NULL"
        )
    if look_up or missing:
        _shadow_spans(connection, missing, look_up=look_up)


def repair(text: Any) -> str | None:
    """Return JSON text in which Python wrote NaN or an infinity with null instead; None for other text."""
    try:
        return storable_json(json.loads(text))
    except (TypeError, ValueError):
        return None


def storable_json(value: Any) -> str:
    """Return ``value`` as JSON text that SQLite takes: no NaN, no halves of surrogate pairs.

    Unescaped, as kantan-llm writes it: SQLite compares keys as they are written.
    """
    return storable_text(json.dumps(finite(value), ensure_ascii=False))


def storable_text(text: str) -> str:
    """Return ``text`` with "?" for what UTF-8 has no bytes for."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _shadow_spans(connection: sqlite3.Connection, missing: set[str], *, look_up: bool) -> None:
    columns = [f"s.{name} AS {name}" for name in REQUIRED["spans"]]
    columns += [f"{'NULL' if name in missing else f's.{name}'} AS {name}" for name in ADDED["spans"]]
    source = "main.spans s"
    if look_up:
        source += " JOIN temp.spans_of_trace i ON i.trace_id = s.trace_id AND i.span = s.rowid"
    connection.execute(
        f"CREATE TEMP VIEW spans AS SELECT s.rowid AS rowid, {', '.join(columns)} FROM {source}"  # noqa: S608
    )
