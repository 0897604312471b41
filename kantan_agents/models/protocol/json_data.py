"""Checks and copies JSON data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

DEPTH: Final = 200
"""Maximum nesting, far below any JSON parser's limit."""

_MAX_BITS: Final = 14_000
"""Python converts no larger integers to strings (4,300 digits)."""

_SMALL: Final = 10**18
_MAX_SHOWN: Final = 60
_NESTED = (Mapping, list, tuple)
_SCALAR = (str, int, float)
_EXACT_TYPES = (dict, list)  # isinstance with an abstract class is 20 times as slow

# Container, key and depth. A path for each value would cost more than the data.
_Location = tuple[Any, Any, int]


def find_problem(value: Any) -> str | None:
    """Return the problem of JSON data, with its path."""
    if _is_valid(value, 0):
        return None
    pending: list[tuple[Any, _Location | None]] = [(value, None)]
    while pending:
        inner, location = pending.pop()
        problem = None
        kind = type(inner)
        if kind not in _EXACT_TYPES and not isinstance(inner, _NESTED):
            problem = _scalar_problem(inner)
        elif location is not None and location[2] == DEPTH:
            problem = f"is nested deeper than {DEPTH} levels"
        elif (kind is dict or isinstance(inner, Mapping)) and not all(map(is_text, inner)):
            problem = "holds a key that is not a text"
        else:
            depth = 1 if location is None else location[2] + 1
            pending += [(part, (location, key, depth)) for key, part in _parts(inner)]
        if problem is not None:
            return f"{_path(location)}: {problem}"
    return None


def _is_valid(value: Any, depth: int) -> bool:
    """Like ``find_problem``, but faster and without the reason."""
    if type(value) not in _EXACT_TYPES:
        return _scalar_problem(value) is None if isinstance(value, _SCALAR) else value is None
    if depth == DEPTH:
        return False
    parts = value
    if type(value) is dict:
        for key in value:
            if type(key) is not str or not (key.isascii() or is_text(key)):
                return False
        parts = value.values()
    for part in parts:
        # Inlined: a call per part would dominate.
        is_plain = part.isascii() if type(part) is str else type(part) is int and -_SMALL < part < _SMALL
        if not is_plain and not _is_valid(part, depth + 1):
            return False
    return True


def _parts(value: Any) -> Iterable[tuple[Any, Any]]:
    return enumerate(value) if isinstance(value, (list, tuple)) else value.items()


def _path(location: _Location | None) -> str:
    steps: list[str] = []
    while location is not None:
        location, key, _ = location
        steps.append(f"[{key}]" if isinstance(key, int) else f".{key[:_MAX_SHOWN]}")
    path = "".join(reversed(steps))
    return path if len(path) <= _MAX_SHOWN else f"{path[:_MAX_SHOWN]}..."


def _scalar_problem(value: Any) -> str | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        return None if is_text(value) else "is a text with a lone surrogate, which is not valid Unicode"
    if isinstance(value, int):
        return None if value.bit_length() < _MAX_BITS else "is a number with too many digits"
    if isinstance(value, float):
        return None if math.isfinite(value) else f"is {value}, which JSON does not have"
    return f"is of the type {type(value).__name__}, which JSON does not have"


def is_text(value: Any) -> bool:
    """Return whether UTF-8 can encode ``value``."""
    if not isinstance(value, str):
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def copied(value: Any) -> Any:
    """Return a deep copy of JSON data."""
    return plain(value) if find_problem(value) is None else value


def plain(value: Any) -> Any:
    """Return JSON data as new dicts and lists."""
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value
