"""The trace database of an experiment, and the rows in it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from kantan_agents.errors import InvalidOptionError, TraceDatabaseError
from kantan_agents.traces import registry
from kantan_agents.traces.database_url import PostgresUrl, as_place, path_of
from kantan_agents.traces.store import TraceStore
from kantan_agents.traces.store.connection import create_tables


def database_of(store: TraceStore | str | os.PathLike[str] | None) -> Path:
    """Return the path of the database; by default the one that ``record_traces`` has opened.

    Raises:
        InvalidOptionError: E75, none is given and none is recorded to, or it is something else.
    """
    if store is None:
        path = registry.main_database()
        if path is None:
            raise InvalidOptionError(option="store", reason="give a database, or call record_traces first")
        return path
    if isinstance(store, TraceStore):
        return store.path
    if isinstance(store, (str, os.PathLike, PostgresUrl)):
        return path_of(as_place(store))
    reason = f"must be a TraceStore or a path, not {type(store).__name__}"
    raise InvalidOptionError(option="store", reason=reason)


def prepare_database(path: Path) -> None:
    """Create the tables of traces in the file, if they are missing: a recorder may not have created them yet.

    Raises:
        TraceDatabaseError: E60, the file is the database of another program, or cannot be changed.
    """
    create_tables(path)


def redacts(path: Path) -> bool:
    """Return whether a recorder of this process changes or leaves out what it records in the file."""
    resolved = path.resolve()
    return any(one.path == resolved and getattr(one, "redacts", False) for one in registry.recorders())


@contextmanager
def intact(path: Path, what: str) -> Iterator[None]:
    """Read what is stored in rows.

    Args:
        path: The database.
        what: What the rows are, for the error.

    Raises:
        TraceDatabaseError: E60, they are damaged.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError, msgspec.ValidationError) as error:
        raise TraceDatabaseError(path=str(path), reason=f"{what} is damaged: {error}") from error
