"""Connections to a trace database: short-lived, opened in the thread that uses them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from kantan_agents.errors import TraceDatabaseError
from kantan_agents.tracing.schema import may_write
from kantan_agents.tracing.store.shadows import shadow_tables
from kantan_agents.tracing.store.tables import check_tables

# kantan-llm's own tracer holds the lock of a file without a write-ahead log for one span at a time.
_READ_WAIT_SECONDS = 10.0
_CHANGE_WAIT_SECONDS = 30.0


@contextmanager
def reading(
    path: Path, *, by_trace: bool = True, any_thread: bool = False, leave_log: bool = False
) -> Iterator[sqlite3.Connection]:
    """Open the database at ``path`` to read it.

    Args:
        path: The file; it is never made.
        by_trace: Whether spans are looked up by their trace, which takes an index that a database of
            kantan-llm's own lacks.
        any_thread: Whether other threads may use it as well, one at a time.
        leave_log: As for ``open_to_read``.

    Raises:
        TraceDatabaseError: E60, it cannot be opened, or what is done with the connection fails.
    """
    with sqlite_errors(path):
        connection = open_to_read(path, any_thread=any_thread, leave_log=leave_log)
        try:
            shadow_tables(connection, by_trace=by_trace)
            yield connection
        finally:
            connection.close()


@contextmanager
def changing(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the database at ``path`` to change it with this thread, in transactions of its own.

    Raises:
        TraceDatabaseError: E60, it cannot be opened, or what is done with the connection fails.
    """
    with sqlite_errors(path):
        check_file(path)
        connection = _connect(path, "mode=rw", _CHANGE_WAIT_SECONDS)
        try:
            yield connection
        finally:
            connection.close()


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Raise what SQLite says of the file at ``path`` as E60."""
    try:
        yield
    except sqlite3.Error as error:
        raise TraceDatabaseError(path=str(path), reason=str(error)) from error


def open_to_read(path: Path, *, any_thread: bool = False, leave_log: bool = False) -> sqlite3.Connection:
    """Return a connection that reads the database at ``path`` and leaves no file behind.

    What a killed writer left in a write-ahead log goes into the file when the last connection is closed.

    Args:
        path: The file.
        any_thread: Whether other threads may use it as well, one at a time.
        leave_log: Whether such a log stays as it is.

    Raises:
        TraceDatabaseError: E60, there is no such file, or it is no trace database.
        sqlite3.Error: SQLite cannot open it.
    """
    check_file(path)
    if not may_write(path) and not _is_open(path):
        # Of a file that may only be read SQLite would make a log of the same kind, and that would still be in
        # the way when the file may be written again.
        return _opened(path, "immutable=1", any_thread=any_thread)
    # For writing, which a protected file turns into reading: read-only, SQLite would make a log that it could
    # not remove again.
    mode = "mode=ro" if leave_log and _size(path, "-wal") else "mode=rw"
    try:
        return _opened(path, mode, any_thread=any_thread)
    except sqlite3.OperationalError as error:
        protected = "unable to open" in str(error) or "readonly" in str(error)
        if not protected or _size(path, "-wal") or _size(path, "-journal"):
            raise
        # In a directory where no file can be made, SQLite opens a database that has a log only if it is told
        # that nobody can change it.
        return _opened(path, "immutable=1", any_thread=any_thread)


def check_path(path: Path) -> None:
    """Make sure that ``path`` could lead to a file.

    Raises:
        TraceDatabaseError: E60, there is a zero byte in it, or links lead in a circle.
    """
    try:
        path.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise TraceDatabaseError(path=str(path), reason=str(error)) from error


def check_file(path: Path) -> None:
    """Make sure that there is a file at ``path`` that SQLite could open.

    Raises:
        TraceDatabaseError: E60, there is none.
    """
    mode = _stat(path).st_mode
    if not S_ISREG(mode):
        reason = "it is a directory" if S_ISDIR(mode) else "it is not a regular file"
        raise TraceDatabaseError(path=str(path), reason=reason)


def size_of(path: Path) -> int:
    """Return the size of the database in bytes, its write-ahead log included.

    Raises:
        TraceDatabaseError: E60, it is not there.
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
    """Whether somebody has the database open, or left something of his that is still to be read."""
    return any(Path(f"{path}{suffix}").exists() for suffix in ("-wal", "-shm", "-journal"))


def _opened(path: Path, mode: str, *, any_thread: bool) -> sqlite3.Connection:
    connection = _connect(path, mode, _READ_WAIT_SECONDS, any_thread=any_thread)
    try:
        # What is sorted or looked up on the way needs no file either.
        connection.execute("PRAGMA temp_store = MEMORY")
        check_tables(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: Path, mode: str, wait: float, *, any_thread: bool = False) -> sqlite3.Connection:
    # As a URI, which is never taken for ":memory:", and in which no character of the path means anything.
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}",
        uri=True,
        timeout=wait,
        isolation_level=None,
        check_same_thread=not any_thread,
    )
    connection.row_factory = sqlite3.Row
    return connection
