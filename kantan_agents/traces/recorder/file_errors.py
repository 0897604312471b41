"""Determines whether the database file or the rows caused an error."""

from __future__ import annotations

import sqlite3

from kantan_agents.traces.postgres.server_error import ServerError
from kantan_agents.traces.schema import ForeignDatabaseError

# OperationalErrors due to the file. Python 3.10 has no error codes.
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


def is_locked(error: Exception) -> bool:
    """Return whether another process holds the database lock."""
    if isinstance(error, ServerError):
        return error.is_locked
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def lacks_tables(error: Exception) -> bool:
    """Return whether another process has dropped tables."""
    return isinstance(error, sqlite3.OperationalError) and "no such table" in str(error)


def is_file_error(error: Exception) -> bool:
    """Return whether the file is the cause, so that the rows may be written later."""
    if isinstance(error, ServerError):
        return not error.is_of_rows
    if isinstance(error, sqlite3.OperationalError):
        message = str(error)
        return any(words in message for words in _FILE_ERRORS)
    # For a damaged file, sqlite3 raises the base class.
    return isinstance(error, (OSError, ForeignDatabaseError)) or type(error) is sqlite3.DatabaseError


def may_be_file_error(error: Exception) -> bool:
    """Return whether the file may be the cause, unless other rows succeed."""
    if isinstance(error, ServerError):
        return not error.is_of_rows
    return isinstance(error, sqlite3.OperationalError)
