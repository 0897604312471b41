"""The JSON Schema of events."""

from __future__ import annotations

import typing
from datetime import datetime
from types import NoneType, UnionType
from typing import Any, Literal, Union

import attrs

from kantan_agents.core.events.kinds import EVENT_KINDS, Event

_SCALARS: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def event_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) that every ``event.to_dict()`` satisfies."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "An event of a run",
        "oneOf": [_schema_of(kind) for kind in EVENT_KINDS],
    }


def _schema_of(kind: type[Event]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    properties = {field.name: _type_of(hints[field.name]) for field in attrs.fields(kind)}
    return {
        "title": kind.__name__,
        "type": "object",
        "properties": {"type": {"const": kind.type}, **properties},
        "required": ["type", *properties],
        "additionalProperties": False,
    }


def _type_of(hint: Any) -> dict[str, Any]:
    if hint is Any:
        return {}
    if hint is datetime:
        return {"type": "string", "format": "date-time"}
    if hint in _SCALARS:
        return {"type": _SCALARS[hint]}
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (Union, UnionType):
        return {"anyOf": [_type_of(option) for option in inner]}
    return {"type": "object", "additionalProperties": _type_of(inner[1])}
