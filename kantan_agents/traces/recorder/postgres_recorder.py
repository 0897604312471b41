"""A trace processor that writes to Postgres without delaying the run."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Any, Final, cast

from kantan_agents.traces.database_url import PostgresUrl, as_url
from kantan_agents.traces.figure_tables import count_changed
from kantan_agents.traces.postgres.connection import (
    BEGIN_WRITING,
    WRITE_LOCK,
    ServerConnection,
    as_sqlite,
    connect,
    driver,
)
from kantan_agents.traces.postgres.partitions import create_partitions, week_of, weeks_in
from kantan_agents.traces.postgres.patient_connection import AnswerLimit
from kantan_agents.traces.postgres.schema import migrate
from kantan_agents.traces.postgres.server_error import ServerError
from kantan_agents.traces.postgres.staging import STAGING, copy_spans, merge_spans, stored_trace
from kantan_agents.traces.recorder.database import Database
from kantan_agents.traces.recorder.merge import TraceRow, merge_traces
from kantan_agents.traces.recorder.recorder import SQLiteRecorder
from kantan_agents.traces.recorder.rows import SpanRow
from kantan_agents.traces.recorder.run_rows import RunRow
from kantan_agents.traces.recorder.run_writing import write_runs
from kantan_agents.traces.schema import COLUMNS

MAX_QUEUE: Final = 100_000
"""One minute of 1,600 spans a second, for a server that is down."""

# While another process writes, the writer retries in steps, so that it can be stopped.
_BUSY_SECONDS: Final = 2.0

_TRACES: Final = ", ".join(COLUMNS["traces"])
_UPSERT: Final = (
    f"INSERT INTO traces({_TRACES}) SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::text[]) "  # noqa: S608
    "ON CONFLICT(id) DO UPDATE SET "
    + ", ".join(f"{column} = excluded.{column}" for column in COLUMNS["traces"][1:])
)


class PostgresRecorder(SQLiteRecorder):
    """Records traces in a Postgres database without blocking the event loop.

    Use it for several services with one database; they may start at the same time. It has the methods,
    options and guarantees of ``SQLiteRecorder``. While the server cannot be reached, spans wait in memory and
    are written when it is back. If more come than may wait, the oldest are dropped, counted and logged. A
    zero character in a string is stored as U+2400.

    Args:
        path: The URL of the database, such as ``postgresql://user@host/traces``. Its tables are created in
            the first schema of the user's ``search_path``. No log line, error or ``repr`` contains the
            password; better use ``PGPASSWORD`` or a password file.
        max_queue: As for ``SQLiteRecorder``, with a larger default for the time that a server is down.
        **options: As for ``SQLiteRecorder``. ``adopt`` allows a schema with tables of another program.
            ``search_index`` creates an index with the extension ``pg_trgm`` for new tables; without the
            extension, searches read all spans, and a warning is logged once.

    Raises:
        PostgresMissingError: E140, the driver is not installed.
        InvalidOptionError: E75, an option is invalid.
    """

    def __init__(self, path: str, *, max_queue: int = MAX_QUEUE, **options: Any) -> None:
        super().__init__(path, max_queue=max_queue, **options)

    def _checked_place(self, path: str | os.PathLike[str]) -> PostgresUrl:
        driver()
        self._url = as_url(path)
        return self._url

    def _make_database(self) -> Database:
        return cast("Database", ServerDatabase(self._url, adopt=self._adopt, search_index=self._search_index))


class ServerDatabase:
    """A Postgres database with the methods of ``Database``; not thread-safe."""

    def __init__(self, url: PostgresUrl, *, adopt: bool = False, search_index: bool = True) -> None:
        self.replaced = 0
        self.changed_traces = 0
        self.unindexed_traces = 0  # the server maintains its index
        self._url = url
        self._adopt = adopt
        self._search_index = search_index
        self._connection: ServerConnection | None = None
        self._limit = AnswerLimit()
        self._weeks: set[date] = set()
        self._doubtful: set[str] = set()

    def open(self) -> None:
        """Connect unless connected; create missing tables."""
        self._open()

    def _open(self) -> ServerConnection:
        if self._connection is not None and not self._connection.raw.closed:
            return self._connection
        self._weeks = set()
        connection = connect(self._url, wait=_BUSY_SECONDS, limit=self._limit)
        try:
            migrate(connection, adopt=self._adopt, search_index=self._search_index)
            with connection.errors():
                connection.raw.execute(STAGING)
            self._weeks = set(weeks_in(connection))
            self._create_weeks_ahead(connection)
            self.changed_traces = count_changed(as_sqlite(connection))
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _create_weeks_ahead(self, connection: ServerConnection) -> None:
        today = datetime.now(timezone.utc).date()
        ahead = {week_of(str(today + timedelta(days=days)), today) for days in (0, 7)}
        try:
            create_partitions(connection, ahead - self._weeks)
        except ServerError as error:
            if not error.is_locked:  # a reader holds a lock; the week's first span retries
                raise
        else:
            self._weeks |= ahead

    def write(
        self, traces: Sequence[tuple[Any, ...]], spans: Sequence[SpanRow], runs: Sequence[RunRow] = ()
    ) -> None:
        """Write all rows or none."""
        connection = self._open()
        today = datetime.now(timezone.utc).date()
        placed = [(span, week_of(span.values[3], today)) for span in self._latest(spans)]
        missing = {week for _, week in placed} - self._weeks
        if missing:
            create_partitions(connection, missing)
            self._weeks |= missing
        ids = {span.values[0] for span in spans}
        try:
            with connection.errors():
                connection.raw.execute(BEGIN_WRITING)
                copy_spans(connection.raw, placed)
                connection.raw.execute(f"SELECT pg_advisory_xact_lock({WRITE_LOCK})")
                known = self._written(connection, ids)
                counted = [span for span, _ in placed if span.values[0] not in known]
                self._write_traces(connection, traces, counted)
                if placed:
                    merge_spans(connection.raw)
            if runs:
                write_runs(as_sqlite(connection), runs)
        except BaseException:
            self._give_up(connection)
            raise
        self._doubtful |= ids
        try:
            connection.execute("COMMIT")
        except ServerError as error:
            if error.sqlstate is not None:  # the server reports that it has not committed
                self._doubtful -= ids
            self.close()
            raise
        self._doubtful -= ids
        changed = {span.values[1] for span, _ in placed}.union(row[0] for row in traces)
        self.changed_traces += len(changed)

    def _latest(self, spans: Sequence[SpanRow]) -> list[SpanRow]:
        """Return the last span for each id, as a file stores it."""
        return [*{span.values[0]: span for span in spans}.values()]

    def _written(self, connection: ServerConnection, ids: set[str]) -> set[str]:
        """Return the spans whose transaction was committed although the connection was lost.

        Their tokens are in the sum of their trace already.
        """
        asked = self._doubtful & ids
        if not asked:
            return set()
        rows = connection.raw.execute("SELECT id FROM spans WHERE id = ANY(%s)", ([*asked],))
        return {row[0] for row in rows}

    def _write_traces(
        self, connection: ServerConnection, traces: Sequence[TraceRow], spans: Sequence[SpanRow]
    ) -> None:
        ids = {**{row[0]: None for row in traces}, **{span.values[1]: None for span in spans}}
        if not ids:
            return
        query = f"SELECT {_TRACES} FROM traces WHERE id = ANY(%s)"  # noqa: S608
        rows = connection.raw.execute(query, ([*ids],))
        changed = merge_traces({row[0]: row for row in rows}, traces, spans)
        if changed:
            columns = [[*column] for column in zip(*map(stored_trace, changed), strict=True)]
            connection.raw.execute(_UPSERT, columns)

    def _give_up(self, connection: ServerConnection) -> None:
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            self.close()

    def close(self) -> None:
        """Close the connection; the next ``write`` opens it again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def abandon(self) -> Any:
        """Return the connection without closing it, in a forked child."""
        connection, self._connection = self._connection, None
        return connection

    def is_replaced(self) -> bool:
        """Return False: only a file can be replaced."""
        return False

    def close_replaced(self) -> None:
        """Do nothing: only a file can be replaced."""
