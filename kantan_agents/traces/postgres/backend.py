"""``PostgresBackend``: everything that differs in Postgres."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import date, datetime, timezone
from typing import Any, Final

from typing_extensions import override

from kantan_agents.traces.database_url import PostgresUrl
from kantan_agents.traces.file_backend import FileBackend, Identity
from kantan_agents.traces.postgres.connection import as_sqlite, connect, server_of
from kantan_agents.traces.postgres.partitions import create_partitions, week_of
from kantan_agents.traces.postgres.patient_connection import ANSWER_SECONDS, AnswerLimit
from kantan_agents.traces.postgres.schema import check_readable, migrate, version_of
from kantan_agents.traces.postgres.staging import (
    STAGING,
    SpanValues,
    copy_spans,
    merge_spans,
    stored_trace,
)
from kantan_agents.traces.trace_file import READ_WAIT_SECONDS

_MIGRATION_WAIT_SECONDS: Final = 30.0
_READ_SECONDS: Final = 600.0
"""A search of many traces is silent for long. While connecting, a silent server is noticed sooner."""
_NEWEST: Final = "SELECT (SELECT MAX(rowid) FROM traces), (SELECT MAX(rowid) FROM spans)"


class PostgresBackend(FileBackend):
    """A trace database in Postgres; it has no path."""

    def __init__(self, url: PostgresUrl) -> None:
        self.file = None
        self.text = url.secret
        self._url = url

    @override
    def open_to_read(self, *, any_thread: bool = False, keep_wal: bool = False) -> sqlite3.Connection:
        return self._opened(READ_WAIT_SECONDS, _READ_SECONDS)

    @override
    def open_to_change(
        self, wait: float, *, keep_log: bool = False, is_long: bool = False
    ) -> sqlite3.Connection:
        return self._opened(wait, math.inf if is_long else wait + ANSWER_SECONDS)

    def _opened(self, wait: float, longest: float) -> sqlite3.Connection:
        limit = AnswerLimit()
        connection = connect(self._url, wait=wait, limit=limit)
        try:
            check_readable(connection)
        except BaseException:
            connection.close()
            raise
        limit.seconds = longest
        return as_sqlite(connection)

    @override
    def prepare(self, connection: sqlite3.Connection, *, by_trace: bool = True, views: bool = True) -> None:
        pass  # its tables have all columns, and valid JSON

    @override
    def make_tables(self, *, adopt: bool = False) -> None:
        with closing(connect(self._url, wait=_MIGRATION_WAIT_SECONDS)) as connection:
            migrate(connection, adopt=adopt)

    @override
    def why_not_writable(self) -> str | None:
        return None  # the server reports it on creation

    @override
    def _can_have_tables(self) -> bool:
        with closing(connect(self._url, wait=READ_WAIT_SECONDS)) as connection:
            return version_of(connection) is None

    @override
    def exists(self) -> bool:
        return True  # only the server knows, and reports it on use

    @override
    def has_content(self) -> bool:
        return True

    @override
    def identity(self) -> Identity | None:
        return None

    @override
    def version(self) -> str:
        """Return the numbers of the latest and of changed rows; the server counts with delay."""
        with closing(self.open_to_read()) as connection:
            newest = connection.execute(_NEWEST)
            changed = server_of(connection).native(
                "SELECT SUM(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_catalog.pg_stat_user_tables "
                "WHERE schemaname = current_schema()"
            )
            return " ".join(map(str, (*newest.fetchone(), *(changed.fetchone() or ()))))

    @override
    def changes(self, connection: sqlite3.Connection) -> object:
        return tuple(connection.execute(f"{_NEWEST}, (SELECT COUNT(*) FROM traces)").fetchone())  # noqa: S608

    @override
    def prepare_copy(self, connection: sqlite3.Connection) -> None:
        pass  # `make_tables` has done it

    @override
    def stored_trace(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        return stored_trace(row)

    @override
    def prepare_write(self, connection: sqlite3.Connection, spans: Sequence[tuple[Any, ...]]) -> None:
        create_partitions(server_of(connection), {week for _, week in _placed(spans)})

    @override
    def write_spans(self, connection: sqlite3.Connection, spans: Sequence[tuple[Any, ...]]) -> None:
        server = server_of(connection)
        server.native(STAGING)
        with server.errors():
            copy_spans(server.raw, _placed(spans))
            merge_spans(server.raw)

    @override
    def end_copy(self, connection: sqlite3.Connection) -> None:
        """Analyze the new rows now, to avoid slow plans until the server does so."""
        connection.execute("ANALYZE traces")
        connection.execute("ANALYZE spans")


def _placed(spans: Sequence[tuple[Any, ...]]) -> Iterator[tuple[SpanValues, date]]:
    today = datetime.now(timezone.utc).date()
    for row in {row[0]: row for row in spans}.values():
        yield SpanValues(row[:-1]), week_of(row[3], today)
