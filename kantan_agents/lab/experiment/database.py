"""Finds the trace database of an evaluation, and sees to it that its runs are recorded there."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path

from kantan_agents.errors import InvalidOptionError, TraceDatabaseError
from kantan_agents.support.waiting import run_to_end
from kantan_agents.traces import registry
from kantan_agents.traces.backend import backend_of
from kantan_agents.traces.database_url import PostgresUrl, as_place
from kantan_agents.traces.schema import has_tables
from kantan_agents.traces.store import TraceStore
from kantan_agents.traces.store.connection import sqlite_errors


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
        return as_place(store)
    reason = f"must be a TraceStore or a path, not {type(store).__name__}"
    raise InvalidOptionError(option="store", reason=reason)


def prepare_database(path: Path) -> None:
    """Create the tables of traces in the file, if they are missing: a recorder may not have created them yet.

    Raises:
        TraceDatabaseError: E60, the file is the database of another program, or cannot be changed.
    """
    backend = backend_of(path)
    with sqlite_errors(path):
        if backend.file is not None and backend.file.exists():
            uri = f"{backend.file.absolute().as_uri()}?mode=rw"
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                if has_tables(connection):
                    return
        try:
            backend.make_tables()
        except OSError as error:
            raise TraceDatabaseError(path=str(path), reason=error.strerror or str(error)) from error


@asynccontextmanager
async def recorded(path: Path) -> AsyncIterator[None]:
    """Record the traces of this process in a file until the end of the block, if they are not anyway.

    Even if it is cancelled, the block waits until they are in the file or the time for that is over.
    """
    # Imported here: those who only read results need no SDK.
    from kantan_agents.lab.experiment.record_too import is_recorded_without, record_too_async

    if is_recorded_without(path):
        try:
            yield
        finally:
            await run_to_end(partial(registry.flush_recorders, path))
    else:
        async with record_too_async(path):
            yield


def redacts(path: Path) -> bool:
    """Return whether a recorder of this process changes or leaves out what it records in the file."""
    resolved = path.resolve()
    return any(one.path == resolved and getattr(one, "redacts", False) for one in registry.recorders())
