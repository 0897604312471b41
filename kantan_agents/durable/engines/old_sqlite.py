"""Gives SQLite before 3.42 the clock function that DBOS uses."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from threading import Lock
from typing import Any, Final

_FIRST_WITH_SUBSEC: Final = (3, 42)
_lock = Lock()


def give_clock() -> None:
    """Let ``unixepoch('subsec')`` work in all later SQLite connections of SQLAlchemy.

    DBOS uses it on Python 3.12 and later. With an older SQLite, as in Debian 12, it would be NULL, and no run
    could be stored. A database created so needs it on every Python.
    """
    if sqlite3.sqlite_version_info >= _FIRST_WITH_SUBSEC:
        return
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    with _lock:
        if not event.contains(Engine, "connect", _add_clock):
            event.listen(Engine, "connect", _add_clock)


def _add_clock(connection: Any, _record: Any) -> None:
    if isinstance(connection, sqlite3.Connection):
        connection.create_function("unixepoch", 1, _unixepoch)


def _unixepoch(moment: Any) -> float | int | None:
    """Return SQLite 3.42's result, as the application may share the connection."""
    if moment in ("subsec", "subsecond"):
        return round(time.time(), 3)
    with closing(sqlite3.connect(":memory:")) as connection:
        query = "SELECT CAST(strftime('%s', ?) AS INTEGER)"
        row: tuple[int | None] = connection.execute(query, (moment,)).fetchone()
    return row[0]
