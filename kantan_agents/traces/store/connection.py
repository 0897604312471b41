"""Opens short-lived connections to a trace database, in the thread that uses them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from shutil import disk_usage
from stat import S_ISDIR, S_ISREG

from kantan_agents.errors import TraceDatabaseError
from kantan_agents.traces.database_url import PostgresUrl, url_of, why_refused
from kantan_agents.traces.schema import check_owner, may_write
from kantan_agents.traces.store.kept_connections import KeptConnections
from kantan_agents.traces.store.tables import check_tables, create_views, prepare

# Without a write-ahead log, kantan-llm's tracer locks the file for each span.
_READ_WAIT_SECONDS = 10.0
_CHANGE_WAIT_SECONDS = 30.0
_IMMUTABLE = "immutable=1"

TRUNCATE_WAIT_MS = 50
"""How long a writer may have to wait while the write-ahead log is truncated, if others still read it."""


class ImmutableConnection(sqlite3.Connection):
    """A connection to a file that SQLite takes for immutable: it sees no change."""


@contextmanager
def reading(
    path: Path,
    *,
    by_trace: bool = True,
    any_thread: bool = False,
    keep_wal: bool = False,
    with_views: bool = True,
) -> Iterator[sqlite3.Connection]:
    """Open the database at ``path`` to read it.

    Args:
        path: The file; it is never created.
        by_trace: Whether spans will be read by trace, for which a file written by kantan-llm has no index.
        any_thread: Whether other threads may use the connection too, one at a time.
        keep_wal: As for ``open_to_read``.
        with_views: Whether to create the views of ``create_views`` also if the file does not need them; they
            take about a quarter of the time.

    Raises:
        TraceDatabaseError: E60, the file cannot be opened, or a statement on the connection fails.
    """
    with sqlite_errors(path):
        connection = open_to_read(path, any_thread=any_thread, keep_wal=keep_wal)
        try:
            if url_of(path) is not None:  # the tables of a server need no views
                yield connection
                return
            (create_views if with_views else prepare)(connection, by_trace=by_trace)
            yield connection
        finally:
            connection.close()


@contextmanager
def reading_again(path: Path, kept: KeptConnections) -> Iterator[sqlite3.Connection]:
    """Do the same as ``reading`` without views, on a connection that was used before, if there is one.

    The block must leave the connection as it is, but may define functions.
    """
    identity = kept.identity()
    connection = kept.take(identity)
    may_keep = True
    try:
        if connection is None:
            connection = open_to_read(path, any_thread=True)
            prepare(connection, by_trace=True)
            may_keep = not isinstance(connection, ImmutableConnection) and not _has_views(connection)
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
def changing(path: Path, *, wait: float | None = None) -> Iterator[sqlite3.Connection]:
    """Open the database at ``path`` to change it in this thread; the caller controls the transactions.

    Args:
        path: The file; it is never created.
        wait: Seconds to wait for other writers; by default half a minute.

    Raises:
        TraceDatabaseError: E60, the file cannot be opened, or a statement on the connection fails.
    """
    seconds = _CHANGE_WAIT_SECONDS if wait is None else wait
    with sqlite_errors(path):
        url = url_of(path)
        if url is None:
            refused = why_refused(path)
            if refused is not None:
                raise TraceDatabaseError(path=str(path), reason=refused)
            check_file(path)
            connection = _connect(path, "mode=rw", seconds)
        else:
            connection = _server(url, seconds)
        try:
            yield connection
        finally:
            connection.close()


def empty_log(path: Path) -> None:
    """Move the pages in the write-ahead log to the file, if the disk has space for all of them.

    Moving those that fit would take the space that is left and leave the log as large as it is. So would
    closing the last connection, unless that one only reads.

    Raises:
        TraceDatabaseError: E60, the disk has too little space; nothing was moved.
    """
    check_file(path)
    with (
        sqlite_errors(path),
        closing(_opened(path, "mode=ro", any_thread=False)),
        changing(path) as connection,
    ):
        pages, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size")
        )
        needed, free = pages * size - _stat(path).st_size, disk_usage(path.parent).free
        if needed > free:
            reason = (
                f"the disk is full: {needed:,} bytes must be free to move the write-ahead log to the file, "
                f"and {free:,} are; nothing was changed"
            )
            raise TraceDatabaseError(path=str(path), reason=reason)
        # Pages that other connections read stay there.
        connection.execute(f"PRAGMA busy_timeout = {TRUNCATE_WAIT_MS}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit what the block changes; if it raises, change nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors about the file at ``path`` into E60."""
    try:
        yield
    except sqlite3.Error as error:
        raise TraceDatabaseError(path=str(path), reason=str(error)) from error


