"""The connection that writes: opened when it is needed, a batch at a time in one transaction."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

from kantan_agents.tracing.recorder.merge import TraceRow, merged
from kantan_agents.tracing.recorder.rows import SpanRow
from kantan_agents.tracing.schema import (
    COLUMNS,
    check_owner,
    has_tables,
    make_indexes,
    make_tables,
    may_write,
)

# A transaction that another process holds is waited for by trying again, not by sleeping inside SQLite:
# between two tries the writer can be told to stop.
_BUSY_SECONDS = 0.25

# Rows in one statement. SQLite works on a statement without Python's lock, and to get the lock back from a
# busy event loop takes up to 5 ms: with a statement for each row that would be the cost of a row. A span has
# 17 values, and older versions take no more than 999 in a statement.
_ROWS_AT_ONCE = 58

_CACHE_KIB = 16_384

# Pages of the log until it is written into the file, 16 MiB: ids are random, and in a large file most
# batches change the same pages of the indexes.
_LOG_PAGES = 4_000

_NEW_FILE_MODE = 0o644  # as SQLite makes it

# So often it is opened, if another file takes its place meanwhile.
_OPENINGS = 3

# Of an OperationalError: what is wrong with the file, and not with a row. Python 3.10 tells no error codes.
_FILE_TROUBLE = (
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

# Not REPLACE: a trace keeps its place, and by places they are listed.
_UPDATE = "ON CONFLICT(id) DO UPDATE SET " + ", ".join(
    f"{column} = excluded.{column}" for column in COLUMNS["traces"][1:]
)


class Database:
    """The file, as the one thread that writes to it sees it. Not safe for use by several threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._log_identity: tuple[int, int] | None = None

    def write(self, traces: Sequence[tuple[Any, ...]], spans: Sequence[SpanRow]) -> None:
        """Write all of it, or nothing.

        Raises:
            sqlite3.Error: The database cannot be used, now or at all.
            OSError: The file cannot be reached.
            Exception: A value is none that SQLite can store.
        """
        is_new = self._connection is None
        try:
            _write(self._opened(), traces, spans)
            if self._log_identity is None:
                self._log_identity = _identity(_log_of(self._path))
            if self._identity != _identity(self._path):
                _write(self._opened(), traces, spans)  # replaced in the midst of it
        except Exception as error:
            if (is_new and not _lacks_tables(error)) or is_locked(error) or not is_the_files_fault(error):
                raise
            # Tables dropped or the file exchanged beneath it: what is there now may well be written to.
            self.close()
            _write(self._opened(), traces, spans)

    def close(self) -> None:
        """Close the connection; the next ``write`` opens it again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def abandon(self) -> sqlite3.Connection | None:
        """Give up the connection without closing it, in a forked child that must not touch it."""
        connection, self._connection = self._connection, None
        return connection

    def _opened(self) -> sqlite3.Connection:
        if self._connection is not None and self._identity != _identity(self._path):
            # Deleted or replaced: what is written to the old file, nobody will ever read.
            self._leave_old_file(self._connection)
        if self._connection is None:
            _check_permission(self._path)
            self._connection, self._identity = _connect_surely(self._path)
            self._log_identity = None
        return self._connection

    def _leave_old_file(self, connection: sqlite3.Connection) -> None:
        """Write to the old file what is its own, and take away its log: the new file would get it."""
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.close()
        log = _log_of(self._path)
        if self._log_identity is not None and _identity(log) == self._log_identity:
            log.unlink(missing_ok=True)


def is_locked(error: Exception) -> bool:
    """Tell whether another process holds the database now."""
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def _lacks_tables(error: Exception) -> bool:
    # Opening makes them: somebody has dropped them since, be it a moment ago.
    return isinstance(error, sqlite3.OperationalError) and "no such table" in str(error)


def is_the_files_fault(error: Exception) -> bool:
    """Tell whether the same rows may well be written later, or to another file."""
    if isinstance(error, sqlite3.OperationalError):
        message = str(error)
        return any(words in message for words in _FILE_TROUBLE)
    # Of a file that is no database, or damaged, sqlite3 raises the base class itself.
    return isinstance(error, OSError) or type(error) is sqlite3.DatabaseError


def may_be_the_files_fault(error: Exception) -> bool:
    """Tell whether it may be: if other rows can be written, it is not."""
    return isinstance(error, sqlite3.OperationalError)


def _write(
    connection: sqlite3.Connection, traces: Sequence[tuple[Any, ...]], spans: Sequence[SpanRow]
) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        of_spans = {span.values[1]: None for span in spans}
        found = _found(connection, list({**{row[0]: None for row in traces}, **of_spans}))
        _insert(connection, "INSERT", "traces", merged(found, traces, spans), _UPDATE)
        _insert(connection, "INSERT OR REPLACE", "spans", _numbered(connection, spans, list(of_spans)))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _check_permission(path: Path) -> None:
    """Make sure that file and directory may be written.

    Asked before SQLite is: of a file that may only be read it would make a log and an index of the same kind,
    and those would still be in the way when the file may be written again.

    Raises:
        PermissionError: They may not.
    """
    if path.exists() and not may_write(path):
        raise PermissionError(errno.EACCES, "it is read-only")
    if not may_write(path.parent):
        raise PermissionError(errno.EACCES, "its directory is read-only")


def _connect_surely(path: Path) -> tuple[sqlite3.Connection, tuple[int, int]]:
    """Return a connection and which file it is to, which SQLite does not tell.

    Raises:
        OSError: It cannot be told, as files come and go at this path.
        sqlite3.Error: The database cannot be used.
    """
    for _ in range(_OPENINGS):
        if not path.exists():
            path.touch(_NEW_FILE_MODE)
        identity = _identity(path)
        connection = _connect(path)
        if identity is not None and identity == _identity(path):
            return connection, identity
        connection.close()
    raise FileNotFoundError(errno.ENOENT, "it was replaced while it was opened")


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        str(path),
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,  # a fork closes it from whichever thread forks
        cached_statements=8 * _ROWS_AT_ONCE,  # the last chunk of a batch has any length
    )
    try:
        check_owner(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        if not has_tables(connection):
            make_tables(path)
        make_indexes(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return (found.st_dev, found.st_ino)


def _found(connection: sqlite3.Connection, trace_ids: Sequence[str]) -> dict[str, TraceRow]:
    """Return the rows of those traces that are in the file already."""
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
    otherwise: str = "",
) -> None:
    columns = COLUMNS[table]
    for chunk in _chunks(rows):
        values = ",".join([f"({','.join('?' * len(columns))})"] * len(chunk))
        statement = f"{verb} INTO {table}({','.join(columns)}) VALUES {values} {otherwise}"
        connection.execute(statement, list(chain.from_iterable(chunk)))


def _numbered(
    connection: sqlite3.Connection, spans: Sequence[SpanRow], trace_ids: Sequence[str]
) -> list[tuple[Any, ...]]:
    """Return the rows, each with the next number of its trace."""
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
    return (rows[start : start + _ROWS_AT_ONCE] for start in range(0, len(rows), _ROWS_AT_ONCE))
