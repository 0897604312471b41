"""Gives SQLite before 3.42 the clock that DBOS asks it for."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from threading import Lock
from typing import Any, Final

_FIRST_WITH_SUBSEC: Final = (3, 42)
_lock = Lock()


def give_clock() -> None:
    """Let ``unixepoch('subsec')`` work in the SQLite connections that SQLAlchemy opens from now on.

    DBOS chooses it by the version of Python, not of SQLite: on Python 3.12 and later with a SQLite before
    3.42, as in Debian 12, it would be NULL, and no run could be stored. A database that such a process has
    created needs it in all others too, so this does not look at the version of Python.
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
    """Return what SQLite 3.42 returns: the application may have SQL of its own in the same connections."""
    if moment in ("subsec", "subsecond"):
        return round(time.time(), 3)
    with closing(sqlite3.connect(":memory:")) as connection:
        query = "SELECT CAST(strftime('%s', ?) AS INTEGER)"
        row: tuple[int | None] = connection.execute(query, (moment,)).fetchone()
    return row[0]
