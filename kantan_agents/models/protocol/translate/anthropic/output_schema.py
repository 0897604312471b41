"""Output schemas in Anthropic's subset of JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kantan_agents.models.protocol.translate.anthropic.tools import FORMAT, OWNER
from kantan_agents.models.protocol.translate.json_schema import describe_keywords, find_cycle
from kantan_agents.models.protocol.translate.losses import Losses

_DESCRIBED = frozenset(
    {
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
        "pattern", "maxItems", "uniqueItems", "minProperties", "maxProperties", "examples", "contentEncoding",
    }
)  # fmt: skip
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)
_COPIED = frozenset(
    {
        "type", "enum", "const", "required", "$ref", "title", "description", "default", "$schema", "$id",
        "format", "minItems",
    }
)  # fmt: skip
_SCHEMA_MAPS = ("properties", "$defs", "definitions")
_SCHEMA_LISTS = ("anyOf", "allOf", "oneOf")


def output_schema_to_anthropic(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON Schema in the form that ``output_config.format`` accepts.

    Lengths, bounds and patterns, which the API does not support, move to the description, and the caller has
    to check them in the response. Every object gets ``additionalProperties: false``, as the API requires.

    Raises:
        UntranslatableError: E52, the schema has an object with arbitrary keys, an unsupported keyword, or
            recursion.
    """
    losses = Losses(f"{FORMAT} (output schema)", OWNER)
    _check_recursion(schema, losses)
    losses.check()
    written = _convert(schema, "", losses)
    losses.check()
    return written


def _convert(schema: Any, path: str, losses: Losses) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        losses.add(path.rstrip(".") or "schema", "must be an object; true and false define no type")
        return {}
    out: dict[str, Any] = {}
    described: dict[str, Any] = {}
    for keyword, value in schema.items():
        where = f"{path}{keyword}"
        if _is_described(keyword, value):
            described[keyword] = value
        elif keyword in _COPIED:
            out[keyword] = value
        elif not _convert_nested(keyword, value, out, where, losses):
            losses.add(where, "is a keyword that the API does not support")
    if out.get("type") == "object" or "properties" in out:
        out["additionalProperties"] = False
    return describe_keywords(out, described)


def _is_described(keyword: str, value: Any) -> bool:
    if keyword == "format":
        return value not in _FORMATS
    return keyword in _DESCRIBED or (keyword == "minItems" and value not in (0, 1))


def _convert_nested(keyword: str, value: Any, out: dict[str, Any], where: str, losses: Losses) -> bool:
    if keyword in _SCHEMA_MAPS and isinstance(value, Mapping):
        out[keyword] = {name: _convert(part, f"{where}.{name}.", losses) for name, part in value.items()}
    elif keyword in _SCHEMA_LISTS and isinstance(value, (list, tuple)):
        parts = [_convert(part, f"{where}[{index}].", losses) for index, part in enumerate(value)]
        out["anyOf" if keyword == "oneOf" else keyword] = parts
    elif keyword == "items":
        out[keyword] = _convert(value, f"{where}.", losses)
    elif keyword == "additionalProperties":
        if value is not False:
            losses.add(where, "must be false: an object with arbitrary keys cannot be requested")
    else:
        return keyword == "discriminator"
    return True


def _check_recursion(schema: Mapping[str, Any], losses: Losses) -> None:
    found = find_cycle(schema)
    if found is not None:
        losses.add(found, "refers to itself, and a schema here cannot be recursive")
