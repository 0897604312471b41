"""What callers give to the functions of this room, checked at the boundary."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from kantan_agents.errors import InvalidOptionError


def checked_text(option: str, value: Any) -> str:
    """Return ``value``; E75 unless it is a str."""
    if isinstance(value, str):
        return value
    raise InvalidOptionError(option=option, reason=f"must be a str, not {value!r}")


def checked_path(option: str, value: Any) -> str:
    """Return a path as a str; E75 unless it is a str or a Path."""
    path = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if isinstance(path, str):
        return path
    raise InvalidOptionError(option=option, reason=f"must be a str or a Path, not {value!r}")


def checked_list(option: str, values: Any) -> list[Any]:
    """Return a list of ``values``; E75 unless they can be listed."""
    if isinstance(values, Iterable) and not isinstance(values, (str, bytes, os.PathLike)):
        return list(values)
    raise InvalidOptionError(option=option, reason=f"must be a list, not {values!r}")
