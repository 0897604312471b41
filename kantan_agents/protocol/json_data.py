"""What may stand where the protocol says ``any``: JSON data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

DEPTH: Final = 200
"""How deep it may be nested: far below what any JSON parser takes."""

_DIGIT_BITS: Final = 14_000
"""More bits are more digits than Python writes and reads (4,300)."""

_SMALL: Final = 10**18
_SHOWN: Final = 60
_NESTED = (Mapping, list, tuple)
_SCALAR = (str, int, float)
_QUICK = (dict, list)  # asking an abstract class about a type takes twenty times as long

# Where a part stands: the place around it, its name there, how deep that is. A text for each part would
# cost more than the data, where names are long.
_Place = tuple[Any, Any, int]


def flaw(value: Any) -> str | None:
    """Return what keeps ``value`` from being JSON data, with its path; None if nothing does."""
    if _is_sound(value, 0):
        return None
    waiting: list[tuple[Any, _Place | None]] = [(value, None)]
    while waiting:
        inner, place = waiting.pop()
        problem = None
        kind = type(inner)
        if kind not in _QUICK and not isinstance(inner, _NESTED):
            problem = _flaw_of_scalar(inner)
        elif place is not None and place[2] == DEPTH:
            problem = f"is nested deeper than {DEPTH} levels"
        elif (kind is dict or isinstance(inner, Mapping)) and not all(map(is_text, inner)):
            problem = "holds a key that is no text"
        else:
            depth = 1 if place is None else place[2] + 1
            waiting += [(part, (place, key, depth)) for key, part in _parts(inner)]
        if problem is not None:
            return f"{_path(place)}: {problem}"
    return None


def _is_sound(value: Any, depth: int) -> bool:
    """Return whether ``value`` is surely JSON data: quick, and without a word on what is wrong."""
    if type(value) not in _QUICK:
        return _flaw_of_scalar(value) is None if isinstance(value, _SCALAR) else value is None
    if depth == DEPTH:
        return False
    parts = value
    if type(value) is dict:
        for key in value:
            if type(key) is not str or not (key.isascii() or is_text(key)):
                return False
        parts = value.values()
    for part in parts:
        # A call for each of these would take most of the time.
        is_plain = part.isascii() if type(part) is str else type(part) is int and -_SMALL < part < _SMALL
        if not is_plain and not _is_sound(part, depth + 1):
            return False
    return True


def _parts(value: Any) -> Iterable[tuple[Any, Any]]:
    return enumerate(value) if isinstance(value, (list, tuple)) else value.items()


def _path(place: _Place | None) -> str:
    steps: list[str] = []
    while place is not None:
        place, key, _ = place
        steps.append(f"[{key}]" if isinstance(key, int) else f".{key[:_SHOWN]}")
    path = "".join(reversed(steps))
    return path if len(path) <= _SHOWN else f"{path[:_SHOWN]}..."


def _flaw_of_scalar(value: Any) -> str | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        return None if is_text(value) else "is a text with a lone surrogate, which is no Unicode"
    if isinstance(value, int):
        return None if value.bit_length() < _DIGIT_BITS else "is a number of too many digits"
    if isinstance(value, float):
        return None if math.isfinite(value) else f"is {value}, which JSON has not"
    return f"is of the type {type(value).__name__}, which JSON has not"


def is_text(value: Any) -> bool:
    """Return whether ``value`` is a text that can be written as UTF-8."""
    if not isinstance(value, str):
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def plain(value: Any) -> Any:
    """Return JSON data as dicts, lists and scalars of their own."""
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value
