"""Size limits of OpenAI's strict mode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_PROPERTIES = 5_000
_LEVELS = 10
_ENUM_VALUES = 1_000
_CHARACTERS = 120_000
_LONG_ENUM = 250
_LONG_ENUM_CHARACTERS = 15_000
_CHAIN = 200  # longest chain of references


def is_within_limits(schema: Mapping[str, Any]) -> bool:
    """Return whether a strict schema is within the limits."""
    properties = values = characters = 0
    characters += sum(map(len, schema.get("$defs", {})))
    for node in _nodes(schema):
        names, listed = node.get("properties", {}), node.get("enum", [])
        texts = [value for value in (*listed, node.get("const")) if isinstance(value, str)]
        properties += len(names)
        values += len(listed)
        length = sum(map(len, texts))
        characters += sum(map(len, names)) + length
        if len(listed) > _LONG_ENUM and length > _LONG_ENUM_CHARACTERS:
            return False
    within = properties <= _PROPERTIES and values <= _ENUM_VALUES and characters <= _CHARACTERS
    return within and _levels(schema, schema, {}, 0) <= _LEVELS


def _nodes(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    waiting = [schema, *schema.get("$defs", {}).values()]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(_inner(node))


def _inner(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from node.get("properties", {}).values()
    yield from node.get("anyOf", ())
    if "items" in node:
        yield node["items"]


def _levels(node: Mapping[str, Any], root: Mapping[str, Any], found: dict[str, int], chain: int) -> int:
    """Return the nesting depth of objects; recursive references add no level."""
    if chain > _CHAIN:
        return _LEVELS + 1
    ref = node.get("$ref")
    if ref is not None:
        if ref not in found:
            found[ref] = 0
            if ref != "#":
                target = root["$defs"][ref.removeprefix("#/$defs/")]
                found[ref] = _levels(target, root, found, chain + 1)
        return found[ref]
    deepest = max((_levels(inner, root, found, chain + 1) for inner in _inner(node)), default=0)
    return deepest + ("properties" in node)
