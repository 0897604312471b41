"""JSON-like data: what may stand in a definition besides texts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

DEPTH: Final = 40
"""How deep it may be nested."""

LARGEST: Final = 10_000
"""How many values it may be made of."""

_TOO_LARGE: Final = 10**300
_SHOWN: Final = 60


def is_text(value: Any) -> bool:
    """Return whether ``value`` is a text that can be written to a file (no lone surrogates)."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def copied(value: Any) -> Any:
    """Return a copy of JSON-like data, tuples made lists; what is none stays, for `flaw` to find."""
    return _copied(value, DEPTH, itertools.count(1))


def _copied(value: Any, depth: int, counter: Iterator[int]) -> Any:
    # What holds itself, or one part twice on each of forty levels, would be copied for ever.
    if not isinstance(value, Mapping | list | tuple) or depth < 0 or next(counter) > LARGEST:
        return value
    if isinstance(value, Mapping):
        return {key: _copied(inner, depth - 1, counter) for key, inner in value.items()}
    return [_copied(inner, depth - 1, counter) for inner in value]


def flaw(value: Any) -> str | None:
    """Return what in ``value`` is not JSON-like data that YAML can carry, None where all is."""
    return _flaw(value, DEPTH, itertools.count(1))


def _flaw(value: Any, depth: int, counter: Iterator[int]) -> str | None:
    if next(counter) > LARGEST:
        return f"holds more than {LARGEST} values"
    if not isinstance(value, dict | list):
        return _flaw_of_scalar(value)
    if depth <= 0:
        return f"is nested deeper than {DEPTH} levels"
    wrong = next((key for key in value if not is_text(key)), None) if isinstance(value, dict) else None
    if wrong is not None:
        return f"holds the key {repr(wrong)[:_SHOWN]}, which is no text"
    inner = value.values() if isinstance(value, dict) else value
    return next((found for found in (_flaw(part, depth - 1, counter) for part in inner) if found), None)


def _flaw_of_scalar(value: Any) -> str | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        return None if is_text(value) else "holds a text that is no Unicode (a lone surrogate)"
    if isinstance(value, int):
        return None if abs(value) < _TOO_LARGE else "holds a number of more than 300 digits"
    if isinstance(value, float):
        return None if math.isfinite(value) else "holds a number that is not finite"
    return f"holds a value of the type {type(value).__name__}"
