"""``Backend``: what a trace database in a file does in its own way, and one in Postgres in another.

Callers get theirs from ``backend_of`` and do not ask which it is. The statements of readers and writers are
the same for both: a connection to Postgres translates them (``postgres/dialect.py``).
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from typing_extensions import override

from kantan_agents.errors import TraceDatabaseError
from kantan_agents.traces.database_url import PostgresUrl, as_place, why_refused
from kantan_agents.traces.schema import check_owner, make_tables
from kantan_agents.traces.tables import create_views, prepare
from kantan_agents.traces.trace_file import (
    IMMUTABLE,
    READ_WAIT_SECONDS,
    check_file,
    connect_file,
    open_to_read,
    size_beside,
)

_MIGRATION_WAIT_SECONDS: Final = 30.0
_NEWEST: Final = "SELECT (SELECT MAX(rowid) FROM traces), (SELECT MAX(rowid) FROM spans)"

Identity = tuple[int, int]
"""Device and inode of a file."""


class Backend:
    """A trace database in a file. ``PostgresBackend`` overrides whatever asks the file.

    Args:
        path: The file.

    Attributes:
        file: The file; None for a database in Postgres.
        text: The path or the URL, with its password.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: Path | None = path
        self.text = str(path)

    def open_to_read(self, *, any_thread: bool = False, keep_wal: bool = False) -> sqlite3.Connection:
        """Return a connection that reads the database, as ``trace_file.open_to_read``."""
        return open_to_read(self.path, any_thread=any_thread, keep_wal=keep_wal)

    def open_to_change(self, wait: float, *, keep_log: bool = False) -> sqlite3.Connection:
        """Return a connection that changes the database, which is never created.

        Args:
            wait: Seconds to wait for other writers.
            keep_log: Whether another connection moves the pages of the write-ahead log to the file.

        Raises:
            TraceDatabaseError: E60, the file does not exist, or is a link in the place of the default one.
            sqlite3.Error: The database cannot be opened.
        """
        refused = why_refused(self.path)
        if refused is not None:
            raise TraceDatabaseError(path=str(self.path), reason=refused)
        check_file(self.path)
        connection = connect_file(self.path, "mode=rw", wait)
        if keep_log:
            connection.execute("PRAGMA wal_autocheckpoint = 0")
        return connection

    def prepare(self, connection: sqlite3.Connection, *, by_trace: bool = True, views: bool = True) -> None:
        """Prepare a new connection for queries on the tables.

        Without views, ``metadata_json`` is not repaired, and kantan-llm's search cannot be used.

        Args:
            connection: A new connection.
            by_trace: As for ``create_views``.
            views: Whether to create views also if the file needs none; it takes a quarter of the time.
        """
        (create_views if views else prepare)(connection, by_trace=by_trace)

    def make_tables(self, *, adopt: bool = False) -> None:
        """Create the tables, if they are missing.

        Args:
            adopt: Whether to add the tables to the database of another program.

        Raises:
            PostgresMissingError: E140, the driver of Postgres is not installed.
            sqlite3.Error: The database cannot be used, or belongs to another program.
            OSError: The file cannot be created, or a link is in the place of the default one.
        """
        refused = why_refused(self.path)
        if refused is not None:
            raise PermissionError(refused)
        make_tables(self.path, adopt=adopt)

    def why_not_writable(self) -> str | None:
        """Return why traces cannot be written here, without changing the file; None if they can."""
        refused = why_refused(self.path)
        if refused is not None:
            return refused
        if self.path.is_dir():
            return "it is a directory"
        if not self.path.parent.is_dir():
            return "its directory does not exist"
        if not self.path.exists():
            return None
        try:
            with closing(sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=rw", uri=True)) as connection:
                check_owner(connection)
                connection.execute("BEGIN IMMEDIATE")
                connection.rollback()
        except sqlite3.Error as error:
            return str(error)
        return None

    def is_to_come(self) -> bool:
        """Return whether a recorder can create the tables, or is just doing so, where reading found none."""
        try:
            return self._can_have_tables()
        except (sqlite3.Error, OSError, TraceDatabaseError):
            return False

    def _can_have_tables(self) -> bool:
        if not self.path.exists():
            return self.path.parent.is_dir()
        check_file(self.path)
        mode = "mode=ro" if size_beside(self.path, "-wal") else IMMUTABLE  # neither leaves a file beside it
        with closing(connect_file(self.path, mode, READ_WAIT_SECONDS)) as connection:
            check_owner(connection)
        return True

    def exists(self) -> bool:
        """Return whether anything is there."""
        return self.path.exists()

    def has_content(self) -> bool:
        """Return whether what is there is more than the empty file that SQLite creates before the tables."""
        return self.path.is_dir() or self.path.stat().st_size > 0

    def identity(self) -> Identity | None:
        """Return which file is at the path now; None if there is none, or it is not a file."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def version(self) -> str:
        """Return a text that changes whenever somebody writes to the database, or replaces it.

        Raises:
            TraceDatabaseError: E60, there is no regular file at the path.
            sqlite3.Error: The server cannot be asked.
        """
        check_file(self.path)
        return " ".join(_state(one) for one in (self.path, self.path.with_name(f"{self.path.name}-wal")))

    def changes(self, connection: sqlite3.Connection) -> object:
        """Return what another connection changes by writing."""
        return connection.execute("PRAGMA data_version").fetchone()[0]


class PostgresBackend(Backend):
    """A trace database in Postgres. What it needs is imported late: a file needs none of it."""

    def __init__(self, url: PostgresUrl) -> None:
        super().__init__(as_place(url))
        self.file = None
        self.text = url.secret
        self._url = url

    @override
    def open_to_read(self, *, any_thread: bool = False, keep_wal: bool = False) -> sqlite3.Connection:
        return self.open_to_change(READ_WAIT_SECONDS)

    @override
    def open_to_change(self, wait: float, *, keep_log: bool = False) -> sqlite3.Connection:
        from kantan_agents.traces.postgres.connection import as_sqlite, connect
        from kantan_agents.traces.postgres.schema import check_readable

        connection = connect(self._url, wait=wait)
        try:
            check_readable(connection)
        except BaseException:
            connection.close()
            raise
        return as_sqlite(connection)

    @override
    def prepare(self, connection: sqlite3.Connection, *, by_trace: bool = True, views: bool = True) -> None:
        pass  # its tables have all columns, and valid JSON

    @override
    def make_tables(self, *, adopt: bool = False) -> None:
        from kantan_agents.traces.postgres.connection import connect
        from kantan_agents.traces.postgres.schema import migrate

        with closing(connect(self._url, wait=_MIGRATION_WAIT_SECONDS)) as connection:
            migrate(connection, adopt=adopt)

    @override
    def why_not_writable(self) -> str | None:
        return None  # the server says so when the tables are made

    @override
    def _can_have_tables(self) -> bool:
        from kantan_agents.traces.postgres.connection import connect
        from kantan_agents.traces.postgres.schema import version_of

        with closing(connect(self._url, wait=READ_WAIT_SECONDS)) as connection:
            return version_of(connection) is None

    @override
    def exists(self) -> bool:
        return True  # only the server knows, and says so when it is asked

    @override
    def has_content(self) -> bool:
        return True

    @override
    def identity(self) -> Identity | None:
        return None

    @override
    def version(self) -> str:
        """Return the numbers of the newest rows, and how many were changed; the server counts with delay."""
        with closing(self.open_to_read()) as connection:
            newest = connection.execute(_NEWEST)
            changed = connection.execute(
                "SELECT SUM(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_catalog.pg_stat_user_tables "
                "WHERE schemaname = current_schema()"
            )
            return " ".join(map(str, (*newest.fetchone(), *changed.fetchone())))

    @override
    def changes(self, connection: sqlite3.Connection) -> object:
        return tuple(connection.execute(f"{_NEWEST}, (SELECT COUNT(*) FROM traces)").fetchone())  # noqa: S608


def backend_of(path: Path) -> Backend:
    """Return the backend of the database at a path, or at a URL in the place of one."""
    return PostgresBackend(path) if isinstance(path, PostgresUrl) else Backend(path)


def _state(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return "-"
    return f"{found.st_ino} {found.st_size} {found.st_mtime_ns}"
