"""What a recorder is given, checked before anything is made of it."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from kantan_agents.errors import InvalidOptionError, TraceDatabaseError


def checked_path(path: str | os.PathLike[str]) -> Path:
    """Return ``path`` as an absolute path that a database can be made at.

    Raises:
        TraceDatabaseError: E60, it is a directory or its directory does not exist.
        InvalidOptionError: E75, it is no path, or one that stands for no file.
    """
    if not isinstance(path, (str, os.PathLike)) or not str(path):
        raise InvalidOptionError(option="path", reason="must be the path of a file")
    if str(path) == ":memory:":
        reason = "must be the path of a file; what is in memory, nobody else could read"
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


def checked_number(option: str, value: Any, kind: Any, least: float) -> Any:
    """Return ``value``, a number.

    Raises:
        InvalidOptionError: E75, it is none, or less than ``least``, or infinite.
    """
    if isinstance(value, bool) or not isinstance(value, kind) or not value >= least or value == math.inf:
        raise InvalidOptionError(option=option, reason=f"must be a number, at least {least}")
    return value
