"""Connections to the database of durable runs, and its tables."""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from kantan_agents.durable.storage.ownership import belongs_to, identity_of
from kantan_agents.errors import DurableDatabaseError
from kantan_agents.support.private_files import create_private
from kantan_agents.support.secrets import mask
from kantan_agents.support.storable_text import storable_text
from kantan_agents.traces.database_url import PostgresUrl, has_pairs
from kantan_agents.traces.postgres.patient_connection import AnswerLimit, limiting_options

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_TABLES = (
    """CREATE TABLE IF NOT EXISTS kantan_agents_durable_runs (
        run_id TEXT PRIMARY KEY, execution TEXT, attempt INTEGER NOT NULL,
        begun_at DOUBLE PRECISION NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS kantan_agents_durable_steps (
        root_id TEXT NOT NULL, run_id TEXT NOT NULL, step TEXT NOT NULL, body TEXT,
        PRIMARY KEY (root_id, run_id, step))""",
    """CREATE TABLE IF NOT EXISTS kantan_agents_durable_waiting (
        run_id TEXT PRIMARY KEY, agent TEXT NOT NULL, state TEXT NOT NULL, options TEXT NOT NULL,
        queue TEXT, next_id TEXT)""",
    """CREATE TABLE IF NOT EXISTS kantan_agents_durable_approvals (
        run_id TEXT NOT NULL, call_id TEXT NOT NULL, position INTEGER NOT NULL, agent TEXT NOT NULL,
        tool TEXT NOT NULL, arguments TEXT NOT NULL, asked_at DOUBLE PRECISION NOT NULL,
        answer TEXT, answered_by TEXT, answered_at DOUBLE PRECISION, PRIMARY KEY (run_id, call_id))""",
    """CREATE TABLE IF NOT EXISTS kantan_agents_durable_events (
        run_id TEXT NOT NULL, sequence INTEGER NOT NULL, identity TEXT, body TEXT NOT NULL,
        PRIMARY KEY (run_id, sequence))""",
    """CREATE TABLE IF NOT EXISTS kantan_agents_durable_secrets (
        name TEXT PRIMARY KEY, value TEXT NOT NULL)""",
)

# Any number that is the same in all processes.
_MIGRATION_LOCK = 7_403_113_862_011
_BUSY_SECONDS = 30.0
_IDLE_SECONDS = 60.0
_CHANGE_SECONDS = 600.0
_SQLITE_NOW = "((julianday('now') - 2440587.5) * 86400.0)"
_POSTGRES_NOW = "extract(epoch from clock_timestamp())"


