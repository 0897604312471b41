"""A connection to Postgres with the used part of ``sqlite3.Connection``.

The driver's errors become sqlite3's, without the password.

A transaction that writes waits for a server lock. So traces and spans are numbered in the order in which they
become visible, whatever the clocks of the writers show. Followers, pages and rollouts rely on that.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

from kantan_agents.errors import TraceDatabaseError
from kantan_agents.support.extras import extra
from kantan_agents.support.storable_text import storable_text
from kantan_agents.traces.database_url import PostgresUrl
from kantan_agents.traces.postgres.dialect import translated
from kantan_agents.traces.postgres.patient_connection import AnswerLimit, limiting_options
from kantan_agents.traces.postgres.server_error import ServerError

if TYPE_CHECKING:
    import psycopg

OLDEST: Final = 160_000

WRITE_LOCK: Final = 0x6B616E74616E
"""The advisory lock of transactions that write."""

_IDLE_SECONDS: Final = 60
# A suspended writer would hold its locks.
BEGIN_WRITING: Final = f"BEGIN; SET LOCAL idle_in_transaction_session_timeout = '{_IDLE_SECONDS}s'"
"""The server ends the connection if nothing follows for a minute."""

_BEGINNINGS: Final = {
    "BEGIN IMMEDIATE": f"{BEGIN_WRITING}; SELECT pg_advisory_xact_lock({WRITE_LOCK})",
    "BEGIN": "BEGIN ISOLATION LEVEL REPEATABLE READ",
}


class Row(tuple[Any, ...]):
    """A row, by number and by name."""

    __slots__ = ()
    names: Mapping[str, int]

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self.names[key] if isinstance(key, str) else key)

    def keys(self) -> list[str]:
        """Return the names of the values, as ``sqlite3.Row`` does."""
        return [*self.names]


@lru_cache(maxsize=256)
def _row_type(names: tuple[str, ...]) -> type[Row]:
    return type("Row", (Row,), {"__slots__": (), "names": {name: place for place, name in enumerate(names)}})


class ServerCursor:
    """The used part of ``sqlite3.Cursor``; all rows are in memory."""

    def __init__(self, connection: ServerConnection) -> None:
        self.row_factory: Any = Row
        self._connection = connection
        self._cursor = connection.raw.cursor()
        self._rows: Iterator[Any] = iter(())

    def execute(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> ServerCursor:
        """Execute a statement for both databases."""
        with self._connection.errors():
            text = _BEGINNINGS.get(sql)
            self._cursor.execute(cast("Any", text or translated(sql)), _bound(values))
            self._rows = iter(self._fetched() if self._cursor.description and text is None else ())
        return self

    def executemany(self, sql: str, values: Iterable[Sequence[Any]]) -> ServerCursor:
        """Execute a statement for each item of ``values``."""
        with self._connection.errors():
            self._cursor.executemany(cast("Any", translated(sql)), [_bound(one) for one in values])
        return self

    def _fetched(self) -> list[Any]:
        rows: list[Any] = self._cursor.fetchall()
        if self.row_factory is None:
            return rows
        kind = _row_type(tuple(column.name for column in self._cursor.description or ()))
        return [kind(row) for row in rows]

    def __iter__(self) -> Iterator[Any]:
        return self._rows

    def fetchone(self) -> Any:
        """Return the next row; None after the last one."""
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        """Return the remaining rows."""
        return [*self._rows]

    @property
    def rowcount(self) -> int:
        """How many rows the last statement changed."""
        return self._cursor.rowcount

    @property
    def lastrowid(self) -> int | None:
        """The last number of this connection from a sequence."""
        with self._connection.errors():
            row = self._connection.raw.execute("SELECT lastval()").fetchone()
        return int(row[0]) if row else None

    def close(self) -> None:
        """Close it."""
        self._cursor.close()


class ServerConnection:
    """The used part of ``sqlite3.Connection``; ``raw`` is in autocommit mode."""

    def __init__(self, raw: psycopg.Connection[Any], url: PostgresUrl) -> None:
        self.raw = raw
        self.url = url

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn the driver's errors into ``ServerError``."""
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            raise server_error(error, self.url) from None

    def execute(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> ServerCursor:
        """Execute a statement for both databases."""
        return self.cursor().execute(sql, values)

    def executemany(self, sql: str, values: Iterable[Sequence[Any]]) -> ServerCursor:
        """Execute a statement for each item of ``values``."""
        return self.cursor().executemany(sql, values)

    def native(self, sql: str, values: Any = None) -> psycopg.Cursor[Any]:
        """Execute a statement for Postgres; its rows are tuples."""
        with self.errors():
            return self.raw.execute(cast("Any", sql), values)

    def cursor(self) -> ServerCursor:
        """Return a cursor."""
        return ServerCursor(self)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open or failed."""
        import psycopg

        return self.raw.info.transaction_status not in (
            psycopg.pq.TransactionStatus.IDLE,
            psycopg.pq.TransactionStatus.UNKNOWN,
        )

    def close(self) -> None:
        """Close it."""
        with suppress(Exception):  # it may be lost already
            self.raw.close()


def connect(
    url: PostgresUrl, *, wait: float, any_thread: bool = False, limit: AnswerLimit | None = None
) -> ServerConnection:
    """Return a connection; the caller controls its transactions.

    Every thread may use it, one at a time. ``limit`` is None for long statements.
    """
    del any_thread
    psycopg = driver()
    # Not as attributes of the package, which lacks modules imported before the package was imported again, as
    # by a test runner that restores modules while a recorder connects.
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.types.string import TextLoader

    open_connection = psycopg.connect if limit is None else limit.connect
    try:
        raw = open_connection(
            url.secret,
            autocommit=True,
            # Values go into the statement: a server infers the types of literals, but not of parameters.
            cursor_factory=psycopg.ClientCursor,
            **limiting_options(conninfo_to_dict(url.secret)),
        )
    except psycopg.Error as error:
        raise server_error(error, url) from None
    try:
        _check_version(raw, url)
        raw.adapters.register_loader("json", TextLoader)
        # A sum of integers, which is an int in a file.
        raw.adapters.register_loader("numeric", _number_loader())
        raw.execute(f"SET lock_timeout = {max(1, int(wait * 1_000))}; SET client_encoding = 'UTF8'")
    except psycopg.Error as error:
        raw.close()
        raise server_error(error, url) from None
    except BaseException:
        raw.close()
        raise
    return ServerConnection(raw, url)


@lru_cache(maxsize=1)
def _number_loader() -> Any:
    from psycopg.adapt import Loader

    class NumberLoader(Loader):
        def load(self, data: Any) -> int | float:
            text = bytes(data).decode()
            return float(text) if "." in text or not text.lstrip("-").isdigit() else int(text)

    return NumberLoader


def _check_version(raw: psycopg.Connection[Any], url: PostgresUrl) -> None:
    found = raw.info.server_version
    if found < OLDEST:
        reason = f"the server has version {found // 10_000}; 16 is the oldest that works"
        raise TraceDatabaseError(path=str(url), reason=reason)


def driver() -> Any:
    """Import the driver, or raise E140."""
    with extra("postgres"):
        import psycopg
    return psycopg


def server_error(error: psycopg.Error, url: PostgresUrl) -> ServerError:
    """Return an error without the password."""
    lines = [line.strip() for line in url.masked(str(error)).splitlines() if line.strip()]
    message = " ".join(line for line in lines if not line.startswith(("LINE ", "^", "HINT")))
    return ServerError(message or type(error).__name__, error.sqlstate)


def as_sqlite(connection: ServerConnection) -> sqlite3.Connection:
    """Cast to the type that readers and writers use."""
    return cast("sqlite3.Connection", connection)


def server_of(connection: sqlite3.Connection) -> ServerConnection:
    """Cast to the type of this module."""
    return cast("ServerConnection", connection)


def _bound(values: Sequence[Any] | Mapping[str, Any]) -> Any:
    if isinstance(values, Mapping):
        return {name: _value(value) for name, value in values.items()}
    return [_value(value) for value in values]


def _value(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return storable_text(value) if isinstance(value, str) else value
