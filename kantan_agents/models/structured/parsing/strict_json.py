"""Decodes strictly valid JSON at any index, without exceptions."""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn


class _Nothing:
    """The result without a value; None is a JSON value."""

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Final = _Nothing()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


_STRICT = json.JSONDecoder(parse_constant=_refuse)
_WITH_CONSTANTS = json.JSONDecoder()
_LENIENT = json.JSONDecoder(strict=False)  # accepts control characters in strings


def decode_at(text: str, start: int, *, constants: bool = False) -> tuple[Any, int]:
    """Return the JSON value at an index (not white space), and its end.

    ``constants`` allows NaN, Infinity and -Infinity. Else ``NOTHING`` and the index of the error; -1 for a
    constant, or more levels or digits than the decoder supports.
    """
    decoder = _WITH_CONSTANTS if constants else _STRICT
    try:
        return decoder.raw_decode(text, start)
    except json.JSONDecodeError as error:
        # The decoder reports an unterminated string at its start.
        return NOTHING, len(text) if error.msg.startswith("Unterminated") else error.pos
    except (ValueError, RecursionError):
        return NOTHING, -1


def unescape(body: str) -> str | None:
    """Return a JSON string's decoded body."""
    try:
        value, end = _LENIENT.raw_decode(f'"{body}"')
    except json.JSONDecodeError:
        return None
    return value if end == len(body) + 2 else None


def depth_of(value: Any, most: int) -> int:
    """Return the nesting depth, up to ``most`` + 1."""
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
