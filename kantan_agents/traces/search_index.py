"""The tables of the search index, and triggers that note unindexed traces.

Each named trace is searched again, so outdated entries do no harm. Triggers run for every writer, in its
transaction, without FTS5: a trace in ``UNINDEXED`` is always searched. FTS5 cannot delete an entry without
its original text, so a part, which is a table, is dropped when most of its documents are gone.

A version that fills the index differently must rename the tables.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress

from kantan_agents.traces.schema import count_existing

UNINDEXED = "kantan_agents_unindexed"
"""Traces with unindexed text; ``skipped`` if it is too long."""
DOCUMENTS = "kantan_agents_indexed"
"""A trace's rowid in a part, with its spans up to an ``ingest_seq``."""
PARTS = "kantan_agents_index_parts"
"""The parts: number, documents ever added, and their characters."""

_PART = "kantan_agents_index_part_"
# The rowids of a part start at its number times this.
PART_ROWIDS = 1 << 20

_TABLES = {
    UNINDEXED: "note INTEGER PRIMARY KEY, trace_id TEXT NOT NULL UNIQUE, skipped INTEGER NOT NULL DEFAULT 0",
    DOCUMENTS: "document INTEGER PRIMARY KEY, trace_id TEXT NOT NULL, last_seq INTEGER NOT NULL",
    PARTS: "part INTEGER PRIMARY KEY, documents INTEGER NOT NULL, characters INTEGER NOT NULL",
}
_INDEX = "kantan_agents_indexed_by_trace"
_TO_DELETE = (UNINDEXED, DOCUMENTS)

_IS_NOTED = f"EXISTS (SELECT 1 FROM {UNINDEXED} u WHERE u.trace_id = NEW.trace_id)"  # noqa: S608
# Not INSERT OR IGNORE: the conflict clause of the firing statement would override it.
_NOTE = (
    f"INSERT INTO {UNINDEXED}(trace_id) SELECT NEW.trace_id "
    f"WHERE NEW.trace_id IS NOT NULL AND NOT {_IS_NOTED};"
)
_OF_TRACE = f"{DOCUMENTS} WHERE trace_id = NEW.trace_id"
# Only a program that chooses the numbers itself adds a span below an indexed one.
_COVERED = f"{_OF_TRACE} AND last_seq >= COALESCE(NEW.ingest_seq, 0)"
_HAS_TEXT = "COALESCE(NEW.input, NEW.output) IS NOT NULL"

_TRIGGERS = {
    "kantan_agents_text_added": (
        f"AFTER INSERT ON spans WHEN {_HAS_TEXT} AND "  # noqa: S608
        f"(NOT {_IS_NOTED} OR EXISTS (SELECT 1 FROM {_COVERED})) BEGIN DELETE FROM {_COVERED}; {_NOTE} END"
    ),
    "kantan_agents_text_updated": (
        f"AFTER UPDATE OF input, output, trace_id, ingest_seq ON spans WHEN {_HAS_TEXT} "  # noqa: S608
        f"BEGIN DELETE FROM {_OF_TRACE}; {_NOTE} END"
    ),
}
_NAMES = {*_TABLES, _INDEX, *_TRIGGERS}

DAMAGED = (
    "the search index is damaged; remove it with `kantan-agents traces index --remove`, and build it again"
    " with `kantan-agents traces index`"
)

# Without positions, which take most space. The text is in lower case.
_OPTIONS = "text, content='', columnsize=0, detail=none, tokenize='trigram case_sensitive 1'"


def part_name(part: int) -> str:
    """Return the name of a part's table."""
    return f"{_PART}{part:d}"


def has_index(connection: sqlite3.Connection) -> bool:
    """Return whether the search index and its triggers exist."""
    return count_existing(connection, _NAMES) == len(_NAMES)


def can_index(connection: sqlite3.Connection) -> bool:
    """Return whether SQLite has FTS5 and trigrams (3.34)."""
    try:
        connection.execute(f"CREATE VIRTUAL TABLE temp.kantan_agents_probe USING fts5({_OPTIONS})")
    except sqlite3.OperationalError:
        return False
    connection.execute("DROP TABLE temp.kantan_agents_probe")
    return True


