"""The trace database file: checked, measured, and opened without creating files."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Final

from kantan_agents.errors import TraceDatabaseError
from kantan_agents.traces.schema import may_write
from kantan_agents.traces.tables import check_tables

# Without a write-ahead log, kantan-llm's tracer locks the file for each span.
READ_WAIT_SECONDS = 10.0
IMMUTABLE: Final = "immutable=1"


class ImmutableConnection(sqlite3.Connection):
    """A connection in SQLite's immutable mode: it sees no change of the file."""


def check_file(path: Path) -> None:
    """Raise E60 unless there is a regular file at ``path``."""
    mode = stat_of(path).st_mode
    if not S_ISREG(mode):
        reason = "it is a directory" if S_ISDIR(mode) else "it is not a regular file"
        raise TraceDatabaseError(path=str(path), reason=reason)


def size_of(path: Path) -> int:
    """Return the bytes of the database with its log, or raise E60."""
    return stat_of(path).st_size + size_beside(path, "-wal")


def stat_of(path: Path) -> os.stat_result:
    """Return the file's status, or raise E60."""
    try:
        return path.stat()
    except FileNotFoundError as error:
        raise TraceDatabaseError(path=str(path), reason="there is no such file") from error
    except OSError as error:
        raise TraceDatabaseError(path=str(path), reason=error.strerror or str(error)) from error


def size_beside(path: Path, suffix: str) -> int:
    """Return the bytes of the file with this suffix; 0 if missing."""
    try:
        return Path(f"{path}{suffix}").stat().st_size
    except OSError:
        return 0


def open_to_read(path: Path, *, any_thread: bool = False, keep_wal: bool = False) -> sqlite3.Connection:
    """Open the database for reading; leave no additional file behind.

    If a killed writer left a write-ahead log, SQLite moves its content to the file at the end, unless
    ``keep_wal``.
    """
    check_file(path)
    if not may_write(path) and not _is_open(path):
        # Otherwise SQLite would create a read-only log, which would still block writing once the file becomes
        # writable.
        return open_file(path, IMMUTABLE, any_thread=any_thread)
    # "rw" even if the file can only be read: "ro" would create a log that SQLite could not delete.
    mode = "mode=ro" if keep_wal and size_beside(path, "-wal") else "mode=rw"
    try:
        return open_file(path, mode, any_thread=any_thread)
    except sqlite3.OperationalError as error:
        protected = "unable to open" in str(error) or "readonly" in str(error)
        if not protected or size_beside(path, "-wal") or size_beside(path, "-journal"):
            raise
        # In a read-only directory, SQLite opens a WAL database only as immutable.
        return open_file(path, IMMUTABLE, any_thread=any_thread)


def open_file(path: Path, mode: str, *, any_thread: bool = False) -> sqlite3.Connection:
    """Open a file with the tables, in a mode of ``connect_file``."""
    connection = connect_file(path, mode, READ_WAIT_SECONDS, any_thread=any_thread)
    try:
        # Sorting needs no temporary file either.
        connection.execute("PRAGMA temp_store = MEMORY")
        check_tables(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_file(path: Path, mode: str, wait: float, *, any_thread: bool = False) -> sqlite3.Connection:
    """Open a file in a mode of SQLite's URIs."""
    # As a URI, no name has a special meaning, such as ":memory:".
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}",
        uri=True,
        timeout=wait,
        isolation_level=None,
        check_same_thread=not any_thread,
        factory=ImmutableConnection if mode == IMMUTABLE else sqlite3.Connection,
    )
    connection.row_factory = sqlite3.Row
    return connection


def _is_open(path: Path) -> bool:
    """Return whether another process has it open, or left a log to read."""
    return any(Path(f"{path}{suffix}").exists() for suffix in ("-wal", "-shm", "-journal"))
