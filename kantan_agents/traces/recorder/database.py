"""The writing connection."""

from __future__ import annotations

import errno
import os
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from kantan_agents.support.private_files import create_private
from kantan_agents.traces.figure_tables import count_changed, keep_figures
from kantan_agents.traces.record_tables import keep_records
from kantan_agents.traces.recorder.file_errors import is_file_error, is_locked, lacks_tables
from kantan_agents.traces.recorder.guarded_connection import GuardedConnection, begin_log, directory_locked
from kantan_agents.traces.recorder.rows import SpanRow
from kantan_agents.traces.recorder.run_rows import RunRow
from kantan_agents.traces.recorder.transaction import ROWS_PER_STATEMENT, has_rows, write_rows
from kantan_agents.traces.schema import (
    check_owner,
    has_tables,
    make_indexes,
    make_tables,
    may_write,
    shrink_in_steps,
)
from kantan_agents.traces.search_index import count_unindexed, keep_index

_Identity = tuple[int, int]

# While another process holds the lock, the writer retries in steps, so that it can be stopped.
_BUSY_SECONDS = 0.25

_CACHE_KIB = 16_384

# Pages of the log before a checkpoint, 16 MiB. Span ids are random, so most batches change the same index
# pages, which one checkpoint then writes once.
_WAL_PAGES = 4_000

# For a file that is replaced meanwhile.
_OPEN_ATTEMPTS = 3

# A program that overwrites the file truncates it first.
_CONTENT_SECONDS = 0.2
_CONTENT_PAUSE = 0.02


class Database:
    """The database file for the writing thread; not thread-safe.

    ``replaced`` also counts moved, truncated and deleted files.
    """

    def __init__(self, path: Path, *, adopt: bool = False, search_index: bool = True) -> None:
        self.replaced = 0
        self._path = path
        self._adopt = adopt
        self._search_index = search_index
        self._connection: GuardedConnection | None = None
        self._files: _Files | None = None
        self.changed_traces = 0
        """A lower bound."""
        self.unindexed_traces = 0
        """A lower bound."""

    def open(self) -> None:
        """Open the file, unless it is open and still at the path."""
        try:
            self._open()
        except sqlite3.OperationalError as error:
            if not lacks_tables(error):
                raise
            self._open()  # another process has dropped tables

    def write(
        self, traces: Sequence[tuple[Any, ...]], spans: Sequence[SpanRow], runs: Sequence[RunRow] = ()
    ) -> None:
        """Write all rows or none; raise as ``open``, or for an unstorable value."""
        is_new = self._connection is None
        try:
            write_rows(self._open(), traces, spans, runs)
            if self.is_replaced() and not has_rows(self._open(), traces, spans, runs):
                write_rows(self._open(), traces, spans, runs)  # the files were replaced during the write
        except Exception as error:
            if (is_new and not lacks_tables(error)) or is_locked(error) or not is_file_error(error):
                raise
            # Tables were dropped or the file was replaced: the present file may be usable.
            self.close()
            write_rows(self._open(), traces, spans, runs)
        changed = len({span.values[1] for span in spans}.union(row[0] for row in traces))
        self.changed_traces += changed
        self.unindexed_traces += changed

    def close(self) -> None:
        """Close the connection until the next ``write``."""
        # SQLite would write the log of replaced files to the new file.
        try:
            self.close_replaced()
        except (sqlite3.Error, OSError) as error:
            if is_locked(error):
                return  # the removed log has the only copy of its rows; the next call retries
        self._close()

    def _close(self, *, with_log: bool = True) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close_both(with_log=with_log)

    def abandon(self) -> sqlite3.Connection | None:
        """Return the connection unclosed: a forked child must not use it."""
        connection, self._connection = self._connection, None
        return connection

    def is_replaced(self) -> bool:
        """Whether the open files were replaced or truncated."""
        return self._connection is not None and _found_files(self._path) != self._files

    def close_replaced(self) -> bool:
        """Close the connection if its files were replaced; return whether."""
        if not self.is_replaced():
            return False
        self._leave_replaced_files()
        return True

    def _open(self) -> sqlite3.Connection:
        # No one would read a replaced file.
        self.close_replaced()
        if self._connection is None:
            _check_permission(self._path)
            with directory_locked(self._path.parent):
                connection, self._files = _connect_verified(self._path, self._adopt)
                self._connection = connection
                keep_index(connection, create=self._search_index)
                if self.replaced:
                    begin_log(connection)
            self.changed_traces = count_changed(self._connection)
            self.unindexed_traces = count_unindexed(self._connection)
        return self._connection

    def _leave_replaced_files(self) -> None:
        """Close the connection; remove its log if SQLite would apply it to the new file.

        ``sqlite3.OperationalError``: another process uses the removed log. The connection stays open.
        """
        connection, before = self._connection, self._files
        if connection is None or before is None:
            return
        with directory_locked(self._path.parent):
            now = _files_at(self._path)
            is_moved = now.database != before.database
            with_log = is_moved or not (now.is_empty or self._has_new_log(before, now))
            # The file may only have moved, or this connection holds the removed log.
            if with_log and not _is_checkpointed(connection) and not is_moved:
                raise sqlite3.OperationalError("database is locked: its log was removed and is still in use")
            # Before closing: other files may reuse the identities.
            _remove_if(_log_of(self._path), before.log)
            _remove_if(_index_of(self._path), before.index)
            self._close(with_log=with_log)
            self.replaced += 1
        if now.is_empty:
            self._wait_for_content()

    def _has_new_log(self, before: _Files, now: _Files) -> bool:
        """Return whether another connection started a log that this one cannot join."""
        is_same = now.log == before.log and now.index in (None, before.index)
        is_gone = now.log is None and now.index in (None, before.index)
        return not (is_same or is_gone) and not (now.log != before.log and _is_empty(_log_of(self._path)))

    def _wait_for_content(self) -> None:
        """A program that overwrites the file truncates it first."""
        deadline = time.monotonic() + _CONTENT_SECONDS
        while _is_empty(self._path) and time.monotonic() < deadline:
            time.sleep(_CONTENT_PAUSE)


