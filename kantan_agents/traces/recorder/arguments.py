"""Checks the path that a recorder is given."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from kantan_agents.errors import InvalidOptionError, TraceDatabaseError
from kantan_agents.traces.schema import ForeignDatabaseError, check_owner


def checked_path(path: str | os.PathLike[str]) -> Path:
    """Return ``path`` as an absolute path at which a database file can be created.

    Raises:
        TraceDatabaseError: E60, it is a directory or its directory does not exist.
        InvalidOptionError: E75, it is not a path, or it is empty or ``:memory:``.
    """
    if not isinstance(path, (str, os.PathLike)) or not str(path):
        raise InvalidOptionError(option="path", reason="must be the path of a file")
    if str(path) == ":memory:":
        reason = "must be the path of a file; other connections cannot read a database in memory"
        raise InvalidOptionError(option="path", reason=reason)
    try:
        absolute = Path(path).resolve()
        is_directory, has_directory = absolute.is_dir(), absolute.parent.is_dir()
    except (OSError, ValueError) as error:
        raise TraceDatabaseError(path=str(path), reason=str(error)) from error
    if is_directory:
        raise TraceDatabaseError(path=str(path), reason="it is a directory")
    if not has_directory:
        raise TraceDatabaseError(path=str(path), reason="its directory does not exist")
    return absolute


def check_file_owner(path: Path) -> None:
    """Check that an existing file at ``path`` is not the database of another program; change nothing.

    A file that cannot be read now is not an error: the writer checks each file again before it writes.

    Raises:
        TraceDatabaseError: E60, it is the database of another program.
    """
    with suppress(sqlite3.Error, OSError):
        if not path.is_file() or not path.stat().st_size:
            return
        log = Path(f"{path}-wal")
        # Immutable: SQLite creates no files beside it. In mode "ro", it leaves the log where it is.
        mode = "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"
        with closing(sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True)) as connection:
            try:
                check_owner(connection)
            except ForeignDatabaseError as error:
                hint = "; adopt=True adds the tables for traces to it" if error.can_adopt else ""
                raise TraceDatabaseError(path=str(path), reason=f"{error}{hint}") from error
