"""Opens short-lived connections to a trace database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import disk_usage

from kantan_agents.errors import TraceDatabaseError
from kantan_agents.traces.backend import backend_of
from kantan_agents.traces.database_url import Place
from kantan_agents.traces.store.kept_connections import KeptConnections
from kantan_agents.traces.trace_file import ImmutableConnection, check_file, open_file, stat_of

_CHANGE_WAIT_SECONDS = 30.0

TRUNCATE_WAIT_MS = 50


@contextmanager
def reading(
    path: Place,
    *,
    by_trace: bool = True,
    any_thread: bool = False,
    keep_wal: bool = False,
    with_views: bool = True,
) -> Iterator[sqlite3.Connection]:
    """Open an existing database for reading.

    ``by_trace``: reads spans by trace, for which kantan-llm's files have no index.
    """
    with sqlite_errors(path):
        backend = backend_of(path)
        connection = backend.open_to_read(any_thread=any_thread, keep_wal=keep_wal)
        try:
            backend.prepare(connection, by_trace=by_trace, views=with_views)
            yield connection
        finally:
            connection.close()


@contextmanager
def reading_again(path: Place, kept: KeptConnections) -> Iterator[sqlite3.Connection]:
    """Do the same as ``reading`` without views, on a pooled connection if possible.

    The block may define functions, but must change nothing else.
    """
    identity = kept.identity()
    connection = kept.take(identity)
    may_keep = True
    try:
        if connection is None:
            backend = backend_of(path)
            connection = backend.open_to_read(any_thread=True)
            backend.prepare(connection, views=False)
            sees_changes = identity is not None and not isinstance(connection, ImmutableConnection)
            may_keep = sees_changes and not _has_views(connection)
        yield connection
    except BaseException as error:
        if connection is not None:
            connection.close()
        if isinstance(error, sqlite3.Error):
            raise TraceDatabaseError(path=str(path), reason=str(error)) from error
        raise
    if may_keep:
        kept.give_back(connection, identity)
    else:
        connection.close()


def _has_views(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM temp.sqlite_master").fetchone() is not None


@contextmanager
def changing(
    path: Place, *, wait: float | None = None, keep_log: bool = False, is_long: bool = False
) -> Iterator[sqlite3.Connection]:
    """Open an existing database for changes; the caller controls the transactions."""
    seconds = _CHANGE_WAIT_SECONDS if wait is None else wait
    with sqlite_errors(path):
        connection = backend_of(path).open_to_change(seconds, keep_log=keep_log, is_long=is_long)
        try:
            yield connection
        finally:
            connection.close()


def empty_log(path: Path) -> None:
    """Checkpoint the whole log; raise E60 if the disk has too little space.

    Moving only some pages would fill the disk and leave the log as large as before. So would closing the last
    connection, unless it only reads.
    """
    check_file(path)
    with (
        sqlite_errors(path),
        closing(open_file(path, "mode=ro")),
        changing(path) as connection,
    ):
        pages, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size")
        )
        needed, free = pages * size - stat_of(path).st_size, disk_usage(path.parent).free
        if needed > free:
            reason = (
                f"the disk is full: {needed:,} bytes must be free to move the write-ahead log to the file, "
                f"and {free:,} are; nothing was changed"
            )
            raise TraceDatabaseError(path=str(path), reason=reason)
        # Pages that other connections read stay in the log.
        connection.execute(f"PRAGMA busy_timeout = {TRUNCATE_WAIT_MS}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit the block, or roll it back."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def create_tables(path: Place, *, adopt: bool = False) -> None:
    """Create missing tables, or raise E60; with ``adopt``, in another program's database."""
    with sqlite_errors(path):
        try:
            backend_of(path).make_tables(adopt=adopt)
        except OSError as error:
            raise TraceDatabaseError(path=str(path), reason=error.strerror or str(error)) from error


@contextmanager
def sqlite_errors(path: Place) -> Iterator[None]:
    """Turn SQLite's errors into E60."""
    try:
        yield
    except sqlite3.Error as error:
        raise TraceDatabaseError(path=str(path), reason=str(error)) from error


def check_path(path: Place) -> None:
    """Raise E60 for a zero byte or a circle of links."""
    try:
        path.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise TraceDatabaseError(path=str(path), reason=str(error)) from error
