"""A SQLite file of vectors, which processes may share."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from kantan_agents.support.log import get_logger
from kantan_agents.support.private_files import create_private

_TABLE = "CREATE TABLE vectors (key BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
_APPLICATION_ID = 0x6B766563
"""In the file's header."""

_BUSY_SECONDS = 2.0
_NUMBER_BYTES = 4
_log = get_logger("kantan_agents.retrieval")


class VectorCache:
    """Stores vectors in a file, created for its owner only at the first write.

    After any problem, which is logged, the vectors are computed again. A file of another kind or application
    is not changed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_unusable = False

    def read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return stored vectors."""
        found: dict[bytes, bytes] = {}
        try:
            if not self._path.exists():
                return {}
            with self._opened() as file:
                for key in keys:
                    row = file.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
                    if (
                        row is not None
                        and isinstance(row[0], bytes)
                        and row[0]
                        and not len(row[0]) % _NUMBER_BYTES
                    ):
                        found[key] = row[0]
        except (sqlite3.Error, OSError) as error:
            self._unusable(error)
        return found

    def write(self, vectors: Mapping[bytes, bytes]) -> None:
        """Store or replace vectors."""
        self._change("INSERT OR REPLACE INTO vectors VALUES (?, ?)", vectors.items())

    def delete(self, keys: Iterable[bytes]) -> None:
        """Delete vectors."""
        self._change("DELETE FROM vectors WHERE key = ?", ((key,) for key in keys))

    def _change(self, statement: str, rows: Iterable[tuple[bytes, ...]]) -> None:
        if self._is_unusable:  # a read has failed already
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._opened() as file, file:
                file.executemany(statement, rows)
        except (sqlite3.Error, OSError) as error:
            self._unusable(error)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        create_private(self._path)
        with closing(sqlite3.connect(self._path, timeout=_BUSY_SECONDS)) as file:
            if _application_id(file) != _APPLICATION_ID:
                file.execute("BEGIN IMMEDIATE")  # several processes may create the table at the same time
                if _application_id(file) != _APPLICATION_ID:
                    if file.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None:
                        raise sqlite3.DatabaseError(
                            "it is the database of another application; use another file"
                        )
                    file.execute(_TABLE)
                    file.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
                file.commit()
            yield file

    def _unusable(self, error: Exception) -> None:
        self._is_unusable = True
        _log.warning("vector_cache_unusable", path=str(self._path), reason=f"{type(error).__name__}: {error}")


def _application_id(file: sqlite3.Connection) -> int:
    return int(file.execute("PRAGMA application_id").fetchone()[0])
