"""The schema of an answer, in the part of JSON Schema that Anthropic's structured outputs know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kantan_agents.protocol.translate.anthropic.tools import FORMAT, OWNER
from kantan_agents.protocol.translate.losses import Losses
from kantan_agents.protocol.translate.references import cycle
from kantan_agents.protocol.translate.told import with_told

_TOLD = frozenset(
    {
        "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
        "pattern", "maxItems", "uniqueItems", "minProperties", "maxProperties", "examples", "contentEncoding",
    }
)  # fmt: skip
_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)
_KEPT = frozenset(
    {
        "type", "enum", "const", "required", "$ref", "title", "description", "default", "$schema", "$id",
        "format", "minItems",
    }
)  # fmt: skip
_PARTS = ("properties", "$defs", "definitions")
_LISTS = ("anyOf", "allOf", "oneOf")


def output_schema_to_anthropic(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema that ``output_config.format`` takes.

    The API knows no lengths, bounds and patterns: they are told in the description instead, and whoever
    reads the answer has to check them. Every object is closed, as the API demands.

    Raises:
        UntranslatableError: E52, an object with free keys, a keyword the API knows nothing of, recursion.
    """
    losses = Losses(f"{FORMAT} (output schema)", OWNER)
    _check_recursion(schema, losses)
    losses.check()
    written = _written(schema, "", losses)
    losses.check()
    return written


def _written(schema: Any, path: str, losses: Losses) -> dict[str, Any]:
    if not isinstance(schema, Mapping):
        losses.add(path.rstrip(".") or "schema", "must be an object; true and false say no type")
        return {}
    out: dict[str, Any] = {}
    told: dict[str, Any] = {}
    for keyword, value in schema.items():
        where = f"{path}{keyword}"
        if _is_told(keyword, value):
            told[keyword] = value
        elif keyword in _KEPT:
            out[keyword] = value
        elif not _nested(keyword, value, out, where, losses):
            losses.add(where, "is a keyword the API knows nothing of")
    if out.get("type") == "object" or "properties" in out:
        out["additionalProperties"] = False
    return with_told(out, told)


def _is_told(keyword: str, value: Any) -> bool:
    if keyword == "format":
        return value not in _FORMATS
    return keyword in _TOLD or (keyword == "minItems" and value not in (0, 1))


def _nested(keyword: str, value: Any, out: dict[str, Any], where: str, losses: Losses) -> bool:
    """Write a keyword that holds schemas; return whether it is one the API knows."""
    if keyword in _PARTS and isinstance(value, Mapping):
        out[keyword] = {name: _written(part, f"{where}.{name}.", losses) for name, part in value.items()}
    elif keyword in _LISTS and isinstance(value, (list, tuple)):
        parts = [_written(part, f"{where}[{place}].", losses) for place, part in enumerate(value)]
        out["anyOf" if keyword == "oneOf" else keyword] = parts
    elif keyword == "items":
        out[keyword] = _written(value, f"{where}.", losses)
    elif keyword == "additionalProperties":
        if value is not False:
            losses.add(where, "must be false: an object with free keys cannot be asked for")
    else:
        return keyword == "discriminator"
    return True


def _check_recursion(schema: Mapping[str, Any], losses: Losses) -> None:
    found = cycle(schema)
    if found is not None:
        losses.add(found, "refers to itself, and a schema here cannot be recursive")
