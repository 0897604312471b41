"""Where traces are copied to: a file, or a database in Postgres."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from kantan_agents.errors import TraceDatabaseError
from kantan_agents.traces.backend import backend_of
from kantan_agents.traces.copying.source import State, TracePage, TraceRow, states_of
from kantan_agents.traces.database_url import url_of
from kantan_agents.traces.figure_tables import keep_figures
from kantan_agents.traces.record_tables import keep_records
from kantan_agents.traces.recorder.run_writing import write_runs
from kantan_agents.traces.schema import COLUMNS, make_indexes
from kantan_agents.traces.search_index import keep_index
from kantan_agents.traces.store.connection import changing, sqlite_errors, transaction

_SPANS: Final = COLUMNS["spans"]
_ROWS_PER_STATEMENT: Final = 50
_TRACES: Final = ", ".join(COLUMNS["traces"])
_UPSERT: Final = (
    f"INSERT INTO traces({_TRACES}) VALUES (?, ?, ?, ?) ON CONFLICT(id) DO UPDATE SET "  # noqa: S608
    + ", ".join(f"{column} = excluded.{column}" for column in COLUMNS["traces"][1:])
)


class CopyTarget:
    """A database that traces are copied to.

    Args:
        connection: From ``changing``.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def states(self, page: Sequence[TraceRow]) -> dict[str, State]:
        """Return the state of those of the traces that it has."""
        ids = [row[0] for row in page]
        # A connection that writes has no views.
        return states_of(self._connection, page, has_runs=True) if ids else {}

    def as_stored(self, row: TraceRow) -> TraceRow:
        """Return the row of a trace as it is in this database."""
        return row

    def write(self, page: TracePage) -> None:
        """Write some traces with all that belongs to them, or nothing."""
        with transaction(self._connection):
            self._connection.executemany(_UPSERT, page.traces)
            self._write_spans(page.spans)
            if page.runs:
                write_runs(self._connection, page.runs)

    def finish(self) -> None:
        """Do what is to be done once, after the last page."""

    def _write_spans(self, spans: Sequence[tuple[Any, ...]]) -> None:
        for start in range(0, len(spans), _ROWS_PER_STATEMENT):
            chunk = spans[start : start + _ROWS_PER_STATEMENT]
            rows = ",".join([f"({','.join('?' * len(_SPANS))})"] * len(chunk))
            statement = f"INSERT OR REPLACE INTO spans({', '.join(_SPANS)}) VALUES {rows}"  # noqa: S608
            self._connection.execute(statement, [value for row in chunk for value in row])


class ServerTarget(CopyTarget):
    """A database in Postgres that traces are copied to."""

    def as_stored(self, row: TraceRow) -> TraceRow:
        """Return the row of a trace as it is in this database."""
        from kantan_agents.traces.postgres.staging import stored_trace

        return stored_trace(row)

    def write(self, page: TracePage) -> None:
        """Write some traces with all that belongs to them, or nothing."""
        from kantan_agents.traces.postgres.partitions import create_partitions, week_of

        server = _server(self._connection)
        today = datetime.now(timezone.utc).date()
        latest = {row[0]: row for row in page.spans}
        placed = [(row, week_of(row[3], today)) for row in latest.values()]
        create_partitions(server, {week for _, week in placed})
        self._placed = placed
        super().write(TracePage([*map(self.as_stored, page.traces)], page.spans, page.runs))

    def _write_spans(self, spans: Sequence[tuple[Any, ...]]) -> None:  # noqa: ARG002 - placed by `write`
        from kantan_agents.traces.postgres.staging import STAGING, SpanValues, copy_spans, merge_spans

        server = _server(self._connection)
        with server.errors():
            server.raw.execute(STAGING)
            copy_spans(server.raw, [(SpanValues(row[:-1]), week) for row, week in self._placed])
            merge_spans(server.raw)

    def finish(self) -> None:
        """Let the server look at the new rows now; until it does so by itself, it would choose slow plans."""
        self._connection.execute("ANALYZE traces")
        self._connection.execute("ANALYZE spans")


def _server(connection: sqlite3.Connection) -> Any:
    from kantan_agents.traces.postgres.connection import server_of

    return server_of(connection)


@contextmanager
def open_target(path: Path, *, adopt: bool) -> Iterator[CopyTarget]:
    """Open a database to copy traces to; create it, or its tables, if it is missing.

    Raises:
        TraceDatabaseError: E60, it is the database of another program, or cannot be changed.
    """
    with sqlite_errors(path):
        try:
            backend_of(path).make_tables(adopt=adopt)
        except OSError as error:
            raise TraceDatabaseError(path=str(path), reason=error.strerror or str(error)) from error
    with changing(path) as connection:
        if url_of(path) is not None:
            yield ServerTarget(connection)
            return
        connection.execute("PRAGMA journal_mode = WAL")
        make_indexes(connection)
        keep_index(connection, create=True)
        keep_figures(connection)
        keep_records(connection)
        # The readers' name of the table.
        connection.execute(
            "CREATE TEMP VIEW all_traces AS SELECT rowid AS rowid, id, workflow_name, group_id, "
            "metadata_json FROM main.traces"
        )
        yield CopyTarget(connection)
