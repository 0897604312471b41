"""The trace database of an experiment, and its rows."""

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
    """Return the path, by default of ``record_traces``."""
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
    """Create the tables of traces, if a recorder has not yet."""
    create_tables(path)


def redacts(path: Path) -> bool:
    """Return whether a recorder of the file changes or omits data."""
    resolved = path.resolve()
    return any(one.path == resolved and getattr(one, "redacts", False) for one in registry.recorders())


@contextmanager
def intact(path: Path, what: str) -> Iterator[None]:
    """Raise E60 if the rows of ``what`` are damaged."""
    try:
        yield
    except (KeyError, TypeError, ValueError, msgspec.ValidationError) as error:
        raise TraceDatabaseError(path=str(path), reason=f"{what} is damaged: {error}") from error
