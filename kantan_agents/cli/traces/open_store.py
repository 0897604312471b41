"""Checks the database's path before slow imports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kantan_agents.cli.terminal.database import DATABASE_VARIABLE
from kantan_agents.errors import TraceDatabaseError
from kantan_agents.traces.backend import backend_of

if TYPE_CHECKING:
    from kantan_agents.traces.store import TraceStore


def path_exists(path: Path) -> bool:
    """Return whether ``path`` exists."""
    try:
        return backend_of(path).exists()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TraceDatabaseError(path=str(path), reason=reason) from error


def open_store(path: Path) -> TraceStore:
    """Return the store that reads ``path``."""
    if not path_exists(path):
        reason = f"there is no such file; name another with --db or {DATABASE_VARIABLE}"
        raise TraceDatabaseError(path=str(path), reason=reason)
    from kantan_agents.traces.store import TraceStore

    return TraceStore(path)
