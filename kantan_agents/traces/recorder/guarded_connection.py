"""Prevents connections to replaced files from damaging the new files."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where an open file cannot be removed
    fcntl = None  # type: ignore[assignment]

# Replacing the connection takes milliseconds, or a second on a busy machine; two recorders at a time damage
# the file. Who holds the lock for longer uses it for something else.
_LOCK_SECONDS = 5.0
_PAUSE_SECONDS = 0.005


class GuardedConnection(sqlite3.Connection):
    """A connection that can be closed without writing its log to the database.

    Python before 3.12 has no switch for it. But SQLite writes no log if the last connection is read-only, so
    a second, read-only one stays open.
    """

    _reader: sqlite3.Connection | None = None

    def guard(self, path: Path) -> None:
        """Open the second connection to the file at ``path``."""
        self._reader = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, check_same_thread=False)
        # Without a read, it would hold no lock.
        self._reader.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()

    def close_both(self, *, with_log: bool) -> None:
        """Close both connections; with ``with_log``, SQLite may write the log."""
        reader, self._reader = self._reader, None
        first, last = (reader, self) if with_log else (self, reader)
        try:
            if first is not None:
                first.close()
        finally:
            if last is not None:
                last.close()


def begin_log(connection: sqlite3.Connection) -> None:
    """Start the log, visible for other processes."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.execute(f"PRAGMA user_version = {version}")


@contextmanager
def directory_locked(directory: Path) -> Iterator[None]:
    """Let one recorder of all processes at a time open or close files in ``directory``.

    The lock is on the directory, because closing a file descriptor of the database would release SQLite's
    locks. If it cannot be had, the block runs without it.
    """
    descriptor = None
    if fcntl is not None:
        with suppress(OSError):
            descriptor = os.open(directory, os.O_RDONLY)
    try:
        if descriptor is not None:
            _lock(descriptor)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _lock(descriptor: int) -> None:
    deadline = time.monotonic() + _LOCK_SECONDS
    while _is_held_by_another(descriptor) and time.monotonic() < deadline:
        time.sleep(_PAUSE_SECONDS)


def _is_held_by_another(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # the file system has no such locks
        return False
    return False
