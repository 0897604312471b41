"""``ValueReader``: converts an argument's text to a value of its schema."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from kantan_agents.tool_rules import read_json
from kantan_agents.tools.commands.schemas import choices_of, leaves_of, types_of

_YES = ("true", "yes", "on", "1")
_NO = ("false", "no", "off", "0")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WIDE = {"＋": "+", "－": "-", "−": "-", "．": ".", "ｅ": "e", "Ｅ": "e"}  # noqa: RUF001 - of other scripts
_DIGITS = 4000
_CHOICES = 20
_SHOWN = 60
_ARTICLES = {
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "array": "a JSON array",
    "object": "a JSON object",
    "string": "a text",
}

_NOTHING: Any = object()


class ValueReader:
    """Converts strings to values of one schema; created once per parameter, since lists may be long."""

    def __init__(self, schema: Any, root: Mapping[str, Any]) -> None:
        leaves = leaves_of(schema, root)
        free = [leaf for leaf in leaves if choices_of(leaf) is None]
        self._choices = [choice for leaf in leaves for choice in choices_of(leaf) or ()]
        self._by_spelling: dict[str, Any] = {}
        for choice in self._choices:
            self._by_spelling.setdefault(spelled(choice), choice)
        self._kinds = list(dict.fromkeys(kind for leaf in free for kind in types_of(leaf)))
        self._takes_any = any(not types_of(leaf) for leaf in free)

    def __call__(self, text: str) -> Any:
        """Return the value; ValueError with the reason."""
        choice = self._by_spelling.get(text, _NOTHING)
        if choice is not _NOTHING:
            return choice
        if "string" in self._kinds:
            return text
        for kind in self._kinds:
            value = _READERS[kind](text) if kind in _READERS else _NOTHING
            if value is not _NOTHING:
                return value
        if self._takes_any:
            value = _json(text)
            return text if value is _NOTHING else value
        raise ValueError(f"must be {self._expected()}, not {shown(text)}")

    def _expected(self) -> str:
        listed = [f"one of {', '.join(map(spelled, self._choices[:_CHOICES]))}"] if self._choices else []
        return " or ".join([*listed, *(_ARTICLES.get(kind, kind) for kind in self._kinds)])


def takes_text(schema: Any, root: Mapping[str, Any]) -> bool:
    """Return whether a schema's types allow any string."""
    return any(
        choices_of(leaf) is None and ("string" in types_of(leaf) or not types_of(leaf))
        for leaf in leaves_of(schema, root)
    )


def shown(text: str) -> str:
    """Return ``text``, shortened and quoted for a message."""
    short = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
    return repr(short)


def spelled(value: Any) -> str:
    """Return the text to type for a listed value."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _in_ascii(text: str) -> str:
    """Return "" if the number is too long."""
    if len(text) > _DIGITS:
        return ""
    if text.isascii():
        return text
    # Superscripts and circled digits are not digits: `10²` is not 102.
    return "".join(
        str(unicodedata.decimal(sign)) if sign.isdecimal() else _WIDE.get(sign, sign) for sign in text
    )


def _integer(text: str) -> Any:
    plain = _in_ascii(text)
    return int(plain) if _INTEGER.fullmatch(plain) else _NOTHING


def _number(text: str) -> Any:
    whole = _integer(text)
    if whole is not _NOTHING:
        return whole
    plain = _in_ascii(text)
    number = float(plain) if _NUMBER.fullmatch(plain) else math.inf
    return number if math.isfinite(number) else _NOTHING


def _boolean(text: str) -> Any:
    word = text.lower()
    return True if word in _YES else False if word in _NO else _NOTHING


def _null(text: str) -> Any:
    return None if text == "null" else _NOTHING


def _json(text: str) -> Any:
    try:
        return read_json(text)
    except (ValueError, RecursionError):
        return _NOTHING


def _array(text: str) -> Any:
    value = _json(text)
    return value if isinstance(value, list) else _NOTHING


def _object(text: str) -> Any:
    value = _json(text)
    return value if isinstance(value, dict) else _NOTHING


_READERS = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "null": _null,
    "array": _array,
    "object": _object,
}
