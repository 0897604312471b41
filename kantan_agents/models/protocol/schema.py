"""``protocol_schema``: the JSON Schema of the protocol's values."""

from __future__ import annotations

import copy
from typing import Any, get_args

from kantan_agents.models.protocol.provider import Role
from kantan_agents.models.protocol.types import MEDIA, ContentType

_TEXT = {"type": "string"}
_NAME = {"type": "string", "minLength": 1}
_DATA = {
    "type": "string",
    "minLength": 1,
    "pattern": (
        "^(?:[A-Za-z][A-Za-z0-9+.-]*:|(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$)"
    ),
    "description": "Base64 without line breaks, or a URL: what begins with a scheme and a colon.",
}
_SEGMENTS = {"type": "array", "items": {"$ref": "#/$defs/ContentSegment"}}
_PAYLOADS = ("text", "data", "mimeType", "toolCall", "ui")


def protocol_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a ``ProviderResponse``; ``$defs`` has the schemas of all values.

    Use it to validate the protocol's JSON in other languages. Only the Python values check that strings are
    valid Unicode.
    """
    # A copy, so that a caller may change it.
    return copy.deepcopy(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "The OpenStarry protocol",
            "$ref": "#/$defs/ProviderResponse",
            "$defs": {
                "ProviderResponse": {
                    "type": "object",
                    "properties": {"segments": _SEGMENTS, "metadata": {}},
                    "required": ["segments"],
                },
                "ContentSegment": _segment(),
                "ToolCall": {
                    "type": "object",
                    "properties": {"id": {"type": ["string", "null"]}, "name": _NAME, "args": {}},
                    "required": ["name"],
                },
                "ToolSpec": {
                    "type": "object",
                    "properties": {
                        "name": _NAME,
                        "description": {"type": ["string", "null"]},
                        "parameters": {"type": ["object", "null"]},
                    },
                    "required": ["name"],
                },
                "Message": _message(),
            },
        }
    )


def _segment() -> dict[str, Any]:
    kinds = [_kind(kind) for kind in get_args(ContentType)]
    return {"type": "object", "properties": {"type": {"enum": list(get_args(ContentType))}}, "oneOf": kinds}


def _kind(kind: ContentType) -> dict[str, Any]:
    payloads: dict[str, dict[str, Any]] = {
        "text": _TEXT,
        "tool_call": {"$ref": "#/$defs/ToolCall"},
        "ui": {"not": {"type": "null"}},
    }
    payload = payloads.get(kind, _DATA)
    name = "data" if kind in MEDIA else "toolCall" if kind == "tool_call" else kind
    own = {name: payload, **({"mimeType": {"type": ["string", "null"]}} if kind in MEDIA else {})}
    others: dict[str, Any] = {other: {"type": "null"} for other in _PAYLOADS if other not in own}
    return {"properties": {"type": {"const": kind}, **own, **others}, "required": ["type", name]}


def _message() -> dict[str, Any]:
    optional = {"type": ["string", "null"]}
    has_call = {"type": "object", "properties": {"type": {"const": "tool_call"}}, "required": ["type"]}
    answers = {"toolCallId": _TEXT, "toolName": optional}
    others = {"toolCallId": {"type": "null"}, "toolName": {"type": "null"}}
    no_calls = {"segments": {"not": {"contains": has_call}}}
    return {
        "type": "object",
        "properties": {"role": {"enum": list(get_args(Role))}, "segments": _SEGMENTS},
        "required": ["role", "segments"],
        "oneOf": [
            {
                "properties": {"role": {"const": "tool"}, **answers, **no_calls},
                "required": ["toolCallId"],
            },
            {"properties": {"role": {"const": "assistant"}, **others}},
            {"properties": {"role": {"enum": ["user", "system"]}, **others, **no_calls}},
        ],
    }
