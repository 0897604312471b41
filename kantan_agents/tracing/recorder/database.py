"""The writing connection: opened on demand, one transaction for each batch."""

from __future__ import annotations

import errno
import sqlite3
import time
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from kantan_agents.support.private_files import create_private
from kantan_agents.tracing.kept_figures import count_changed, keep_figures
from kantan_agents.tracing.recorder.files import Files, files_at, index_of, log_of, remove_if
from kantan_agents.tracing.recorder.guard import GuardedConnection, begin_log, directory_locked
from kantan_agents.tracing.recorder.merge import TraceRow, merge_traces
from kantan_agents.tracing.recorder.rows import SpanRow
from kantan_agents.tracing.schema import (
    COLUMNS,
    ForeignDatabaseError,
    check_owner,
    has_tables,
    make_indexes,
    make_tables,
    may_write,
    shrink_in_steps,
)

# While another process holds the lock, the writer retries instead of sleeping inside SQLite. Between two
# attempts it can be stopped.
_BUSY_SECONDS = 0.25

# SQLite executes a statement without the GIL, and getting the GIL back from a busy event loop takes up to
# 5 ms. With one statement for each row, that would be the cost of a row. A span has 17 values, and older
# versions of SQLite accept at most 999 in a statement.
_ROWS_PER_STATEMENT = 58

_CACHE_KIB = 16_384

# Pages of the write-ahead log before a checkpoint, 16 MiB. Span ids are random, so in a large file most
# batches change the same index pages, which one checkpoint then writes once.
_WAL_PAGES = 4_000

# How often to open the file if it is replaced meanwhile.
_OPEN_ATTEMPTS = 3

# A program that copies a database over the file truncates it first.
_CONTENT_SECONDS = 0.2
_CONTENT_PAUSE = 0.02

# Messages of an OperationalError whose cause is the file and not a row. Python 3.10 has no error codes.
_FILE_ERRORS = (
    "locked",
    "busy",
    "readonly",
    "disk",
    "full",
    "unable to open",
    "no such table",
    "no such column",
    "no column named",
)

# Not REPLACE: a trace keeps its rowid, by which traces are listed.
_UPDATE = "ON CONFLICT(id) DO UPDATE SET " + ", ".join(
    f"{column} = excluded.{column}" for column in COLUMNS["traces"][1:]
)


