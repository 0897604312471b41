"""Apply a function to all texts in data: API items, tool results and final outputs."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Mapping
from typing import Any

import attrs
from pydantic import BaseModel

Change = Callable[[str, str], str]
"""Takes a text and the name of its field, and returns the replacement."""

_UNCHANGED_FIELDS = frozenset(
    {
        "type",
        "id",
        "call_id",
        "response_id",
        "item_id",
        "file_id",
        "container_id",
        "approval_request_id",
        "role",
        "status",
        "phase",
        "name",
        "namespace",
        "server_label",
        "detail",
        "format",
        "encrypted_content",
        "signature",
        "image_url",
        "file_url",
        "file_data",
        "data",
        "created_by",
    }
)
"""Fields of API items that are never changed: identifiers, types and binary data."""


def change_item(value: Any, change: Change, field: str = "") -> Any:
    """Return an API item with its texts changed; the same object if nothing changed."""
    if isinstance(value, str):
        text = change(value, field)
        return value if text == value else text
    if isinstance(value, Mapping):
        changed = {name: _in_field(name, inner, change) for name, inner in value.items()}
        return value if all(changed[name] is inner for name, inner in value.items()) else changed
    if isinstance(value, (list, tuple)):
        items = [change_item(inner, change, field) for inner in value]
        return value if all(map(operator.is_, items, value)) else type(value)(items)
    if isinstance(value, BaseModel):
        fields = {name: _in_field(name, inner, change) for name, inner in value}
        fields = {name: inner for name, inner in fields.items() if inner is not getattr(value, name)}
        if fields and hasattr(value, "logprobs"):
            fields["logprobs"] = []  # they quote the text
        return value.model_copy(update=fields) if fields else value
    return value


def _in_field(name: Any, value: Any, change: Change) -> Any:
    return value if name in _UNCHANGED_FIELDS else change_item(value, change, str(name))


def change_value(value: Any, change: Callable[[str], str]) -> Any:
    """Return data with all texts changed, including keys; the same object if nothing changed.

    A number or any other object whose ``str()`` is changed becomes the changed text.
    """
    if value is None or isinstance(value, (bool, bytes)):
        return value
    if isinstance(value, str):
        changed = change(value)
        return value if changed == value else changed
    if isinstance(value, Mapping):
        return _change_mapping(value, change)
    if isinstance(value, (list, tuple)):
        items = [change_value(inner, change) for inner in value]
        return value if all(map(operator.is_, items, value)) else _like(value, items)
    if isinstance(value, BaseModel):
        return change_item(value, lambda text, _: change(text))
    if attrs.has(type(value)):
        fields = {field.name: getattr(value, field.name) for field in attrs.fields(type(value))}
        changed_fields = _changes(fields, change)
        return attrs.evolve(value, **_by_alias(value, changed_fields)) if changed_fields else value
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        changed_fields = _changes({name: getattr(value, name) for name in value.__dataclass_fields__}, change)
        return _copied(value, changed_fields) if changed_fields else value
    text = str(value)
    changed = change(text)
    return value if changed == text else changed


def _change_mapping(value: Mapping[Any, Any], change: Callable[[str], str]) -> Any:
    pairs = [
        (change(key) if isinstance(key, str) else key, change_value(inner, change))
        for key, inner in value.items()
    ]
    if all(key == old and inner is value[old] for (key, inner), old in zip(pairs, value, strict=True)):
        return value
    changed = dict(pairs)
    return changed if len(changed) == len(pairs) else change(str(value))


def _changes(fields: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    changed = {name: change_value(inner, change) for name, inner in fields.items()}
    return {name: inner for name, inner in changed.items() if inner is not fields[name]}


def _by_alias(value: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    aliases = {field.name: field.alias or field.name for field in attrs.fields(type(value))}
    return {aliases[name]: inner for name, inner in fields.items()}


def _copied(value: Any, fields: Mapping[str, Any]) -> Any:
    copied = copy.copy(value)
    for name, inner in fields.items():
        object.__setattr__(copied, name, inner)
    return copied


def _like(value: Any, items: list[Any]) -> Any:
    if hasattr(value, "_fields"):  # a named tuple
        return type(value)(*items)
    return type(value)(items)
