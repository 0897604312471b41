"""Whether a database has changed, without opening it."""

from __future__ import annotations

from pathlib import Path

from kantan_agents.tracing.store.connection import check_file


def file_version(path: Path) -> str:
    """Return a text that changes whenever somebody writes to the database, or replaces it.

    Raises:
        TraceDatabaseError: E60, there is no regular file at the path.
    """
    check_file(path)
    return " ".join(_state(one) for one in (path, path.with_name(f"{path.name}-wal")))


def _state(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return "-"
    return f"{found.st_ino} {found.st_size} {found.st_mtime_ns}"