class Database:
    """The database file for the thread that writes to it; not thread-safe.

    Args:
        path: The file.
        adopt: Whether to add the tables to the database of another program.

    Attributes:
        replaced: How often the files were found moved, replaced, truncated or deleted while open.
    """

    def __init__(self, path: Path, *, adopt: bool = False) -> None:
        self.replaced = 0
        self._path = path
        self._adopt = adopt
        self._connection: GuardedConnection | None = None
        self._files: Files | None = None
        self.changed_traces = 0
        """At least so many traces may have figures that are not stored."""

    def open(self) -> None:
        """Open the file, unless it is open and still the one at the path.

        Raises:
            sqlite3.Error: The database cannot be used, temporarily or at all.
            OSError: The file cannot be accessed.
        """
        try:
            self._open()
        except sqlite3.OperationalError as error:
            if not _lacks_tables(error):
                raise
            self._open()  # another process has dropped tables since they were found

    def write(self, traces: Sequence[tuple[Any, ...]], spans: Sequence[SpanRow]) -> None:
        """Write all rows or none.

        Raises:
            sqlite3.Error: The database cannot be used, temporarily or at all.
            OSError: The file cannot be accessed.
            Exception: SQLite cannot store a value.
        """
        is_new = self._connection is None
        try:
            _write(self._open(), traces, spans)
            if self.is_replaced() and not _has(self._open(), traces, spans):
                _write(self._open(), traces, spans)  # the files were replaced during the write
        except Exception as error:
            if (is_new and not _lacks_tables(error)) or is_locked(error) or not is_file_error(error):
                raise
            # Tables were dropped or the file was replaced. The file that exists now may be usable.
            self.close()
            _write(self._open(), traces, spans)
        self.changed_traces += len({span.values[1] for span in spans}.union(row[0] for row in traces))

    def close(self) -> None:
        """Close the connection; the next ``write`` opens it again."""
        # SQLite would write the log of files that were replaced to the file that is there now.
        try:
            self.close_replaced()
        except (sqlite3.Error, OSError) as error:
            if is_locked(error):
                return  # the removed log is the only copy of its rows; the next call tries again
        self._close()

    def _close(self, *, with_log: bool = True) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close_both(with_log=with_log)

    def abandon(self) -> sqlite3.Connection | None:
        """Return the connection without closing it, in a forked child, which must not use it."""
        connection, self._connection = self._connection, None
        return connection

    def is_replaced(self) -> bool:
        """Return whether the open files are no longer those at the path, or were truncated."""
        return self._connection is not None and _found_files(self._path) != self._files

    def close_replaced(self) -> bool:
        """Close the connection if its files were replaced, so that readers do not see them; return whether.

        Raises:
            sqlite3.Error, OSError: The files cannot be accessed.
        """
        if not self.is_replaced():
            return False
        self._leave_replaced_files()
        return True

    def _open(self) -> sqlite3.Connection:
        # Nobody would read what is written to files that are no longer at the path.
        self.close_replaced()
        if self._connection is None:
            _check_permission(self._path)
            with directory_locked(self._path.parent):
                connection, self._files = _connect_verified(self._path, self._adopt)
                self._connection = connection
                if self.replaced:
                    begin_log(connection)
            self.changed_traces = count_changed(self._connection)
        return self._connection

    def _leave_replaced_files(self) -> None:
        """Close the connection, and remove the files of it that SQLite would apply to what is there now.

        Raises:
            sqlite3.OperationalError: Another process uses the removed log. The connection stays open.
            OSError: The files cannot be accessed.
        """
        connection, before = self._connection, self._files
        if connection is None or before is None:
            return
        with directory_locked(self._path.parent):
            now = files_at(self._path)
            is_moved = now.database != before.database
            with_log = is_moved or not (now.is_empty or self._has_new_log(before, now))
            # The log may belong to a file that was only moved, or it was removed, and this connection has it.
            if with_log and not _is_checkpointed(connection) and not is_moved:
                raise sqlite3.OperationalError("database is locked: its log was removed and is still in use")
            # Before closing, because other files may get the same identities afterwards.
            remove_if(log_of(self._path), before.log)
            remove_if(index_of(self._path), before.index)
            self._close(with_log=with_log)
            self.replaced += 1
        if now.is_empty:
            self._wait_for_content()

    def _has_new_log(self, before: Files, now: Files) -> bool:
        """Return whether another connection has begun a log, with which this one's cannot be joined."""
        is_same = now.log == before.log and now.index in (None, before.index)
        is_gone = now.log is None and now.index in (None, before.index)
        return not (is_same or is_gone) and not (now.log != before.log and _is_empty(log_of(self._path)))

    def _wait_for_content(self) -> None:
        """Wait briefly for a program that has truncated the file in order to write another database to it."""
        deadline = time.monotonic() + _CONTENT_SECONDS
        while _is_empty(self._path) and time.monotonic() < deadline:
            time.sleep(_CONTENT_PAUSE)


def is_locked(error: Exception) -> bool:
    """Return whether the error says that another process holds the database lock."""
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def _lacks_tables(error: Exception) -> bool:
    # Opening creates the tables, so another process has dropped them since.
    return isinstance(error, sqlite3.OperationalError) and "no such table" in str(error)


def is_file_error(error: Exception) -> bool:
    """Return whether the file is the cause, so that the same rows may be written later or to another file."""
    if isinstance(error, sqlite3.OperationalError):
        message = str(error)
        return any(words in message for words in _FILE_ERRORS)
    # For a file that is damaged or not a database, sqlite3 raises the base class itself.
    return isinstance(error, (OSError, ForeignDatabaseError)) or type(error) is sqlite3.DatabaseError


def may_be_file_error(error: Exception) -> bool:
    """Return whether the file may be the cause; it is not if other rows can be written."""
    return isinstance(error, sqlite3.OperationalError)


def _write(
    connection: sqlite3.Connection, traces: Sequence[tuple[Any, ...]], spans: Sequence[SpanRow]
) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        traces_of_spans = {span.values[1]: None for span in spans}
        found = _found(connection, list({**{row[0]: None for row in traces}, **traces_of_spans}))
        _insert(connection, "INSERT", "traces", merge_traces(found, traces, spans), _UPDATE)
        _insert(connection, "INSERT OR REPLACE", "spans", _numbered(connection, spans, list(traces_of_spans)))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _check_permission(path: Path) -> None:
    """Check that the file and its directory may be written.

    This check comes before SQLite opens the file. For a read-only file, SQLite would create a read-only log
    and index, which would still block writing when the file becomes writable again.

    Raises:
        PermissionError: The file or its directory is read-only.
    """
    if path.exists() and not may_write(path):
        raise PermissionError(errno.EACCES, "it is read-only")
    if not may_write(path.parent):
        raise PermissionError(errno.EACCES, "its directory is read-only")


