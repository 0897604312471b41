"""Data of Python's own types and nothing else: what it holds can be told, and copied, without asking it."""

from __future__ import annotations

import marshal
from typing import Any

_SCALARS = (str, int, float, bool, type(None))


def is_plain(value: Any, sequences: tuple[type, ...] = (list,)) -> bool:
    """Whether a value is JSON as it is; a subclass of anything may stand for something else.

    Args:
        value: Any value.
        sequences: What may stand for a list in it.

    Raises:
        RecursionError: It is very deep, or within itself.
    """
    kind = type(value)
    if kind in _SCALARS:
        return True
    if kind is dict:
        return all(type(key) is str and is_plain(item, sequences) for key, item in value.items())
    return kind in sequences and all(is_plain(item, sequences) for item in value)


def packed(value: Any, sequences: tuple[type, ...] = (list,)) -> bytes | None:
    """Return plain data as bytes: the same data in the same order as equal bytes; 1, 1.0 and True differ.

    Returns:
        The bytes, for ``unpacked``; None of what is not plain. ``marshal`` alone would take much more, and
        turn a scalar of numpy's, for example, into bytes.
    """
    try:
        return (
            marshal.dumps(value, 2) if is_plain(value, sequences) else None
        )  # later versions tell references
    except (ValueError, RecursionError):
        return None


def unpacked(data: bytes) -> Any:
    """Return a new copy of what ``packed`` has packed."""
    return marshal.loads(data)  # noqa: S302 - written by this process
