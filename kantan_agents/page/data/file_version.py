"""Whether a database has changed, without opening it if it is a file."""

from __future__ import annotations

from pathlib import Path

from kantan_agents.traces.database_url import url_of
from kantan_agents.traces.store.connection import check_file, reading


def file_version(path: Path) -> str:
    """Return a text that changes whenever somebody writes to the database, or replaces it.

    Raises:
        TraceDatabaseError: E60, there is no regular file at the path, or the server cannot be asked.
    """
    if url_of(path) is not None:
        return _server_version(path)
    check_file(path)
    return " ".join(_state(one) for one in (path, path.with_name(f"{path.name}-wal")))


def _server_version(path: Path) -> str:
    """Return the numbers of the newest rows, and how many were changed; the server counts with some delay."""
    with reading(path, by_trace=False) as connection:
        newest = connection.execute("SELECT (SELECT MAX(rowid) FROM traces), (SELECT MAX(rowid) FROM spans)")
        changed = connection.execute(
            "SELECT SUM(n_tup_ins + n_tup_upd + n_tup_del) FROM pg_catalog.pg_stat_user_tables "
            "WHERE schemaname = current_schema()"
        )
        return " ".join(map(str, (*newest.fetchone(), *changed.fetchone())))


def _state(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return "-"
    return f"{found.st_ino} {found.st_size} {found.st_mtime_ns}"
