"""Which files are at the path of a database: the database, its log and the index of the log."""

from __future__ import annotations

import os
from pathlib import Path

import attrs

Identity = tuple[int, int]


@attrs.frozen
class Files:
    """The identities of the files; None for a file that does not exist.

    Attributes:
        database: The database.
        log: The write-ahead log, ``-wal``.
        index: The index of the log, ``-shm``.
        is_empty: Whether the database has no content; while it is open, only truncation makes it so.
    """

    database: Identity | None
    log: Identity | None
    index: Identity | None
    is_empty: bool


def files_at(path: Path) -> Files:
    """Return the files of the database at ``path``.

    Raises:
        OSError: A file cannot be accessed.
    """
    database = _stat(path)
    return Files(
        database=_identity(database),
        log=_identity(_stat(log_of(path))),
        index=_identity(_stat(index_of(path))),
        is_empty=database is not None and database.st_size == 0,
    )


def log_of(path: Path) -> Path:
    """Return the path of the write-ahead log."""
    return path.with_name(f"{path.name}-wal")


def index_of(path: Path) -> Path:
    """Return the path of the index of the log."""
    return path.with_name(f"{path.name}-shm")


def remove_if(path: Path, identity: Identity | None) -> None:
    """Delete the file at ``path`` if it is the one with this identity."""
    if identity is not None and _identity(_stat(path)) == identity:
        path.unlink(missing_ok=True)


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _identity(found: os.stat_result | None) -> Identity | None:
    return None if found is None else (found.st_dev, found.st_ino)