class RunDatabase:
    """The database of durable runs: a SQLite file, or Postgres; raises E156."""

    def __init__(self, url: str, engine: str = "dbos") -> None:
        self._engine_name = engine
        self.url = _checked_url(url)
        self._given = PostgresUrl(url)
        self.is_sqlite = self.url.startswith("sqlite")
        self.now = _SQLITE_NOW if self.is_sqlite else _POSTGRES_NOW
        """SQL for seconds since 1970, by the database's clock, which all processes share."""
        self._engine: Engine | None = None
        self._limit = AnswerLimit()
        self._closing: weakref.finalize[..., RunDatabase] | None = None
        self._lock = Lock()

    @property
    def shown(self) -> str:
        """The URL without a password."""
        return str(self._given)

    def masked(self, text: str) -> str:
        """Mask the URL's passwords and other secrets in a string."""
        return mask(self._given.masked(text.replace(self.url, self.shown)))

    def open(self) -> None:
        """Connect, and create missing tables; raises E156."""
        with self.write() as connection:
            if not self.is_sqlite:
                # Concurrent creations of a table would fail, even with IF NOT EXISTS.
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})")
            for table in _TABLES:
                connection.exec_driver_sql(table)
            if (found := belongs_to(connection, self._engine_name)) != self._engine_name:
                option = "temporal://HOST:PORT/NAMESPACE" if found == "temporal" else found
                reason = f"its runs are those of another engine: give engine={option!r}, or another database"
                raise DurableDatabaseError(database=self.shown, reason=reason)
            path = connection.engine.url.database
        if self.is_sqlite and path:
            # It contains approvals. Imported here: unused until a database is open.
            from kantan_agents.toolkit.protected import TRACES, protect

            protect(path, TRACES)

    def identity(self) -> str:
        """Return its engine, with a unique number unless it is DBOS."""
        with self.read() as connection:
            return identity_of(connection)

    def forget(self) -> None:
        """In a forked child: leave the connections to the parent."""
        leave_to_parent(self._engine, self._closing)
        self._engine = self._closing = None
        self._limit, self._lock = AnswerLimit(), Lock()

    def close(self) -> None:
        """Close all connections. The next use opens new ones."""
        with self._lock:
            self._engine = None
            closing, self._closing = self._closing, None
            self._limit = AnswerLimit()
        if closing is not None:
            closing()

    def hurry(self) -> None:
        """Shorten all waits for the server, until the close."""
        self._limit.hurry()

    @property
    def is_hurried(self) -> bool:
        """Whether `hurry` was called since the last close."""
        return self._limit.is_hurried

    @contextmanager
    def changing_tables(self) -> Iterator[None]:
        """Inside the block, wait longer: changing large tables is slow."""
        limit, before = self._limit, self._limit.seconds
        limit.seconds = max(before, _CHANGE_SECONDS)
        try:
            yield
        finally:
            limit.seconds = min(before, limit.seconds)

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Start a transaction, committed after the block; E156 if it fails."""
        try:
            with self._connected().begin() as connection:
                yield connection
        except failures() as error:
            raise self.unusable(error) from error

    read = write

    def connect(self) -> Any:
        """Return a dedicated connection without a transaction, for its locks; or raise E156."""
        try:
            return self._connected().connect().execution_options(isolation_level="AUTOCOMMIT")
        except failures() as error:
            raise self.unusable(error) from error

    def unusable(self, error: BaseException) -> DurableDatabaseError:
        """Return the error for an unusable database."""
        failure = DurableDatabaseError(database=self.shown, reason=self.masked(_reason(error)))
        cause = getattr(error, "orig", None) or error
        failure.is_away = getattr(error, "connection_invalidated", False) or isinstance(cause, _away())
        return failure

    def _connected(self) -> Engine:
        with self._lock:
            if self._engine is None:
                self._engine = self._new_engine()
                self._closing = close_with(self, partial(close_engine, self._engine))
            return self._engine

    def _new_engine(self) -> Engine:
        import sqlalchemy

        engine = self._sqlite_engine() if self.is_sqlite else self.server_engine(5, more=5)

        @sqlalchemy.event.listens_for(engine, "before_cursor_execute", retval=True)
        def fit(
            _connection: Any, _cursor: Any, statement: str, values: Any, _context: Any, _many: bool
        ) -> tuple[str, Any]:
            return statement, _storable(values)

        return engine

    @property
    def limited_url(self) -> str:
        """The URL with options that notice a lost server."""
        from sqlalchemy import make_url

        url = make_url(self.url)
        options = {} if self.is_sqlite else limiting_options(url.query)
        given = {name: str(value) for name, value in options.items()}
        return url.update_query_dict(given).render_as_string(hide_password=False)

    def server_engine(self, size: int, *, more: int = 0) -> Engine:
        """Return SQLAlchemy's engine with a pool of ``size`` connections, ``more`` under load."""
        import sqlalchemy

        limit = self._limit
        # A connection that the server has closed is noticed before it is used.
        engine = sqlalchemy.create_engine(
            self.limited_url, pool_pre_ping=True, pool_size=size, max_overflow=more
        )

        @sqlalchemy.event.listens_for(engine, "do_connect")
        def connect(_dialect: Any, _record: Any, arguments: Any, options: Any) -> Any:
            connection = limit.connect(*arguments, **options)
            try:
                # A process that stops inside a transaction must not hold its locks for ever.
                connection.execute(f"SET idle_in_transaction_session_timeout = '{_IDLE_SECONDS:g}s'")
                connection.execute(f"SET lock_timeout = '{_BUSY_SECONDS:g}s'")
                connection.commit()
            except BaseException:
                connection.close()
                raise
            return connection

        return engine

    def _sqlite_engine(self) -> Engine:
        import sqlalchemy

        engine = sqlalchemy.create_engine(
            self.url, connect_args={"timeout": _BUSY_SECONDS, "check_same_thread": False}
        )

        @sqlalchemy.event.listens_for(engine, "do_connect")
        def create(_dialect: Any, _record: Any, arguments: Any, _options: Any) -> None:
            if (path := str(arguments[0])) != ":memory:":
                try:
                    create_private(Path(path))
                except OSError as error:
                    raise sqlite3.OperationalError(
                        f"unable to open database file: {error.strerror}"
                    ) from error

        @sqlalchemy.event.listens_for(engine, "connect")
        def prepare(connection: Any, _record: Any) -> None:
            # Otherwise, a read before a write could fail although it waits.
            connection.isolation_level = "IMMEDIATE"
            connection.execute("PRAGMA journal_mode = WAL")  # of the file: readers and writers do not wait

        return engine


