"""Checks that values have the types that their classes declare: the data may come from a damaged file."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs


def check_types(value: Any, expected: Any, place: str) -> None:
    """Check a value and all that is in it.

    Args:
        value: The value.
        expected: Its type: an attrs class, a union, a sequence, a mapping or a plain class. JSON data is not
            looked into.
        place: What to call it in an error.

    Raises:
        TypeError: It has another type.
    """
    if not _is_of(value, expected):
        raise TypeError(f"{place} is a {type(value).__name__}")
    for part, hint, inner in _parts(value, expected):
        check_types(part, hint, f"{place}{inner}")


def _is_of(value: Any, expected: Any) -> bool:
    if expected is Any:
        return True
    origin = get_origin(expected)
    if origin in (Union, types.UnionType):
        return any(_is_of(value, one) for one in get_args(expected))
    if origin is Literal:
        return value in get_args(expected)
    if origin is not None:
        return isinstance(value, origin) and not isinstance(value, str)
    if expected is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if expected is int and isinstance(value, bool):
        return False
    return isinstance(value, expected)


def _parts(value: Any, expected: Any) -> Iterator[tuple[Any, Any, str]]:
    """Yield each part of a value, with its type and its place."""
    if get_origin(expected) in (Union, types.UnionType):
        expected = next(one for one in get_args(expected) if _is_of(value, one))
    origin, inner = get_origin(expected), get_args(expected)
    if attrs.has(expected):
        for name, hint in _hints(expected).items():
            yield getattr(value, name), hint, f".{name}"
    elif origin is Mapping:
        for key, one in value.items():
            yield one, inner[1], f".{key}"
    elif origin in (Sequence, tuple):
        hints = inner if origin is tuple else inner * len(value)
        if len(hints) != len(value):
            raise TypeError(f"it has {len(value)} parts instead of {len(hints)}")
        for at, (one, hint) in enumerate(zip(value, hints, strict=True)):
            yield one, hint, f"[{at}]"


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    names = {field.name for field in attrs.fields(kind)}
    json_data = {"JSONValue": Any, "Items": str | Sequence[Mapping[str, Any]]}
    found = get_type_hints(kind, localns=json_data)
    return {name: hint for name, hint in found.items() if name in names}
