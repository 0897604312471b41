"""Recognizes data made only of built-in types, and packs it to bytes for comparing and copying.

Such data can be inspected and copied without calling any code of its own.
"""

from __future__ import annotations

import marshal
from typing import Any

_SCALARS = (str, int, float, bool, type(None))


def is_plain(value: Any, sequences: tuple[type, ...] = (list,)) -> bool:
    """Return whether a value is JSON in exact built-in types; subclasses may mean something else.

    Args:
        value: Any value.
        sequences: The types accepted as lists.

    Raises:
        RecursionError: The value is nested very deeply, or contains itself.
    """
    kind = type(value)
    if kind in _SCALARS:
        return True
    if kind is dict:
        return all(type(key) is str and is_plain(item, sequences) for key, item in value.items())
    return kind in sequences and all(is_plain(item, sequences) for item in value)


def packed(value: Any, sequences: tuple[type, ...] = (list,)) -> bytes | None:
    """Return plain data as bytes. Equal data in equal order gives equal bytes; 1, 1.0 and True differ.

    Returns:
        The bytes, for ``unpacked``; None if the value is not plain. ``marshal`` alone accepts much more,
        and turns a numpy scalar, for example, into bytes.
    """
    try:
        # Version 2: later versions record shared references, so equal data could give different bytes.
        return marshal.dumps(value, 2) if is_plain(value, sequences) else None
    except (ValueError, RecursionError):
        return None


def unpacked(data: bytes) -> Any:
    """Return a new copy of the data that ``packed`` was given."""
    return marshal.loads(data)  # noqa: S302 - written by this process
