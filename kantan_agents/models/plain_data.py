"""Packs built-in data to bytes without running its code."""

from __future__ import annotations

import marshal
from typing import Any

_SCALARS = (str, int, float, bool, type(None))


def is_plain(value: Any, sequences: tuple[type, ...] = (list,)) -> bool:
    """Return whether a value is JSON in exact built-in types; RecursionError if it is too deep."""
    kind = type(value)
    if kind in _SCALARS:
        return True
    if kind is dict:
        return all(type(key) is str and is_plain(item, sequences) for key, item in value.items())
    return kind in sequences and all(is_plain(item, sequences) for item in value)


def packed(value: Any, sequences: tuple[type, ...] = (list,)) -> bytes | None:
    """Return plain data as bytes, or None.

    Equal data in equal order give equal bytes; 1, 1.0 and True differ. ``marshal`` alone accepts, for
    example, a numpy scalar.
    """
    try:
        # Later versions record shared references, so equal data could differ.
        return marshal.dumps(value, 2) if is_plain(value, sequences) else None
    except (ValueError, RecursionError):
        return None


def unpacked(data: bytes) -> Any:
    """Return a new copy of packed data."""
    return marshal.loads(data)  # noqa: S302 - written by this process
