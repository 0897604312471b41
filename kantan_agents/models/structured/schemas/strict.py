"""Adapts JSON Schemas to strict mode, if that is lossless.

Strict mode has neither optional properties nor defaults: an optional property becomes nullable, and
``restored`` removes the null.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Any

from kantan_agents.models.structured.schemas.restoring import restored
from kantan_agents.models.structured.schemas.schema_nodes import (
    ANNOTATIONS,
    DEFINITIONS,
    UNIONS,
    Nodes,
    fixed_values,
    is_json_equal,
    properties_of,
)
from kantan_agents.models.structured.schemas.strict_limits import is_within_limits
from kantan_agents.tool_rules.keywords import characters_at_once

__all__ = ["restored", "strict_schema"]

# From OpenAI's documentation. Other restrictions are checked at validation.
_SUPPORTED = {
    "string": ("pattern", "format"),
    "number": ("multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    "integer": ("multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    "array": ("minItems", "maxItems"),
    "object": (),
    "boolean": (),
    "null": (),
}
_FORMATS = frozenset(["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"])
_REFUSED = frozenset(
    {
        "$anchor",
        "$dynamicAnchor",
        "$dynamicRef",
        "$recursiveRef",
        "additionalItems",
        "contains",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "if",
        "not",
        "patternProperties",
        "prefixItems",
        "then",
        "unevaluatedItems",
    }
)
_DEEPEST = 64  # nested nodes; the provider allows ten levels of objects
_MOST_NODES = 20_000
_MOST_BRANCHES = 64


class _UnsuitableError(Exception):
    """No lossless adaptation exists."""


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a new schema for strict mode; None if that is not lossless.

    Every object is closed and requires all properties. References stay references.
    """
    try:
        adapted = _Adapter(schema).adapted()
    except (_UnsuitableError, RecursionError):
        return None
    return adapted if is_within_limits(adapted) else None


def _demand(condition: object) -> None:
    if not condition:
        raise _UnsuitableError


class _Adapter:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._nodes = Nodes(root)
        self._left = _MOST_NODES
        self._references: dict[str, str] = {}
        self._waiting: list[str] = []

    def adapted(self) -> dict[str, Any]:
        root = self._nodes.root
        whole = self._nodes.applying(root)
        _demand(whole is not None and not any(union in whole for union in UNIONS))
        wire = self._node({key: value for key, value in (whole or {}).items() if key != "$id"})
        _demand(wire.get("type") == "object")
        definitions: dict[str, Any] = {}
        while self._waiting:
            name = self._waiting.pop()
            definitions[name] = self._node(self._nodes.target(self._references[name]))
        return {**wire, "$defs": definitions} if definitions else wire

    def _node(self, node: Any, depth: int = 0) -> dict[str, Any]:
        self._left -= 1
        _demand(isinstance(node, dict) and depth <= _DEEPEST and self._left >= 0)
        _demand(not _REFUSED & node.keys() and not (depth and "$id" in node))
        _demand(node.get("unevaluatedProperties", False) is False)
        alone = node["allOf"][0] if _is_one_reference(node) else node
        if "$ref" in alone:
            _demand(not (node.keys() | alone.keys()) - ANNOTATIONS - {"$ref", "allOf", *DEFINITIONS})
            wire: dict[str, Any] = {"$ref": self._reference(alone["$ref"])}
            # A reference allows no other keyword, but a union of one has a description.
            return {"anyOf": [wire], **_words(node)} if "description" in node else wire
        if "allOf" in node:
            merged = self._nodes.applying(node)
            _demand(merged is not None)
            return self._node(merged, depth + 1)
        if any(union in node for union in UNIONS):
            return self._union(node, depth)
        return self._typed(node, depth)

    def _reference(self, ref: Any) -> str:
        if ref == "#":
            return "#"
        for keyword in DEFINITIONS:
            prefix = f"#/{keyword}/"
            if isinstance(ref, str) and ref.startswith(prefix) and "/" not in ref[len(prefix) :]:
                name = ref[len(prefix) :]
                if name not in self._references:
                    self._references[name] = ref
                    self._waiting.append(name)
                _demand(self._references[name] == ref)
                _demand(self._nodes.applying(self._nodes.target(ref)) is not None)
                return f"#/$defs/{name}"
        raise _UnsuitableError

    def _typed(self, node: dict[str, Any], depth: int) -> dict[str, Any]:
        types = _types_of(node)
        wire: dict[str, Any] = {"type": types[0] if len(types) == 1 else list(types)}
        wire |= _words(node)
        for key in ("enum", "const"):
            if key in node:
                values = fixed_values(node) or []
                _demand(values and not any(isinstance(value, (dict, list)) for value in values))
                wire[key] = list(values) if key == "enum" else node[key]
        for kind in types:
            _demand(kind in _SUPPORTED)
            wire |= {
                key: node[key] for key in _SUPPORTED[kind] if key in node and _is_supported(key, node[key])
            }
        if "array" in types:
            wire["items"] = self._node(node.get("items"), depth + 1)
        return wire | self._object(node, depth) if "object" in types else wire

    def _object(self, node: dict[str, Any], depth: int) -> dict[str, Any]:
        closed = node.get("additionalProperties", "absent")
        _demand(closed is False or (closed == "absent" and properties_of(node)))
        properties = properties_of(node)
        _demand(set(node.get("required", ())) <= properties.keys())
        return {
            "properties": {name: self._property(node, name, depth) for name in properties},
            "required": list(properties),
            "additionalProperties": False,
        }

    def _property(self, node: dict[str, Any], name: str, depth: int) -> dict[str, Any]:
        inner = node["properties"][name]
        wire = self._node(inner, depth + 1)
        if name in node.get("required", ()) or self._is_always_its_default(inner):
            return wire
        if self._nodes.droppable(node, name):
            return _or_null(wire)
        # Null is valid, so it can only mean absence if it is the default.
        _demand("default" in inner and inner["default"] is None)
        return wire

    def _is_always_its_default(self, inner: dict[str, Any]) -> bool:
        """Return whether the default is the only value, as for a union's tag."""
        values = fixed_values(self._nodes.applying(inner))
        return (
            values is not None
            and len(values) == 1
            and "default" in inner
            and is_json_equal(values[0], inner["default"])
        )

    def _union(self, node: dict[str, Any], depth: int) -> dict[str, Any]:
        keyword = next(union for union in UNIONS if union in node)
        _demand(not node.keys() - ANNOTATIONS - {keyword, *DEFINITIONS})
        _demand(isinstance(node[keyword], list) and node[keyword])
        self._demand_distinguishable(node)
        return {"anyOf": [self._node(branch, depth + 1) for branch in node[keyword]], **_words(node)}

    def _demand_distinguishable(self, node: dict[str, Any]) -> None:
        """Reject a union whose branches, in strict form, overlap."""
        branches = [branch or {} for branch in self._nodes.branches(node)]
        arrays = [branch for branch in branches if "items" in branch]
        _demand(len(arrays) < 2 or not any(map(self._nodes.adapts, arrays)))  # noqa: PLR2004
        objects = [branch for branch in branches if "properties" in branch]
        if len(objects) < 2 or self._is_tagged(objects):  # noqa: PLR2004
            return
        _demand(len(objects) <= _MOST_BRANCHES)
        for one, other in combinations(objects, 2):
            if (_covers(one, other) or _covers(other, one)) and not self._is_tagged([one, other]):
                _demand(not self._nodes.adapts(one) and not self._nodes.adapts(other))

    def _is_tagged(self, objects: list[dict[str, Any]]) -> bool:
        """Return whether a property has different listed values in every branch."""
        return any(
            all(name in branch["properties"] for branch in objects)
            and self._are_distinct([(branch, branch["properties"][name], name) for branch in objects])
            for name in objects[0]["properties"]
        )

    def _are_distinct(self, properties: list[tuple[dict[str, Any], Any, str]]) -> bool:
        seen: set[tuple[str, Any]] = set()
        for branch, inner, name in properties:
            values = fixed_values(self._nodes.applying(inner))
            always = name in branch.get("required", ()) or self._is_always_its_default(inner)
            if not values or not always or any(isinstance(value, (dict, list)) for value in values):
                return False
            keys = {(type(value).__name__ if isinstance(value, bool) else "", value) for value in values}
            if keys & seen:
                return False
            seen |= keys
        return True


