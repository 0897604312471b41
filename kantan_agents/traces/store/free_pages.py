"""Returns the free pages of a file to the disk in steps."""

from __future__ import annotations

import sqlite3
from functools import partial

from kantan_agents.traces.store.steps import Pace, TransactionSteps

# `PRAGMA auto_vacuum` of a file that shrinks in steps.
INCREMENTAL = 2


def can_shrink(connection: sqlite3.Connection) -> bool:
    """Return whether the file's free pages can be released in steps."""
    return bool(connection.execute("PRAGMA main.auto_vacuum").fetchone()[0] == INCREMENTAL)


def free_bytes(connection: sqlite3.Connection) -> int:
    """Return the file's free bytes."""
    pages, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_size")
    )
    return int(pages * size)


def free_some(connection: sqlite3.Connection, steps: TransactionSteps, pace: Pace) -> None:
    """Release some free pages in a transaction."""
    steps.run(partial(_free, connection, steps), pace)


def _free(connection: sqlite3.Connection, steps: TransactionSteps, pages: int) -> None:
    (free,) = connection.execute("PRAGMA freelist_count").fetchone()
    for _ in range(min(pages, free)):
        if steps.is_due():
            break
        # Page by page: sqlite3 does not run a statement without columns to its end.
        connection.execute("PRAGMA incremental_vacuum(1)")
