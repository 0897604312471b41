"""Copies and compares JSON data."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final, NoReturn

DEEPEST: Final = 200
"""SQLite, git and other readers of a dataset have limits too."""


class NotJSONDataError(ValueError):
    """A value is not JSON data; the message states where and why."""


def json_copy(value: Any, place: str) -> Any:
    """Return a copy, with tuples as lists; ``place`` names the data in an error."""
    return _copy(value, place, DEEPEST)


def _copy(value: Any, place: str, deeper: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, (int, float)):
        return _number(value, place)
    if deeper == 0:
        raise NotJSONDataError(f"{place.partition('.')[0]} is nested more than {DEEPEST} levels deep")
    if isinstance(value, Mapping):
        return {_key(key, place): _copy(one, f"{place}.{key}", deeper - 1) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copy(one, f"{place}.{index}", deeper - 1) for index, one in enumerate(value)]
    raise NotJSONDataError(f"{place} is a {type(value).__name__}, which JSON does not have")


def whole_text(text: str) -> str:
    """Join two halves of a surrogate pair, as JSON does."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return str(text)


def _number(value: float, place: str) -> int | float:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotJSONDataError(f"{place} is {value}, which JSON does not have")
        return float(value)
    try:
        str(value)
    except ValueError as error:  # Python does not convert integers of thousands of digits
        raise NotJSONDataError(f"{place} is an integer with too many digits") from error
    return int(value)


def _key(key: Any, place: str) -> str:
    if not isinstance(key, str):
        raise NotJSONDataError(f"{place} has the key {key!r}, which is not a str")
    return whole_text(key)


def read_json(text: str) -> Any:
    """Return the JSON data in a string."""
    try:
        return _decoder.decode(text)
    except NotJSONDataError:
        raise
    except json.JSONDecodeError as error:
        raise NotJSONDataError(f"it is not JSON: {error.msg} at character {error.pos + 1}") from error
    except RecursionError as error:
        raise NotJSONDataError("it is nested too deeply") from error
    except ValueError as error:  # an integer of thousands of digits
        raise NotJSONDataError(f"it is not JSON that can be read: {error}") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        twice = next(key for index, (key, _) in enumerate(pairs) if key in dict(pairs[:index]))
        raise NotJSONDataError(f"the key {twice!r} occurs twice in one object")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise NotJSONDataError(f"{name} is not a JSON number; write null, or leave the key out")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise NotJSONDataError(f"the number {text} is too large")
    return number


_decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite)


def same_data(one: Any, other: Any) -> bool:
    """Compare JSON data: ``1`` equals ``1.0``, and ``true`` does not equal ``1``."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_data(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same_data, one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def data_in(value: Any) -> Any:
    """Return the JSON data in a string; other strings and values unchanged."""
    if not isinstance(value, str):
        return value
    try:
        return read_json(value)
    except NotJSONDataError:
        return value