def open_to_read(path: Path, *, any_thread: bool = False, keep_wal: bool = False) -> sqlite3.Connection:
    """Return a connection that reads the database at ``path`` and leaves no additional file behind.

    If a killed writer left a write-ahead log, SQLite moves its content to the file when the last connection
    is closed.

    Args:
        path: The file.
        any_thread: Whether other threads may use the connection too, one at a time.
        keep_wal: Whether to leave such a log unchanged.

    Raises:
        TraceDatabaseError: E60, the file does not exist or is not a trace database.
        sqlite3.Error: SQLite cannot open it.
    """
    url = url_of(path)
    if url is not None:
        return _server(url, _READ_WAIT_SECONDS)
    check_file(path)
    if not may_write(path) and not _is_open(path):
        # For a read-only file, SQLite would create a read-only log, which would still block writing when the
        # file becomes writable again.
        return _opened(path, _IMMUTABLE, any_thread=any_thread)
    # Opened for writing, although a read-only file can then only be read: in mode "ro", SQLite would create a
    # log that it could not delete.
    mode = "mode=ro" if keep_wal and _size(path, "-wal") else "mode=rw"
    try:
        return _opened(path, mode, any_thread=any_thread)
    except sqlite3.OperationalError as error:
        protected = "unable to open" in str(error) or "readonly" in str(error)
        if not protected or _size(path, "-wal") or _size(path, "-journal"):
            raise
        # In a read-only directory, SQLite opens a database in WAL mode only if it is declared immutable.
        return _opened(path, _IMMUTABLE, any_thread=any_thread)


def _server(url: PostgresUrl, wait: float) -> sqlite3.Connection:
    """Return a connection to a database in Postgres that has the tables."""
    # Imported late: reading a file needs none of it.
    from kantan_agents.traces.postgres.connection import as_sqlite, connect
    from kantan_agents.traces.postgres.schema import check_readable

    connection = connect(url, wait=wait)
    try:
        check_readable(connection)
    except BaseException:
        connection.close()
        raise
    return as_sqlite(connection)


def is_to_come(path: Path) -> bool:
    """Return whether a recorder can create a trace database at a place that has none, or is just doing so.

    Args:
        path: A place at which ``reading`` has found no trace database.
    """
    try:
        url = url_of(path)
        if url is not None:
            return _has_no_tables(url)
        if not path.exists():
            return path.parent.is_dir()
        check_file(path)
        mode = "mode=ro" if _size(path, "-wal") else _IMMUTABLE  # neither leaves a file beside it
        with closing(_connect(path, mode, _READ_WAIT_SECONDS)) as connection:
            check_owner(connection)
    except (sqlite3.Error, OSError, TraceDatabaseError):
        return False
    return True


def _has_no_tables(url: PostgresUrl) -> bool:
    from kantan_agents.traces.postgres.connection import connect
    from kantan_agents.traces.postgres.schema import version_of

    with closing(connect(url, wait=_READ_WAIT_SECONDS)) as connection:
        return version_of(connection) is None


def check_path(path: Path) -> None:
    """Check that ``path`` can be resolved.

    Raises:
        TraceDatabaseError: E60, it contains a zero byte or a circle of links.
    """
    try:
        path.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise TraceDatabaseError(path=str(path), reason=str(error)) from error


def check_file(path: Path) -> None:
    """Check that there is a regular file at ``path``.

    Raises:
        TraceDatabaseError: E60, there is no regular file.
    """
    mode = _stat(path).st_mode
    if not S_ISREG(mode):
        reason = "it is a directory" if S_ISDIR(mode) else "it is not a regular file"
        raise TraceDatabaseError(path=str(path), reason=reason)


def size_of(path: Path) -> int:
    """Return the size of the database in bytes, its write-ahead log included.

    Raises:
        TraceDatabaseError: E60, the file does not exist.
    """
    return _stat(path).st_size + _size(path, "-wal")


def _stat(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except FileNotFoundError as error:
        raise TraceDatabaseError(path=str(path), reason="there is no such file") from error
    except OSError as error:
        raise TraceDatabaseError(path=str(path), reason=error.strerror or str(error)) from error


def _size(path: Path, suffix: str) -> int:
    try:
        return Path(f"{path}{suffix}").stat().st_size
    except OSError:
        return 0


def _is_open(path: Path) -> bool:
    """Return whether a process has the database open, or has left a log that must still be read."""
    return any(Path(f"{path}{suffix}").exists() for suffix in ("-wal", "-shm", "-journal"))


def _opened(path: Path, mode: str, *, any_thread: bool) -> sqlite3.Connection:
    connection = _connect(path, mode, _READ_WAIT_SECONDS, any_thread=any_thread)
    try:
        # Sorting needs no temporary file either.
        connection.execute("PRAGMA temp_store = MEMORY")
        check_tables(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: Path, mode: str, wait: float, *, any_thread: bool = False) -> sqlite3.Connection:
    # As a URI, in which neither ":memory:" nor any character of the path has a special meaning.
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}",
        uri=True,
        timeout=wait,
        isolation_level=None,
        check_same_thread=not any_thread,
        factory=ImmutableConnection if mode == _IMMUTABLE else sqlite3.Connection,
    )
    connection.row_factory = sqlite3.Row
    return connection