def _connect_verified(path: Path, adopt: bool) -> tuple[GuardedConnection, Files]:
    """Return a connection and its files, which SQLite does not expose.

    Raises:
        OSError: The files are unknown, because they were replaced during each attempt.
        sqlite3.Error: The database cannot be used.
    """
    for _ in range(_OPEN_ATTEMPTS):
        create_private(path)
        before = files_at(path)
        connection = _connect(path, adopt)
        files = files_at(path)
        if before.database is not None and before.database == files.database:
            # Within a process, SQLite shares the index among all connections to a file, even after it was
            # removed. With the log that is there now, it would be wrong.
            if files.log is not None and files.index is None:
                connection.close()
                raise sqlite3.OperationalError("database is locked by a connection to a log that was removed")
            try:
                connection.guard(path)
            except BaseException:
                connection.close_both(with_log=True)
                raise
            return connection, files
        connection.close()
    raise FileNotFoundError(errno.ENOENT, "it was replaced while it was opened")


def _connect(path: Path, adopt: bool) -> GuardedConnection:
    connection = sqlite3.connect(
        str(path),
        factory=GuardedConnection,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,  # before a fork, the forking thread closes it
        cached_statements=8 * _ROWS_PER_STATEMENT,  # the last chunk of a batch may have any length
    )
    try:
        check_owner(connection, adopt=adopt)
        shrink_in_steps(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        if not has_tables(connection):
            make_tables(path, adopt=adopt)
        make_indexes(connection)
        keep_figures(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _is_checkpointed(connection: sqlite3.Connection) -> bool:
    """Write the log to the database; return False if another connection prevents it."""
    try:
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error as error:
        return not is_locked(error)  # nothing is gained by trying again
    return not busy


def _is_empty(path: Path) -> bool:
    try:
        return not path.stat().st_size
    except FileNotFoundError:
        return False


def _found_files(path: Path) -> Files | None:
    try:
        return files_at(path)
    except OSError:
        return None  # opening reports the reason


def _has(connection: sqlite3.Connection, traces: Sequence[tuple[Any, ...]], spans: Sequence[SpanRow]) -> bool:
    """Return whether the last of the rows, which are written in one transaction, is in the database."""
    table, row_id = ("spans", spans[-1].values[0]) if spans else ("traces", traces[-1][0] if traces else None)
    query = f"SELECT 1 FROM {table} WHERE id = ?"  # noqa: S608
    return row_id is None or connection.execute(query, (row_id,)).fetchone() is not None


def _found(connection: sqlite3.Connection, trace_ids: Sequence[str]) -> dict[str, TraceRow]:
    """Return the rows of the traces that are in the file already, by id."""
    columns = ",".join(COLUMNS["traces"])
    found: dict[str, TraceRow] = {}
    for chunk in _chunks(trace_ids):
        query = f"SELECT {columns} FROM traces WHERE id IN ({','.join('?' * len(chunk))})"  # noqa: S608
        found.update((row[0], row) for row in connection.execute(query, chunk))
    return found


def _insert(
    connection: sqlite3.Connection,
    verb: str,
    table: str,
    rows: Sequence[tuple[Any, ...]],
    on_conflict: str = "",
) -> None:
    columns = COLUMNS[table]
    for chunk in _chunks(rows):
        values = ",".join([f"({','.join('?' * len(columns))})"] * len(chunk))
        statement = f"{verb} INTO {table}({','.join(columns)}) VALUES {values} {on_conflict}"
        connection.execute(statement, list(chain.from_iterable(chunk)))


def _numbered(
    connection: sqlite3.Connection, spans: Sequence[SpanRow], trace_ids: Sequence[str]
) -> list[tuple[Any, ...]]:
    """Return the rows, each with the next ``ingest_seq`` of its trace."""
    last: dict[str, int] = {}
    for chunk in _chunks(trace_ids):
        marks = ",".join("?" * len(chunk))
        query = f"SELECT trace_id, MAX(ingest_seq) FROM spans WHERE trace_id IN ({marks}) GROUP BY trace_id"  # noqa: S608
        last.update((trace_id, number or 0) for trace_id, number in connection.execute(query, chunk))
    rows = []
    for span in spans:
        trace_id = span.values[1]
        number = last.get(trace_id, 0) + 1
        last[trace_id] = number
        rows.append((*span.values, number))
    return rows


def _chunks(rows: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (rows[start : start + _ROWS_PER_STATEMENT] for start in range(0, len(rows), _ROWS_PER_STATEMENT))
