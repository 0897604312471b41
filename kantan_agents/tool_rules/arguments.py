"""Parses tool arguments strictly, so that no other parser can read different values."""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import Any, NoReturn

from kantan_agents.errors import ToolInputError

NON_OBJECT = "they are not a JSON object"

# JSON parsers disagree about half a surrogate pair.
_MAYBE_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
MARKED_HALF = "\\u{d"
"""Start of half a surrogate pair; no parser accepts it, see ``models/whole_text.py``."""
_NOT_UNICODE = "a text in them is not valid Unicode"


def parse_arguments(tool_name: str, text: str) -> dict[str, Any]:
    """Return the JSON object in ``text``, or {} for an empty string, like the SDK.

    Raises:
        ToolInputError: E10, ``text`` is not a JSON object, or ambiguous.
    """
    if not text:
        return {}
    try:
        value = read_json(text)
    except (ValueError, RecursionError, TypeError) as error:
        raise ToolInputError(tool_name=tool_name, reason=_reason(error)) from error
    if not isinstance(value, dict):
        raise ToolInputError(tool_name=tool_name, reason=NON_OBJECT)
    return value


def read_json(text: str) -> Any:
    """Return the value of unambiguous JSON.

    Raises:
        ValueError: Not JSON, a duplicate key, an infinite number, or invalid Unicode.
        RecursionError: Nested too deeply.
    """
    try:
        value = _decoder.decode(text)
    except json.JSONDecodeError as error:
        if MARKED_HALF in text:
            raise ValueError(_NOT_UNICODE) from error
        raise
    if not text.isascii():
        _check_unicode(text)
    if "\\u" in text and _MAYBE_SURROGATE.search(text):
        _check_unicode(json.dumps(value, ensure_ascii=False))
    return value


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(_NOT_UNICODE) from error


def _reason(error: Exception) -> str:
    return NON_OBJECT if isinstance(error, (json.JSONDecodeError, TypeError)) else str(error)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key occurs twice in them")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError("a number in them is too large")
    return number


_decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite)
