"""JSON as the standard decoder reads it, from any place of a text, with failure as a value."""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn


class _Nothing:
    """What there is where no value could be read; None is a value of JSON."""

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Final = _Nothing()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


_STRICT = json.JSONDecoder(parse_constant=_refuse)
_WITH_CONSTANTS = json.JSONDecoder()
_LENIENT = json.JSONDecoder(strict=False)  # control characters in strings are let through


def decode_at(text: str, start: int, *, constants: bool = False) -> tuple[Any, int]:
    """Return the JSON value that begins at a place, and where it ends.

    Args:
        text: Any text.
        start: Where the value begins, without white space before it.
        constants: Whether NaN, Infinity and -Infinity are values.

    Returns:
        The value and its end. ``NOTHING`` and how far was read if there is no JSON; ``NOTHING`` and -1 if it
        has a constant, more levels of nesting or more digits than the decoder takes.
    """
    decoder = _WITH_CONSTANTS if constants else _STRICT
    try:
        return decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        # An unterminated string is reported where it begins, after it has been read to the end.
        return NOTHING, len(text) if error.msg.startswith("Unterminated") else error.pos
    except (ValueError, RecursionError):
        return NOTHING, -1


def unescape(body: str) -> str | None:
    """Return the string of JSON between two quotes, or None if it is not one as a whole."""
    try:
        value, end = _LENIENT.raw_decode(f'"{body}"')
    except json.JSONDecodeError:
        return None
    return value if end == len(body) + 2 else None


def depth_of(value: Any, most: int) -> int:
    """Return how many objects and arrays stand one in another, counted no further than ``most`` + 1."""
    depth, level = 0, [value] if isinstance(value, (dict, list)) else []
    while level and depth <= most:
        depth += 1
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
    return depth