def _covers(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether ``one`` allows exactly the properties of ``other``."""
    names = other["properties"].keys()
    return bool(set(one.get("required", ())) <= names <= one["properties"].keys())


def _is_one_reference(node: dict[str, Any]) -> bool:
    entries = node.get("allOf")
    return (
        isinstance(entries, list)
        and len(entries) == 1
        and isinstance(entries[0], dict)
        and "$ref" in entries[0]
        and not node.keys() - ANNOTATIONS - {"allOf"}
    )


def _words(node: dict[str, Any]) -> dict[str, Any]:
    return {key: node[key] for key in ("title", "description") if isinstance(node.get(key), str)}


def _types_of(node: dict[str, Any]) -> list[str]:
    types = node.get("type")
    if types is None and "properties" in node:
        types = "object"
    if types is None:
        types = list(dict.fromkeys(_type_of(value) for value in fixed_values(node) or ()))
    _demand(types and isinstance(types, (str, list)))
    return [types] if isinstance(types, str) else list(types or ())


def _type_of(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    kinds = {str: "string", int: "integer", float: "number", dict: "object", list: "array"}
    return kinds[type(value)]


def _is_supported(keyword: str, value: Any) -> bool:
    if keyword == "format":
        return isinstance(value, str) and value in _FORMATS
    # Patterns with lookaround or backreferences are not supported.
    return keyword != "pattern" or (isinstance(value, str) and characters_at_once(value) is not None)


def _or_null(wire: dict[str, Any]) -> dict[str, Any]:
    if isinstance(wire.get("type"), str) and wire["type"] not in ("object", "array"):
        if not {"enum", "const"} & wire.keys():
            return {**wire, "type": [wire["type"], "null"]}
    elif wire.keys() <= {"anyOf", "title", "description"}:
        return {**wire, "anyOf": [*wire["anyOf"], {"type": "null"}]}
    words = _words(wire)
    inner = {key: value for key, value in wire.items() if key not in words}
    return {"anyOf": [inner, {"type": "null"}], **words}
