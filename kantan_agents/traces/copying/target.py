"""Writes copied traces."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from kantan_agents.traces.backend import backend_of
from kantan_agents.traces.copying.source import State, TracePage, TraceRow, states_of
from kantan_agents.traces.database_url import Place
from kantan_agents.traces.file_backend import FileBackend
from kantan_agents.traces.recorder.run_writing import write_runs
from kantan_agents.traces.schema import COLUMNS
from kantan_agents.traces.store.connection import changing, create_tables, transaction

_TRACES: Final = ", ".join(COLUMNS["traces"])
_UPSERT: Final = (
    f"INSERT INTO traces({_TRACES}) VALUES (?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET "  # noqa: S608
    + ", ".join(f"{column} = excluded.{column}" for column in COLUMNS["traces"][1:])
)


class CopyTarget:
    """The target database."""

    def __init__(self, backend: FileBackend, connection: sqlite3.Connection) -> None:
        self.as_stored = backend.stored_trace
        self._backend = backend
        self._connection = connection

    def states(self, page: Sequence[TraceRow]) -> dict[str, State]:
        """Return the states of the existing traces."""
        ids = [row[0] for row in page]
        # A connection that writes has no views.
        return states_of(self._connection, page, has_runs=True) if ids else {}

    def write(self, page: TracePage) -> None:
        """Write these traces in one transaction."""
        self._backend.prepare_write(self._connection, page.spans)
        with transaction(self._connection):
            self._connection.executemany(_UPSERT, map(self.as_stored, page.traces))
            if page.spans:
                self._backend.write_spans(self._connection, page.spans)
            if page.runs:
                write_runs(self._connection, page.runs)

    def finish(self) -> None:
        """Finish after the last page."""
        self._backend.end_copy(self._connection)


@contextmanager
def open_target(place: Place, *, adopt: bool) -> Iterator[CopyTarget]:
    """Open the target; create missing tables; raise E60 if that fails."""
    backend = backend_of(place)
    create_tables(place, adopt=adopt)
    with changing(place, is_long=True) as connection:
        backend.prepare_copy(connection)
        yield CopyTarget(backend, connection)
