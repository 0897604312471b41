"""Reads types, choices and references from a JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

_HOPS = 32
_LEAVES = 64


def resolve(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema, or the target of its ``$ref``; an empty schema without a target."""
    for _ in range(_HOPS):
        if not isinstance(schema, Mapping):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        schema = _at(root, reference)
    return {}


def _at(root: Any, reference: str) -> Any:
    if not reference.startswith("#"):
        return None
    for step in reference[1:].split("/")[1:]:
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        root = root.get(key) if isinstance(root, Mapping) else None
    return root


def leaves_of(schema: Any, root: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the schema, or the resolved members of its unions."""
    leaves: list[Mapping[str, Any]] = []
    for leaf in _leaves(schema, root, depth=0):
        leaves.append(leaf)
        if len(leaves) >= _LEAVES:
            break
    return leaves


def _leaves(schema: Any, root: Mapping[str, Any], depth: int) -> Iterator[Mapping[str, Any]]:
    found = resolve(schema, root)
    every = found.get("allOf")
    options = found.get("anyOf") or found.get("oneOf")
    if not options and isinstance(every, list) and len(every) == 1:
        options = every  # a common form of a reference with a default
    if not isinstance(options, list) or depth >= _HOPS:
        yield found
        return
    for option in options:
        yield from _leaves(option, root, depth + 1)


def types_of(leaf: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a leaf's JSON types; empty if unrestricted."""
    types = leaf.get("type")
    if isinstance(types, str):
        return (types,)
    if isinstance(types, (list, tuple)):
        return tuple(name for name in types if isinstance(name, str))
    choices = choices_of(leaf)
    if choices is not None:
        return tuple(dict.fromkeys(map(_type_name, choices)))
    if "properties" in leaf:
        return ("object",)
    return ("array",) if "items" in leaf else ()


def choices_of(leaf: Mapping[str, Any]) -> list[Any] | None:
    """Return a leaf's enumerated values; None without a list."""
    if "const" in leaf:
        return [leaf["const"]]
    choices = leaf.get("enum")
    return list(choices) if isinstance(choices, (list, tuple)) else None


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    for kind, name in (
        (bool, "boolean"),
        (int, "integer"),
        (float, "number"),
        (str, "string"),
        (list, "array"),
    ):
        if isinstance(value, kind):
            return name
    return "object"
