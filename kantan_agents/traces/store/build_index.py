"""Builds, prunes and removes the search index of a file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

from kantan_agents.errors import TraceDatabaseError
from kantan_agents.support.log import get_logger
from kantan_agents.traces.schema import make_indexes, make_tables
from kantan_agents.traces.search_index import (
    DAMAGED,
    UNINDEXED,
    can_index,
    count_unindexed,
    create_index,
    has_index,
    remove_index,
)
from kantan_agents.traces.store.connection import changing, reading
from kantan_agents.traces.store.free_pages import can_shrink, free_bytes, free_some
from kantan_agents.traces.store.index import drop_sparse_part, index_some
from kantan_agents.traces.store.records import IndexResult
from kantan_agents.traces.store.steps import Pace, TransactionSteps
from kantan_agents.traces.trace_file import size_of

Progress = Callable[[int, int], None]

_ALL = 2**62

_log = get_logger("kantan_agents.tracing")


def build(path: Path, progress: Progress | None) -> IndexResult:
    """Index all traces; create the index if missing. After an error, indexed traces stay indexed."""
    before = size_of(path)
    with reading(path, by_trace=False, keep_wal=True) as connection:
        if not can_index(connection):
            reason = f"SQLite {sqlite3.sqlite_version} cannot index it: that takes FTS5, and version 3.34"
            raise TraceDatabaseError(path=str(path), reason=reason)
    make_tables(path)
    with changing(path) as connection:
        make_indexes(connection)
        create_index(connection)
        done, skipped = _fill(connection, TransactionSteps(connection), progress)
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    return IndexResult(done - skipped, _skipped(path), before, size_of(path))


def remove(path: Path) -> IndexResult:
    """Remove the search index, or raise E60."""
    before = size_of(path)
    with changing(path) as connection:
        remove_index(connection)
        steps, pace = TransactionSteps(connection), Pace()
        while can_shrink(connection) and free_bytes(connection):
            free_some(connection, steps, pace)
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return IndexResult(0, 0, before, size_of(path))


def keep_after_deletion(connection: sqlite3.Connection, steps: TransactionSteps) -> None:
    """Drop sparse parts of the index."""
    pace = Pace()
    try:
        dropped = False
        while steps.run(lambda _: drop_sparse_part(connection), pace):
            dropped = True
        if dropped:
            _fill(connection, steps, None)
    except sqlite3.OperationalError:
        raise  # of the file, such as a full disk
    except sqlite3.DatabaseError as error:
        _log.warning(DAMAGED, reason=str(error))


def _fill(
    connection: sqlite3.Connection, steps: TransactionSteps, progress: Progress | None
) -> tuple[int, int]:
    total = count_unindexed(connection, _ALL)
    done = skipped = 0
    pace = Pace()
    while True:
        some, too_long = steps.run(partial(index_some, connection), pace)
        if not some:
            return done, skipped
        done += some
        skipped += too_long
        if progress is not None:
            progress(done, max(done, total))


def _skipped(path: Path) -> int:
    with reading(path, by_trace=False, keep_wal=True) as connection:
        if not has_index(connection):
            return 0
        query = f"SELECT COUNT(*) FROM main.{UNINDEXED} WHERE skipped"  # noqa: S608
        return int(connection.execute(query).fetchone()[0])
