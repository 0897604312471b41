"""Checks the path that a recorder is given."""

from __future__ import annotations

import os
from pathlib import Path

from kantan_agents.errors import InvalidOptionError, TraceDatabaseError


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
