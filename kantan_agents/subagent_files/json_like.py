"""Copies and checks JSON-like data."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

DEPTH: Final = 40

MAX_VALUES: Final = 10_000

_TOO_LARGE: Final = 10**300
_MAX_SHOWN: Final = 60


def is_text(value: Any) -> bool:
    """Return whether ``value`` is a str that a file can contain."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def copy_data(value: Any, *, as_dict: Callable[..., Any] = dict, as_list: Callable[..., Any] = list) -> Any:
    """Return a copy of JSON-like data with tuples as lists."""
    counter = itertools.count(1)

    def copied(value: Any, depth: int) -> Any:
        # The limits stop data that contains itself, or that repeats one part twice on each of forty levels.
        if not isinstance(value, Mapping | list | tuple) or depth < 0 or next(counter) > MAX_VALUES:
            return value
        if isinstance(value, Mapping):
            return as_dict((key, copied(inner, depth - 1)) for key, inner in value.items())
        return as_list(copied(inner, depth - 1) for inner in value)

    return copied(value, DEPTH)


def find_invalid_value(value: Any) -> str | None:
    """Return the first problem that YAML cannot represent, or None."""
    return _find_invalid(value, DEPTH, itertools.count(1))


def _find_invalid(value: Any, depth: int, counter: Iterator[int]) -> str | None:
    if next(counter) > MAX_VALUES:
        return f"contains more than {MAX_VALUES} values"
    if not isinstance(value, dict | list):
        return _find_invalid_scalar(value)
    if depth <= 0:
        return f"is nested deeper than {DEPTH} levels"
    wrong = next((key for key in value if not is_text(key)), None) if isinstance(value, dict) else None
    if wrong is not None:
        return f"contains the key {repr(wrong)[:_MAX_SHOWN]}, which is not text"
    inner = value.values() if isinstance(value, dict) else value
    errors = (_find_invalid(part, depth - 1, counter) for part in inner)
    return next((error for error in errors if error), None)


def _find_invalid_scalar(value: Any) -> str | None:
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        return None if is_text(value) else "contains text that is not valid Unicode (a lone surrogate)"
    if isinstance(value, int):
        return None if abs(value) < _TOO_LARGE else "contains a number of more than 300 digits"
    if isinstance(value, float):
        return None if math.isfinite(value) else "contains a number that is not finite"
    return f"contains a value of the type {type(value).__name__}"
