"""Finds the JSON types that a tool's own schema declares for a parameter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def declared_types(schema: Any, steps: tuple[str, ...]) -> tuple[str, ...]:
    """Return the JSON types that a tool's schema declares for a parameter; empty if it declares none."""
    places = _alternatives(schema, [schema])
    for one in steps:
        places = _alternatives(schema, [inner for place in places for inner in _inside(place, one)])
    types: list[str] = []
    for place in places:
        found = place.get("type") if isinstance(place, Mapping) else None
        if not isinstance(found, (str, list)) or not found:
            return ()
        types += [found] if isinstance(found, str) else found
    return tuple(dict.fromkeys(map(str, types)))


def _inside(schema: Any, one: str) -> Iterator[Any]:
    """Yield the schema of the items or of one property, None if it is not declared."""
    if not isinstance(schema, Mapping):
        yield None
        return
    types, properties = schema.get("type"), schema.get("properties")
    if isinstance(types, (str, list)) and ("array" if one == "[]" else "object") not in types:
        return
    if one == "[]":
        yield schema.get("items")
    elif isinstance(properties, Mapping) and one in properties:
        yield properties[one]
    else:
        yield schema.get("additionalProperties")


def _alternatives(root: Any, schemas: Iterable[Any]) -> list[Any]:
    """Return the alternative schemas of a value, each once, with references resolved."""
    found: list[Any] = []
    waiting = list(schemas)
    seen: set[int] = set()
    for schema in waiting:  # grows as it goes
        if not isinstance(schema, Mapping):
            found.append(None)
            continue
        if id(schema) in seen:
            continue
        seen.add(id(schema))
        reference = schema.get("$ref")
        options = schema.get("anyOf") or schema.get("oneOf") or _only(schema.get("allOf"))
        if isinstance(reference, str):
            waiting.append(_resolved(root, reference))
        elif isinstance(options, list) and "type" not in schema and "properties" not in schema:
            waiting += options
        else:
            found.append(schema)
    return found


def _only(schemas: Any) -> list[Any] | None:
    return schemas if isinstance(schemas, list) and len(schemas) == 1 else None


def _resolved(root: Any, reference: str) -> Any:
    place, *steps = reference.split("/")
    if place != "#":
        return None
    for one in steps:
        root = root.get(one.replace("~1", "/").replace("~0", "~")) if isinstance(root, Mapping) else None
    return root


def has_type(value: Any, types: tuple[str, ...]) -> bool:
    """Return whether a value has one of some JSON types; an integral float is an integer too."""
    if isinstance(value, bool):
        return "boolean" in types
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer" in types or "number" in types
    names = {str: "string", float: "number", dict: "object", list: "array", type(None): "null"}
    return names.get(type(value)) in types