def keep_index(connection: sqlite3.Connection, *, create: bool) -> None:
    """Repair an incomplete index, outside a transaction; ``create`` is for a file without spans.

    An older file would grow by it, so it gets it from ``TraceStore.build_index``.
    """
    found = count_existing(connection, _NAMES)
    if found == len(_NAMES) or not (found or (create and _is_empty(connection))):
        return
    if can_index(connection):
        create_index(connection)
    elif found:
        remove_index(connection)  # a trigger without tables would fail all writers


def create_index(connection: sqlite3.Connection) -> None:
    """Create the index, outside a transaction, with all traces unindexed."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not has_index(connection):  # another process may have been first
            _drop(connection)
            _create(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def remove_index(connection: sqlite3.Connection) -> None:
    """Remove the index or its remains."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        _drop(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def create_part(connection: sqlite3.Connection) -> int:
    """Create an empty part, inside a transaction; its number is never reused."""
    numbers = [row[0] for row in connection.execute(f"SELECT part FROM main.{PARTS}")]  # noqa: S608
    numbers += [int(name.removeprefix(_PART)) for name in _part_tables(connection)]
    part = max(numbers, default=0) + 1
    connection.execute(f"CREATE VIRTUAL TABLE main.{part_name(part)} USING fts5({_OPTIONS})")
    connection.execute(f"INSERT INTO main.{PARTS} VALUES (?, 0, 0)", (part,))  # noqa: S608
    return part


def drop_part(connection: sqlite3.Connection, part: int) -> None:
    """Drop a part, inside a transaction; its traces become unindexed."""
    rowids = (part * PART_ROWIDS, (part + 1) * PART_ROWIDS)
    held = f"FROM main.{DOCUMENTS} WHERE document >= ? AND document < ?"
    connection.execute(
        f"INSERT INTO main.{UNINDEXED}(trace_id) SELECT DISTINCT trace_id {held} "  # noqa: S608
        f"AND trace_id NOT IN (SELECT trace_id FROM main.{UNINDEXED})",
        rowids,
    )
    # In other parts too: a trace is indexed as a whole.
    connection.execute(
        f"DELETE FROM main.{DOCUMENTS} WHERE trace_id IN (SELECT trace_id {held})",  # noqa: S608
        rowids,
    )
    connection.execute(f"DELETE FROM main.{PARTS} WHERE part = ?", (part,))  # noqa: S608
    _drop_table(connection, part_name(part))


def tables_by_trace(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Return the index tables with rows by trace."""
    return _TO_DELETE if has_index(connection) else ()


def count_unindexed(connection: sqlite3.Connection, most: int = 1_000) -> int:
    """Count unindexed traces, up to ``most``."""
    if not has_index(connection):
        return 0
    query = f"SELECT COUNT(*) FROM (SELECT 1 FROM main.{UNINDEXED} WHERE NOT skipped LIMIT ?)"  # noqa: S608
    return int(connection.execute(query, (most,)).fetchone()[0])


def _is_empty(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM main.spans LIMIT 1").fetchone() is None


def _create(connection: sqlite3.Connection) -> None:
    for name, columns in _TABLES.items():
        connection.execute(f"CREATE TABLE main.{name}({columns})")
    connection.execute(f"CREATE INDEX main.{_INDEX} ON {DOCUMENTS}(trace_id)")
    for name, body in _TRIGGERS.items():
        connection.execute(f"CREATE TRIGGER main.{name} {body}")
    connection.execute(
        f"INSERT INTO main.{UNINDEXED}(trace_id) "  # noqa: S608
        "SELECT DISTINCT trace_id FROM main.spans WHERE trace_id IS NOT NULL"
    )


def _drop(connection: sqlite3.Connection) -> None:
    for name in _TRIGGERS:
        connection.execute(f"DROP TRIGGER IF EXISTS main.{name}")
    for name in _part_tables(connection):
        _drop_table(connection, name)
    for name in _TABLES:
        connection.execute(f"DROP TABLE IF EXISTS main.{name}")


def _part_tables(connection: sqlite3.Connection) -> list[str]:
    query = "SELECT name FROM main.sqlite_master WHERE type = 'table'"
    names = [row[0] for row in connection.execute(query) if row[0].startswith(_PART)]
    return [name for name in names if name.removeprefix(_PART).isdecimal()]  # excludes FTS5's internal tables


def _drop_table(connection: sqlite3.Connection, name: str) -> None:
    # A damaged part, or any without FTS5, cannot be dropped. It stays unused.
    with suppress(sqlite3.DatabaseError):
        connection.execute(f"DROP TABLE main.{name}")