def _storable(values: Any) -> Any:
    if isinstance(values, str):
        return storable_text(values)
    if isinstance(values, dict):
        return {name: _storable(value) for name, value in values.items()}
    if isinstance(values, (list, tuple)):
        return type(values)(map(_storable, values))
    return values


_of_parents: list[Any] = []
_Owner = TypeVar("_Owner")


def leave_to_parent(held: Any, closing: weakref.finalize[..., Any] | None) -> None:
    """In a forked child: neither use nor close the parent's connections, whose sockets it shares."""
    if closing is not None:
        closing.detach()
    _of_parents.append(held)


def close_with(owner: _Owner, close: Callable[[], None]) -> weakref.finalize[..., _Owner]:
    """Return a finalizer that closes connections when called, or when the owner is collected.

    A process that only enqueues may never stop it.
    """
    closing = weakref.finalize(owner, _close_own, close, os.getpid())
    closing.atexit = False
    return closing


def close_engine(engine: Engine) -> None:
    """Close SQLAlchemy's engine; used connections close on their return."""
    import sqlalchemy

    # Returned to a closed pool, a connection would stay open until it is collected.
    sqlalchemy.event.listen(engine, "checkin", _invalidate)
    engine.dispose()


def _invalidate(_connection: Any, record: Any) -> None:
    record.invalidate()


def _close_own(close: Callable[[], None], process: int) -> None:
    if os.getpid() == process:  # in a forked child, the connections belong to its parent
        close()


def _checked_url(url: Any) -> str:
    known = ("sqlite:///", "postgresql://", "postgres://")
    # SQLite, not this library, would create the file of `sqlite:///file:PATH?uri=true`.
    if not isinstance(url, str) or not url.startswith(known) or url.startswith("sqlite:///file:"):
        reason = "it must be sqlite:///PATH or postgresql://HOST/NAME"
        raise DurableDatabaseError(database=repr(_kind_of(url)), reason=reason)
    checked: str = url
    if checked.startswith("postgres"):
        # The driver of the engine, which SQLAlchemy would not choose by itself.
        checked = "postgresql+psycopg://" + checked.split("://", 1)[1]
    from sqlalchemy import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        make_url(checked)
    except (ArgumentError, ValueError):
        # The message of SQLAlchemy may have a part of the password.
        reason = "the URL cannot be read; special characters in a password are written as %XX"
        raise DurableDatabaseError(database=repr(checked.split("+")[0]), reason=reason) from None
    return checked


def _kind_of(url: Any) -> str:
    if not isinstance(url, str):
        return type(url).__name__
    scheme, sign, _ = url.partition("://")
    return "key=value" if has_pairs(url) else scheme if sign or not set("=@:") & {*url} else "text"


def _away() -> tuple[type[BaseException], ...]:
    import psycopg
    from sqlalchemy.exc import TimeoutError as NoConnectionError

    return (psycopg.OperationalError, sqlite3.OperationalError, NoConnectionError)


def failures() -> tuple[type[Exception], ...]:
    """Return SQLAlchemy's errors for an unusable database."""
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.exc import TimeoutError as NoConnectionError

    return (DBAPIError, NoConnectionError)


def _reason(error: BaseException) -> str:
    original = getattr(error, "orig", None) or error
    return str(original).strip().splitlines()[0] if str(original).strip() else type(original).__name__
