"""The SQLite file with changes by tools."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

import attrs

from kantan_agents.support.private_files import create_private

Turn = tuple[str, int]
"""Conversation id and turn number."""

_VERSION: Final = 1
_PATIENCE: Final = 10.0
_DAY: Final = 86_400
_DIGEST: Final = 32
_TABLE: Final = """
CREATE TABLE changes (
    conversation TEXT, number INTEGER, at REAL, kind TEXT, root BLOB, path BLOB, mode INTEGER, content BLOB,
    written BLOB, PRIMARY KEY (conversation, number, kind, root, path)
)
"""
_ADD: Final = "INSERT OR IGNORE INTO changes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_WRITTEN: Final = """
SELECT written FROM changes
WHERE conversation = ? AND number = ? AND kind = 'file' AND root = ? AND path = ?
"""
_WRITE: Final = """
UPDATE changes SET written = ?
WHERE conversation = ? AND number = ? AND kind = 'file' AND root = ? AND path = ?
"""
_REMOVE_FILE: Final = """
DELETE FROM changes WHERE conversation = ? AND number = ? AND kind = 'file' AND root = ? AND path = ?
"""
_REMOVE_TURN: Final = "DELETE FROM changes WHERE conversation = ? AND number = ?"
_OF_TURN: Final = """
SELECT kind, root, path, mode, content, written FROM changes WHERE conversation = ? AND number = ? ORDER BY at
"""
_OTHERS: Final = """
SELECT conversation, number FROM changes WHERE NOT (conversation = ? AND number = ?)
GROUP BY 1, 2 ORDER BY max(at)
"""
_LIST: Final = """
SELECT number, count(*), max(at) FROM changes WHERE conversation = ? AND number <= ? AND kind = 'file'
GROUP BY number ORDER BY number DESC
"""


@attrs.frozen
class SnapshotLimits:
    """Limits: turns, bytes per file and in total, days."""

    turns: int = 200
    file_bytes: int = 20_000_000
    total_bytes: int = 250_000_000
    days: int = 30


@attrs.frozen
class NotedChange:
    """A change by a tool.

    Attributes:
        root: The tool's root folder; or the command.
        mode: The file's previous permissions; None if it did not exist.
        content: Its previous content; None if it did not exist or was not stored.
        written: Digests of what tools wrote, in order; empty if something else changed it in between.
    """

    kind: Literal["file", "folder", "command"]
    root: str
    path: str = ""
    mode: int | None = None
    content: bytes | None = attrs.field(default=None, repr=False)
    written: bytes = b""

    @property
    def parts(self) -> tuple[str, ...]:
        """The names on the path from the root."""
        return tuple(self.path.split("/"))

    def has_written(self, content: bytes | None) -> bool:
        """Return whether a tool wrote this content."""
        starts = range(0, len(self.written), _DIGEST)
        return content is not None and _digest(content) in {self.written[at : at + _DIGEST] for at in starts}


class Snapshots:
    """Stores changes in a file that only its owner may read, or in memory. Several chats may share one file.

    Methods may be called in any thread, block, and raise ``sqlite3.Error`` and OSError.
    """

    def __init__(self, path: Path | None, limits: SnapshotLimits | None = None) -> None:
        self.limits = limits or SnapshotLimits(total_bytes=250_000_000 if path else 60_000_000)
        self.dropped = 0
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        if path is not None and path.exists():
            self._connection = self._opened()  # which removes expired entries

    def add(self, turn: Turn, change: NotedChange) -> None:
        """Note a created folder or a command."""
        with self._transaction() as database:
            self._add(database, turn, change)

    def keep(self, turn: Turn, file: NotedChange, data: bytes) -> bool:
        """Store a file before ``data`` replaces it; return whether that worked."""
        key = (*turn, *_place(file))
        with self._transaction() as database:
            row = database.execute(_WRITTEN, key).fetchone()
            if row is not None:
                known = attrs.evolve(file, written=row[0])
                is_known = file.mode is None or known.has_written(file.content)
                database.execute(_WRITE, (row[0] + _digest(data) if is_known and row[0] else b"", *key))
                return True
            if not self._frees_space(database, turn, len(file.content or b"")):
                file = attrs.evolve(file, content=None)
            self._add(database, turn, attrs.evolve(file, written=_digest(data)))
        return file.mode is None or file.content is not None

    def turns(self, conversation: str, last: int) -> list[tuple[int, int, float]]:
        """Return number, changed files and time (seconds since 1970) of each turn, latest first."""
        with self._transaction() as database:
            return database.execute(_LIST, (conversation, last)).fetchall()

    def of_turn(self, turn: Turn) -> list[NotedChange]:
        """Return the changes of a turn."""
        with self._transaction() as database:
            return [
                NotedChange(kind, os.fsdecode(root), os.fsdecode(path), *rest)
                for kind, root, path, *rest in database.execute(_OF_TURN, turn)
            ]

    def forget(self, turn: Turn, files: Sequence[NotedChange]) -> None:
        """Remove files, and the turn with its last one."""
        with self._transaction() as database:
            database.executemany(_REMOVE_FILE, [(*turn, *_place(file)) for file in files])
            if all(kind != "file" for kind, *_ in database.execute(_OF_TURN, turn)):
                database.execute(_REMOVE_TURN, turn)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()

    @staticmethod
    def _add(database: sqlite3.Connection, turn: Turn, change: NotedChange) -> None:
        values = (*_place(change), change.mode, change.content, change.written)
        database.execute(_ADD, (*turn, time.time(), change.kind, *values))

    def _frees_space(self, database: sqlite3.Connection, turn: Turn, size: int) -> bool:
        others = database.execute(_OTHERS, turn).fetchall()
        while (full := _used(database) + size > self.limits.total_bytes) or len(others) >= self.limits.turns:
            if not others:
                return not full
            database.execute(_REMOVE_TURN, others.pop(0))
            self.dropped += 1
        return True

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._connection is None:
                self._connection = self._opened()
            self._connection.execute("BEGIN IMMEDIATE")
            with self._connection:  # commits or rolls back
                yield self._connection

    def _opened(self) -> sqlite3.Connection:
        if self._path is not None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            create_private(self._path)
        place = self._path or ":memory:"
        connection = sqlite3.connect(place, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA auto_vacuum = FULL")
            connection.execute("PRAGMA secure_delete = ON")  # deleted data must be unreadable
            connection.execute("BEGIN IMMEDIATE")
            with connection:
                self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _VERSION):
            raise sqlite3.DatabaseError("another version of kantan-agents has written it")
        if not version:
            connection.execute(_TABLE)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        oldest = time.time() - self.limits.days * _DAY
        connection.execute("DELETE FROM changes WHERE at < ?", (oldest,))


def _place(change: NotedChange) -> tuple[bytes, bytes]:
    return os.fsencode(change.root), os.fsencode(change.path)  # file names need not be valid text


def _digest(content: bytes) -> bytes:
    return sha256(content).digest()


def _used(database: sqlite3.Connection) -> int:
    names = ("page_count", "freelist_count", "page_size")
    pages, free, size = (database.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
    return int((pages - free) * size)
