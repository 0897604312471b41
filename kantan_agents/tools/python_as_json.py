"""Reads Python values as pydantic writes them in JSON."""

from __future__ import annotations

import dataclasses
import enum
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sized
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pydantic import AliasChoices, BaseModel, RootModel
from pydantic_core import PydanticSerializationError, to_jsonable_python

from kantan_agents.tool_rules.received_values import UNREADABLE

_MISSING = object()
_BYTES = (bytes, bytearray, memoryview)


class JSONReader:
    """Reads Python values as JSON values.

    With ``by_python_name``, a Python name wins over an equal name in the schema, and a named tuple is an
    object. ``is_ambiguous``: the other way gives other values.
    """

    def __init__(self, *, by_python_name: bool) -> None:
        self._by_python_name = by_python_name
        self.is_ambiguous = False

    def value(self, value: Any, written: Any) -> Any:
        """Read a value; ``written`` is the model's, if known."""
        plain = _plain(value)
        if plain is not _MISSING:
            return plain
        if isinstance(value, Mapping):
            given = written if isinstance(written, dict) else {}
            return {
                _key(key): self.value(one, given.get(key, _MISSING) if isinstance(key, str) else _MISSING)
                for key, one in value.items()
            }
        if isinstance(value, RootModel):
            return self.value(value.root, written)
        if isinstance(value, enum.Enum):  # before collections: flags contain themselves
            return self.value(value.value, written)
        fields = _fields_of(value)
        if fields is not None:
            return self.fields(value, fields, written)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            self.is_ambiguous = True
            if self._by_python_name:
                return {
                    name: self.value(one, _at(written, place, name))
                    for place, (name, one) in enumerate(zip(value._fields, value, strict=False))
                }
        items = self._items(value, written)
        return self._object(value, written) if items is None else items

    def _items(self, value: Any, written: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self.value(one, _at(written, place)) for place, one in enumerate(value)]
        if isinstance(value, Iterator):
            return self._converted_items(value, written)
        if isinstance(value, Sized) and isinstance(value, Iterable) and not isinstance(value, _BYTES):
            return [self.value(one, _MISSING) for one in value]
        return None

    def _converted_items(self, value: Iterator[Any], written: Any) -> Any:
        """Pydantic converts an ``Iterable`` parameter's items one by one."""
        if type(value).__name__ != "ValidatorIterator":
            return _unreadable(value)  # it may never end
        try:
            return self.value(list(value), written)
        except Exception:  # noqa: BLE001 - a validator is user code
            return _unreadable(value)

    def _object(self, value: Any, written: Any) -> Any:
        if written is not _MISSING and callable(getattr(value, "get_secret_value", None)):
            return self.value(value.get_secret_value(), written)
        if isinstance(value, timedelta) and isinstance(written, (int, float)):
            return value.total_seconds()  # a limit on a number is one on seconds
        text = _text_of(value)
        return written if _is_written(text, written) else text

    def model(self, model: BaseModel, written: Any) -> dict[str, Any]:
        """Read a pydantic model."""
        return self.fields(model, _fields_of(model) or {}, written)

    def fields(self, value: Any, fields: Mapping[str, Any], written: Any) -> dict[str, Any]:
        """Give each field all of its names."""
        given = written if isinstance(written, dict) else {}
        by_python: dict[str, Any] = {}
        by_schema: dict[str, Any] = {}
        for name, field in fields.items():
            names = _names_of(field)
            key = next((one for one in (*names, name) if one in given), None)
            found = getattr(value, name, None)
            if key is None and found is None:
                continue  # omitted, and without a default
            read = self.value(found, given[key] if key is not None else _MISSING)
            if key is None and _is_unreadable(read) and name not in _set_in(value):
                continue  # a developer's own object that raises this
            by_python[name] = read
            by_schema |= dict.fromkeys(names, read)
        if not by_schema:
            return by_python | self._extra_of(value, given)
        self.is_ambiguous = True
        named = {**by_schema, **by_python} if self._by_python_name else {**by_python, **by_schema}
        return named | self._extra_of(value, given)

    def _extra_of(self, value: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        extra = getattr(value, "__pydantic_extra__", None) or {}
        return {_key(key): self.value(one, given.get(key, _MISSING)) for key, one in extra.items()}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, (Decimal, Fraction)):
        return _number(value)
    return _number(value) if isinstance(value, float) else _MISSING


def _number(value: Any) -> Any:
    # JSON numbers are finite: this one exceeds every limit.
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - only NaN is unequal to itself
        return -sys.float_info.max if value < 0 else sys.float_info.max
    if isinstance(value, Decimal) and value.adjusted() > sys.float_info.max_10_exp:
        # As an int, `1e9999999` would need minutes.
        return -sys.float_info.max if value < 0 else sys.float_info.max
    return int(value) if value == int(value) and not isinstance(value, float) else float(value)


def _key(key: Any) -> str:
    plain = _plain(key)
    if isinstance(plain, str):
        return plain
    text = _text_of(key) if plain is _MISSING else plain
    return str(key if _is_unreadable(text) else text)


def _text_of(value: Any) -> Any:
    try:
        if isinstance(value, _BYTES):
            return _text_of_bytes(bytes(value))
        return to_jsonable_python(value)
    except (PydanticSerializationError, ValueError, TypeError):
        return _unreadable(value)


def _text_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _unreadable(value: Any) -> dict[str, str]:
    return {UNREADABLE: type(value).__name__}


def _is_unreadable(value: Any) -> bool:
    return isinstance(value, dict) and UNREADABLE in value


def _is_written(text: Any, written: Any) -> bool:
    """Return whether the model wrote it, except for pydantic's slash after a URL's host."""
    is_host = isinstance(written, str) and "/" not in written.partition("://")[2]
    return is_host and text == f"{written}/"


def _set_in(value: Any) -> Container[str]:
    """Omit defaults; return all if unknown."""
    known: Container[str] | None = getattr(value, "__pydantic_fields_set__", None)
    return getattr(type(value), "__dataclass_fields__", ()) if known is None else known


def _at(written: Any, place: int, name: str = "") -> Any:
    if isinstance(written, list) and place < len(written):
        return written[place]
    return written.get(name, _MISSING) if isinstance(written, dict) else _MISSING


def _fields_of(value: Any) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = getattr(type(value), "__pydantic_fields__", None)
    if found is None and dataclasses.is_dataclass(value):
        found = {field.name: field for field in dataclasses.fields(value)}
    return found


def _names_of(field: Any) -> list[str]:
    found: list[Any] = [getattr(field, "alias", None)]
    accepted = getattr(field, "validation_alias", None)
    found += accepted.choices if isinstance(accepted, AliasChoices) else [accepted]
    return list(dict.fromkeys(name for name in found if isinstance(name, str)))
