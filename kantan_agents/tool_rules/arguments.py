"""The arguments of a tool call, read so that nobody can read them differently."""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import Any, NoReturn

from kantan_agents.errors import ToolInputError

NON_OBJECT = "they are no JSON object"

# Half of a pair that stands for one character: on its own it is none, and readers differ about it.
_MAYBE_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def parse_arguments(tool_name: str, text: str) -> dict[str, Any]:
    """Return the JSON object in ``text``; no text at all is an empty object, as it is to the SDK.

    Raises:
        ToolInputError: E10, it is none, a key stands in it twice, or a number is not finite.
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
    """Return the value of a JSON text that everybody reads alike.

    Raises:
        ValueError: It is no JSON, a key stands in it twice, a number is not finite, a text is no Unicode.
        RecursionError: It is nested too deeply.
    """
    value = _decoder.decode(text)
    if not text.isascii():
        _check_unicode(text)
    if "\\u" in text and _MAYBE_SURROGATE.search(text):
        _check_unicode(json.dumps(value, ensure_ascii=False))
    return value


def _check_unicode(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("a text in them is no Unicode") from error


def _reason(error: Exception) -> str:
    return NON_OBJECT if isinstance(error, (json.JSONDecodeError, TypeError)) else str(error)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key stands in them twice")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError("a number in them is too large")
    return number


_decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite)