def _check_permission(path: Path) -> None:
    """Raise PermissionError for a read-only file or directory.

    SQLite would create a read-only log and index, which would still block writing once the file becomes
    writable.
    """
    if path.exists() and not may_write(path):
        raise PermissionError(errno.EACCES, "it is read-only")
    if not may_write(path.parent):
        raise PermissionError(errno.EACCES, "its directory is read-only")


def _connect_verified(path: Path, adopt: bool) -> tuple[GuardedConnection, _Files]:
    """Return a connection and its files, which SQLite does not expose.

    ``OSError``: the files were replaced during each attempt.
    """
    for _ in range(_OPEN_ATTEMPTS):
        create_private(path)
        before = _files_at(path)
        connection = _connect(path, adopt)
        files = _files_at(path)
        if before.database is not None and _are_opened(connection, before, files):
            # Within a process, SQLite shares the index among connections even after its removal. It would not
            # match the current log.
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


def _are_opened(connection: sqlite3.Connection, before: _Files, after: _Files) -> bool:
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    is_removed = mode == "wal" and after.log is None  # a connection in this mode has created it
    is_same = before.log in (None, after.log) and before.index in (None, after.index)
    return not is_removed and before.database == after.database and is_same


def _connect(path: Path, adopt: bool) -> GuardedConnection:
    connection = sqlite3.connect(
        str(path),
        factory=GuardedConnection,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,  # before a fork, the forking thread closes it
        cached_statements=8 * ROWS_PER_STATEMENT,  # the last chunk may have any length
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
        keep_records(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _is_checkpointed(connection: sqlite3.Connection) -> bool:
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


def _found_files(path: Path) -> _Files | None:
    try:
        return _files_at(path)
    except OSError:
        return None  # opening reports the reason


@attrs.frozen
class _Files:
    """The identities of the files; None for a missing file.

    While the database is open, only truncation makes it empty.
    """

    database: _Identity | None
    log: _Identity | None
    index: _Identity | None
    is_empty: bool


def _files_at(path: Path) -> _Files:
    database = _stat(path)
    return _Files(
        database=_identity(database),
        log=_identity(_stat(_log_of(path))),
        index=_identity(_stat(_index_of(path))),
        is_empty=database is not None and database.st_size == 0,
    )


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _index_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-shm")


def _remove_if(path: Path, identity: _Identity | None) -> None:
    if identity is not None and _identity(_stat(path)) == identity:
        path.unlink(missing_ok=True)


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _identity(found: os.stat_result | None) -> _Identity | None:
    return None if found is None else (found.st_dev, found.st_ino)
