"""Tables for the complete records of runs, in kantan-llm's file.

Each content item is stored once. Triggers count its uses, even when another program deletes a trace.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from kantan_agents.traces.schema import count_existing

CONTENTS: Final = "kantan_agents_contents"
RUNS: Final = "kantan_agents_runs"
"""Numbers in ``body`` index the ids in ``contents``."""

STATEMENTS: Final = {
    CONTENTS: (
        f"CREATE TABLE {CONTENTS}(id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, kind TEXT NOT NULL, "
        "uses INTEGER NOT NULL, parts TEXT, body TEXT NOT NULL)"
    ),
    RUNS: (
        f"CREATE TABLE {RUNS}(id INTEGER PRIMARY KEY, trace_id TEXT NOT NULL, run_id BLOB NOT NULL, "
        "contents TEXT NOT NULL, body TEXT NOT NULL)"
    ),
    "kantan_agents_runs_of_trace": (
        f"CREATE UNIQUE INDEX kantan_agents_runs_of_trace ON {RUNS}(trace_id, run_id)"
    ),
    "kantan_agents_prompts": f"CREATE INDEX kantan_agents_prompts ON {CONTENTS}(id) WHERE kind = 'prompt'",
    "kantan_agents_unused": f"CREATE INDEX kantan_agents_unused ON {CONTENTS}(id) WHERE uses <= 0",
    "kantan_agents_record_of_trace_deleted": (
        "CREATE TRIGGER kantan_agents_record_of_trace_deleted AFTER DELETE ON traces "  # noqa: S608
        f"BEGIN DELETE FROM {RUNS} WHERE trace_id = OLD.id; END"
    ),
    "kantan_agents_record_deleted": (
        f"CREATE TRIGGER kantan_agents_record_deleted AFTER DELETE ON {RUNS} "  # noqa: S608
        f"BEGIN UPDATE {CONTENTS} SET uses = uses - 1 "
        "WHERE id IN (SELECT value FROM json_each(OLD.contents)); END"
    ),
    "kantan_agents_content_deleted": (
        f"CREATE TRIGGER kantan_agents_content_deleted AFTER DELETE ON {CONTENTS} "  # noqa: S608
        f"WHEN OLD.parts IS NOT NULL BEGIN UPDATE {CONTENTS} SET uses = uses - 1 "
        "WHERE id IN (SELECT value FROM json_each(OLD.parts)); END"
    ),
}


def has_records(connection: sqlite3.Connection) -> bool:
    """Return whether the tables and triggers exist."""
    return count_existing(connection, STATEMENTS) == len(STATEMENTS)


def keep_records(connection: sqlite3.Connection) -> None:
    """Create missing tables, indexes and triggers, outside a transaction."""
    if has_records(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        query = "SELECT name FROM main.sqlite_master"
        found = {name for (name,) in connection.execute(query)}
        for name, statement in STATEMENTS.items():
            if name not in found:
                connection.execute(statement)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def remove_unused(connection: sqlite3.Connection, most: int) -> int:
    """Delete up to ``most`` unused items; return how many.

    Repeat it until it returns 0: their parts may become unused.
    """
    query = f"DELETE FROM {CONTENTS} WHERE id IN (SELECT id FROM {CONTENTS} WHERE uses <= 0 LIMIT ?)"  # noqa: S608
    return connection.execute(query, (most,)).rowcount
