"""The trace database file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection
from pathlib import Path

from kantan_agents.support.private_files import create_private

COLUMNS = {
    "traces": ("id", "workflow_name", "group_id", "metadata_json"),
    "spans": (
        "id",
        "trace_id",
        "parent_id",
        "started_at",
        "ended_at",
        "span_type",
        "name",
        "input",
        "output",
        "output_kind",
        "tool_calls_json",
        "structured_json",
        "rubric_json",
        "usage_json",
        "error_json",
        "raw_json",
        "ingest_seq",
    ),
}

INDEXES = {
    # By trace, in order. Otherwise kantan-llm scans all spans for each new one.
    "kantan_agents_spans_of_trace": "spans(trace_id, ingest_seq)",
    # Judge, tool and agent_run spans by name.
    "kantan_agents_spans_by_name": "spans(name, span_type, trace_id)",
    # kantan-llm's condition; otherwise SQLite would not use the index.
    "kantan_agents_spans_with_error": (
        "spans(trace_id) WHERE error_json IS NOT NULL AND error_json != 'null'"
    ),
}


def has_tables(connection: sqlite3.Connection) -> bool:
    """Return whether the tables exist with all columns."""
    return all(
        {*columns} <= {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        for table, columns in COLUMNS.items()
    )


def count_existing(connection: sqlite3.Connection, names: Collection[str]) -> int:
    """Count which of these tables, indexes and triggers exist."""
    marks = ",".join("?" * len(names))
    query = f"SELECT COUNT(*) FROM main.sqlite_master WHERE name IN ({marks})"  # noqa: S608
    return int(connection.execute(query, [*names]).fetchone()[0])


# The columns of kantan-llm's first version.
_OLDEST = {
    "traces": {"id", "workflow_name", "group_id"},
    "spans": {"id", "trace_id", "parent_id", "started_at", "ended_at", "span_type", "input", "output"},
}


# This library's tables may be in a file without kantan-llm's.
_OWN_PREFIX = "kantan_agents_"
_LISTED = 3


class ForeignDatabaseError(sqlite3.DatabaseError):
    """The file is another program's; ``can_adopt``: the tables can be added to it."""

    def __init__(self, reason: str, *, can_adopt: bool) -> None:
        super().__init__(reason)
        self.can_adopt = can_adopt


def check_owner(connection: sqlite3.Connection, *, adopt: bool = False) -> None:
    """Raise ForeignDatabaseError unless a file is, or may become, a trace database."""
    is_ours = adopt
    for table, columns in _OLDEST.items():
        found = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        missing = sorted(columns - found)
        if found and missing:
            reason = f"it is not a trace database: its table {table} lacks {missing[0]}"
            raise ForeignDatabaseError(reason, can_adopt=False)
        is_ours = is_ours or bool(found)
    if is_ours:
        return
    query = "SELECT name FROM sqlite_master WHERE substr(name, 1, 7) != 'sqlite_' ORDER BY name"
    # Another process may have created them meanwhile.
    found_now = [name for (name,) in connection.execute(query) if name not in _OLDEST]
    others = [name for name in found_now if not name.startswith(_OWN_PREFIX)]
    if others:
        listed = ", ".join(others[:_LISTED]) + (", ..." if len(others) > _LISTED else "")
        raise ForeignDatabaseError(f"it is the database of another program, with {listed}", can_adopt=True)


def make_tables(path: Path, *, adopt: bool = False) -> None:
    """Create the tables; add columns that an older version lacks.

    kantan-llm's tracer does it, because kantan-llm defines the tables. Only the owner can read a new file.
    """
    create_private(path)
    connection = sqlite3.connect(str(path.absolute()))
    try:
        check_owner(connection, adopt=adopt)
        shrink_in_steps(connection)
    finally:
        connection.close()
    from kantan_llm.tracing import SQLiteTracer

    for tries_left in reversed(range(sum(map(len, COLUMNS.values())))):
        # Absolute: SQLite reads some relative names differently, such as ":memory:".
        tracer = SQLiteTracer(str(path.absolute()))
        try:
            tracer.get_trace("")
            tracer.get_span("")
        except sqlite3.OperationalError as error:
            # Another process added this column first.
            if "duplicate column" not in str(error) or not tries_left:
                raise
        else:
            return
        finally:
            tracer.shutdown()


def shrink_in_steps(connection: sqlite3.Connection) -> None:
    """Let a new file shrink in small transactions; call it outside one."""
    if connection.execute("PRAGMA page_count").fetchone()[0]:
        return  # SQLite would have to rewrite the whole file
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    # An empty transaction writes the first page.
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("COMMIT")


def make_indexes(connection: sqlite3.Connection) -> None:
    """Create missing indexes; seconds for a large database."""
    for name, columns in INDEXES.items():
        connection.execute(f"CREATE INDEX IF NOT EXISTS {name} ON {columns}")


def may_write(path: Path) -> bool:
    """Return whether the effective user may write there."""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)
