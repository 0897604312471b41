"""Everything that differs between a file and Postgres, except SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from kantan_agents.errors import TraceDatabaseError
from kantan_agents.traces.database_url import why_refused
from kantan_agents.traces.figure_tables import keep_figures
from kantan_agents.traces.record_tables import keep_records
from kantan_agents.traces.schema import COLUMNS, check_owner, has_tables, make_indexes, make_tables
from kantan_agents.traces.search_index import keep_index
from kantan_agents.traces.tables import create_views, prepare
from kantan_agents.traces.trace_file import (
    IMMUTABLE,
    READ_WAIT_SECONDS,
    check_file,
    connect_file,
    open_to_read,
    size_beside,
)

Identity = tuple[int, int]

_SPANS: Final = COLUMNS["spans"]
_ROWS_PER_STATEMENT: Final = 50


class FileBackend:
    """A trace database; ``text`` is the path, or the URL with its password."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: Path | None = path
        self.text = str(path)

    def open_to_read(self, *, any_thread: bool = False, keep_wal: bool = False) -> sqlite3.Connection:
        """As ``trace_file.open_to_read``."""
        return open_to_read(self.path, any_thread=any_thread, keep_wal=keep_wal)

    def open_to_change(
        self,
        wait: float,
        *,
        keep_log: bool = False,
        is_long: bool = False,  # noqa: ARG002 - of a server
    ) -> sqlite3.Connection:
        """Open an existing database for changes; with ``is_long``, a server may be silent.

        ``keep_log``: another connection checkpoints the write-ahead log.
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
        """Prepare a new connection for queries.

        ``views`` repair ``metadata_json`` and are needed for kantan-llm's search. Creating them even if the
        file needs none takes a quarter of the time.
        """
        (create_views if views else prepare)(connection, by_trace=by_trace)

    def make_tables(self, *, adopt: bool = False) -> None:
        """Create missing tables; with ``adopt``, in another program's database."""
        refused = why_refused(self.path)
        if refused is not None:
            raise PermissionError(refused)
        if self.path.exists():
            with closing(connect_file(self.path, "mode=rw", READ_WAIT_SECONDS)) as connection:
                if has_tables(connection):
                    return
        make_tables(self.path, adopt=adopt)

    def why_not_writable(self) -> str | None:
        """Return why traces cannot be written here, or None."""
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
        """Return whether a recorder can still create the missing tables."""
        try:
            return self._can_have_tables()
        except (sqlite3.Error, OSError, TraceDatabaseError):
            return False

    def _can_have_tables(self) -> bool:
        if not self.path.exists():
            return self.path.parent.is_dir()
        check_file(self.path)
        mode = "mode=ro" if size_beside(self.path, "-wal") else IMMUTABLE  # neither creates files next to it
        with closing(connect_file(self.path, mode, READ_WAIT_SECONDS)) as connection:
            check_owner(connection)
        return True

    def exists(self) -> bool:
        """Return whether the database exists."""
        return self.path.exists()

    def has_content(self) -> bool:
        """Return whether it is more than the empty file before the tables."""
        return self.path.is_dir() or self.path.stat().st_size > 0

    def identity(self) -> Identity | None:
        """Return the identity of the current file, or None."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def version(self) -> str:
        """Return a string that changes with every write or replacement."""
        check_file(self.path)
        return " ".join(_state(one) for one in (self.path, self.path.with_name(f"{self.path.name}-wal")))

    def changes(self, connection: sqlite3.Connection) -> object:
        """Return a value that changes when another connection writes."""
        return connection.execute("PRAGMA data_version").fetchone()[0]

    def prepare_copy(self, connection: sqlite3.Connection) -> None:
        """Prepare a connection for writing copied traces."""
        connection.execute("PRAGMA journal_mode = WAL")
        make_indexes(connection)
        keep_index(connection, create=True)
        keep_figures(connection)
        keep_records(connection)
        # The name that readers use for the table.
        connection.execute(
            "CREATE TEMP VIEW all_traces AS SELECT rowid AS rowid, id, workflow_name, group_id, "
            "metadata_json FROM main.traces"
        )

    def stored_trace(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return a trace's row as this database stores it."""
        return row

    def prepare_write(self, connection: sqlite3.Connection, spans: Sequence[tuple[Any, ...]]) -> None:
        """Prepare the tables, before the transaction that writes the spans."""

    def write_spans(self, connection: sqlite3.Connection, spans: Sequence[tuple[Any, ...]]) -> None:
        """Write rows of ``spans``; replace known ids."""
        for start in range(0, len(spans), _ROWS_PER_STATEMENT):
            chunk = spans[start : start + _ROWS_PER_STATEMENT]
            rows = ",".join([f"({','.join('?' * len(_SPANS))})"] * len(chunk))
            statement = f"INSERT OR REPLACE INTO spans({', '.join(_SPANS)}) VALUES {rows}"  # noqa: S608
            connection.execute(statement, [value for row in chunk for value in row])

    def end_copy(self, connection: sqlite3.Connection) -> None:
        """Finish after many traces were written."""


def _state(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return "-"
    return f"{found.st_ino} {found.st_size} {found.st_mtime_ns}"
