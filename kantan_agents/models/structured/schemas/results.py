"""Final outputs as plain data, for the context (spec 11) and records.

Neither function raises: a value that cannot be converted becomes its ``str``, with a log entry.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import attrs
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from kantan_agents.support.log import get_logger

_log = get_logger("kantan_agents.structured")


def as_dict(output: Any, *, json: bool = False) -> dict[str, Any] | None:
    """Return a structured output as a dict; None for values without fields.

    Nested objects become dicts, and keys strings, as in JSON. ``json`` converts the values too, for traces.
    """
    if not _has_fields(output):
        return None
    try:
        plain = json_data(output) if json else _plain(output)
    except RecursionError:  # it contains itself
        plain = output
    return plain if isinstance(plain, dict) else None  # a RootModel may hold anything


def json_data(output: Any) -> Any:
    """Return any output as JSON data; NaN and infinity become None."""
    if output is None or isinstance(output, str):
        return output
    data = output
    try:
        if isinstance(output, BaseModel):
            try:
                data = output.model_dump(mode="json", fallback=str)
            except Exception as error:  # noqa: BLE001 - the serializers of a user's type may raise anything
                _warn(output, error)
                data = _plain(output)
        else:
            data = _plain(output)
        return _jsonable(data)
    except (ValueError, RecursionError) as error:  # it contains itself
        _warn(output, error)
        return str(output)


def _has_fields(output: Any) -> bool:
    if output is None or isinstance(output, (str, type)):
        return False
    kind = type(output)
    return isinstance(output, (BaseModel, dict)) or dataclasses.is_dataclass(kind) or attrs.has(kind)


def _plain(value: Any) -> Any:
    """Replace objects with fields by dicts; the same value without any."""
    kind = type(value)
    if isinstance(value, BaseModel):
        return _plain(_dumped(value))
    if isinstance(value, dict):
        return _plain_dict(value)
    if kind in (list, tuple, set, frozenset):
        items = [_plain(inner) for inner in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return tuple(items) if kind is tuple else items  # a set cannot contain a dict
    if isinstance(value, type):
        return value
    if attrs.has(kind):
        return {field.name: _plain(getattr(value, field.name)) for field in attrs.fields(kind)}
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


def _plain_dict(value: dict[Any, Any]) -> dict[str, Any]:
    plain = {key if type(key) is str else _key_text(key): _plain(inner) for key, inner in value.items()}
    if len(plain) < len(value):
        _log.warning("keys_became_equal", count=len(value) - len(plain))
    elif all(key in plain and plain[key] is inner for key, inner in value.items()):
        # A str enum's member equals its str.
        return value if all(type(key) is str for key in value) else plain
    return plain


def _key_text(key: Any) -> str:
    try:
        return str(next(iter(_jsonable({key: None}))))
    except TypeError:  # such as a set
        return str(key)


def _jsonable(data: Any) -> Any:
    try:
        return to_jsonable_python(data, fallback=str, inf_nan_mode="null")
    except UnicodeDecodeError:  # bytes that are not text
        return to_jsonable_python(data, fallback=str, inf_nan_mode="null", bytes_mode="base64")


def _dumped(model: BaseModel) -> Any:
    try:
        return model.model_dump()
    except Exception as error:  # noqa: BLE001 - the serializers of a user's type may raise anything
        # Pydantic cannot put dicts into a set.
        _warn(model, error)
        return {
            name: getattr(model, name) for name in (*type(model).model_fields, *(model.model_extra or ()))
        }


def _warn(value: Any, error: Exception) -> None:
    _log.warning("output_not_serialized", type=type(value).__name__, error_type=type(error).__name__)
