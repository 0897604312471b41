"""The tables of a trace database, which are kantan-llm's, and the indexes it lacks."""

from __future__ import annotations

import sqlite3
from pathlib import Path

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
    # Spans of a trace, in their order; without it kantan-llm reads all spans for each one it adds.
    "kantan_agents_spans_of_trace": "spans(trace_id, ingest_seq)",
    # Judges, tools and agent runs by name.
    "kantan_agents_spans_by_name": "spans(name, span_type, trace_id)",
    # Worded as kantan-llm's own condition, or SQLite would not use it.
    "kantan_agents_spans_with_error": (
        "spans(trace_id) WHERE error_json IS NOT NULL AND error_json != 'null'"
    ),
}


def has_tables(connection: sqlite3.Connection) -> bool:
    """Tell whether the tables are there, with all columns.

    Raises:
        sqlite3.Error: The file is no database, or locked.
    """
    return all(
        {*columns} <= {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        for table, columns in COLUMNS.items()
    )


# What kantan-llm's tables have had from the first version on.
_OLDEST = {
    "traces": {"id", "workflow_name", "group_id"},
    "spans": {"id", "trace_id", "parent_id", "started_at", "ended_at", "span_type", "input", "output"},
}


def check_owner(connection: sqlite3.Connection) -> None:
    """Make sure that tables with the names of kantan-llm's are kantan-llm's.

    Raises:
        sqlite3.Error: They are somebody else's, or the file is no database, or locked.
    """
    for table, columns in _OLDEST.items():
        found = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        missing = sorted(columns - found)
        if found and missing:
            raise sqlite3.DatabaseError(f"it is no trace database: its table {table} lacks {missing[0]}")


def make_tables(path: Path) -> None:
    """Make the tables in the file at ``path``, and add what those of an older version lack.

    By kantan-llm's own tracer: what the tables are is kantan-llm's to say.

    Raises:
        sqlite3.Error: The file is no database, locked, somebody else's, or may not be written.
    """
    connection = sqlite3.connect(str(path.absolute()))
    try:
        check_owner(connection)
    finally:
        connection.close()
    from kantan_llm.tracing import SQLiteTracer

    for tries_left in reversed(range(sum(map(len, COLUMNS.values())))):
        # Absolute: SQLite takes some names, such as ":memory:", for something else than a file.
        tracer = SQLiteTracer(str(path.absolute()))
        try:
            tracer.get_trace("")
            tracer.get_span("")
        except sqlite3.OperationalError as error:
            # Somebody else makes the tables of this file now, and was first with one more column.
            if "duplicate column" not in str(error) or not tries_left:
                raise
        else:
            return
        finally:
            tracer.shutdown()


def make_indexes(connection: sqlite3.Connection) -> None:
    """Make the indexes that are not there yet; of a large database, this takes seconds.

    Raises:
        sqlite3.Error: The database is locked, or may not be written.
    """
    for name, columns in INDEXES.items():
        connection.execute(f"CREATE INDEX IF NOT EXISTS {name} ON {columns}")
