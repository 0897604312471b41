"""``SQLiteStore``: a file, which several processes may share."""

from __future__ import annotations

import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeVar

from anyio import to_thread

from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.arguments import checked_int, checked_path
from kantan_agents.support.private_files import create_private

T = TypeVar("T")

_BUSY_SECONDS: Final = 2.0
_TIDY_SECONDS: Final = 60.0
_SHARE_LEFT: Final = 0.9  # of the limit, so that not every write has to remove answers
_DEFAULT_BYTES: Final = 1024 * 1024 * 1024

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS kantan_agents_cache (
    key TEXT PRIMARY KEY, expires REAL NOT NULL, size INTEGER NOT NULL, body BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS kantan_agents_cache_expires ON kantan_agents_cache (expires, size);
"""


class SQLiteStore:
    """Stores answers in an SQLite file, which only its owner may read. Several processes may share it.

    Expired answers are removed about once a minute, while answers are written. If the answers take more than
    ``max_bytes``, those that expire first are removed as well.

    Args:
        path: The file. It is created on first use.
        max_bytes: Maximum size of all answers in bytes, by default 1 GiB.

    Raises:
        InvalidOptionError: E75, the path is invalid, or its directory does not exist.
    """

    is_persistent = True

    def __init__(self, path: str | os.PathLike[str], max_bytes: int = _DEFAULT_BYTES) -> None:
        self.path = Path(checked_path("path", path))
        if not self.path.parent.is_dir():
            raise InvalidOptionError(option="path", reason=f"{self.path.parent} is not a directory")
        self.max_bytes = checked_int("max_bytes", max_bytes, 1)
        self._opened = _Opened(self.path)
        self._tidied_at = 0.0
        weakref.finalize(self, self._opened.close)

    async def read(self, key: str) -> bytes | None:
        """Return the body stored under a key; None if it is missing or expired."""
        return await self._do(lambda database: _read(database, key))

    async def write(self, key: str, body: bytes, ttl: float) -> None:
        """Store a body for ``ttl`` seconds, unless it alone is larger than the store."""
        if len(body) <= self.max_bytes:
            await self._do(lambda database: self._write(database, key, body, ttl))

    async def remove(self, key: str) -> None:
        """Remove the body stored under a key."""
        await self._do(
            lambda database: database.execute("DELETE FROM kantan_agents_cache WHERE key = ?", (key,))
        )

    async def clear(self) -> None:
        """Remove everything."""
        await self._do(lambda database: database.execute("DELETE FROM kantan_agents_cache"))

    async def _do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def do() -> T:
            with self._opened.connection() as database:
                return work(database)

        return await to_thread.run_sync(do)

    def _write(self, database: sqlite3.Connection, key: str, body: bytes, ttl: float) -> None:
        now = time.time()
        database.execute(
            "INSERT OR REPLACE INTO kantan_agents_cache (key, expires, size, body) VALUES (?, ?, ?, ?)",
            (key, now + ttl, len(body), body),
        )
        is_due = not 0 <= now - self._tidied_at < _TIDY_SECONDS  # true as well if the clock was set back
        if is_due:
            self._tidied_at = now
            database.execute("DELETE FROM kantan_agents_cache WHERE expires <= ?", (now,))
        if is_due or len(body) > self.max_bytes // 10:
            self._remove_oldest(database)

    def _remove_oldest(self, database: sqlite3.Connection) -> None:
        (size,) = database.execute("SELECT coalesce(sum(size), 0) FROM kantan_agents_cache").fetchone()
        if size <= self.max_bytes:
            return
        database.execute(
            "DELETE FROM kantan_agents_cache WHERE key IN (SELECT key FROM (SELECT key, "
            "sum(size) OVER (ORDER BY expires DESC, key) AS newer FROM kantan_agents_cache) WHERE newer > ?)",
            (int(self.max_bytes * _SHARE_LEFT),),
        )

    def __repr__(self) -> str:
        return f"SQLiteStore({str(self.path)!r})"


def _read(database: sqlite3.Connection, key: str) -> bytes | None:
    found: Any = database.execute(
        "SELECT body FROM kantan_agents_cache WHERE key = ? AND expires > ?", (key, time.time())
    ).fetchone()
    return None if found is None else bytes(found[0])


class _Opened:
    """One connection for all threads, and another one after a fork."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._pid = os.getpid()
        self._connection: sqlite3.Connection | None = None
        self._of_parent: sqlite3.Connection | None = None

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        if os.getpid() != self._pid:
            # A thread of the parent may have held the lock. Closing its connection would drop its file locks.
            self._lock, self._pid = Lock(), os.getpid()
            self._of_parent, self._connection = self._connection, None
        with self._lock:
            if self._connection is None:
                self._connection = self._open()
            with self._connection:
                yield self._connection

    def _open(self) -> sqlite3.Connection:
        create_private(self._path)
        database = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, check_same_thread=False)
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            database.executescript(_SCHEMA)
        except BaseException:
            database.close()
            raise
        return database

    def close(self) -> None:
        if self._connection is not None and os.getpid() == self._pid:
            self._connection.close()
            self._connection = None
