"""``Nodes``: resolves JSON Schema nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

ANNOTATIONS = frozenset(
    {
        "$comment",
        "$schema",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "default",
        "deprecated",
        "description",
        "discriminator",
        "examples",
        "readOnly",
        "title",
        "writeOnly",
    }
)
"""Keywords without effect on values."""

DEFINITIONS = ("$defs", "definitions")
UNIONS = ("anyOf", "oneOf")


class Nodes:
    """Resolves the nodes of one schema, with caches."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        # By identity: the root and these caches keep nodes alive.
        self._applying: dict[int, tuple[Any, dict[str, Any] | None]] = {}
        self._nullable: dict[int, bool] = {}

    def target(self, ref: Any) -> Any:
        """Return a local reference's target."""
        if ref == "#":
            return self.root
        if not isinstance(ref, str) or not ref.startswith("#/"):
            return None
        node: Any = self.root
        for step in ref[2:].split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(node, dict) or key not in node:
                return None
            node = node[key]
        return node

    def applying(self, node: Any) -> dict[str, Any] | None:
        """Return a node with ``$ref`` and ``allOf`` resolved, if possible."""
        known = self._applying.get(id(node))
        if known is None:
            self._applying[id(node)] = (node, None)  # for a reference back to itself
            known = self._applying[id(node)] = (node, self._find(node))
        return known[1]

    def _find(self, node: Any) -> dict[str, Any] | None:
        if not isinstance(node, dict):
            return None
        if "$ref" in node:
            if node.keys() - ANNOTATIONS - {"$ref", *DEFINITIONS}:
                return None
            found = self.applying(self.target(node["$ref"]))
            return None if found is None else {**found, **_beside(node)}
        if "allOf" not in node:
            return node
        merged: dict[str, Any] | None = _beside(node, "allOf")
        for entry in node["allOf"] if isinstance(node["allOf"], list) else [None]:
            applying = self.applying(entry)
            merged = None if merged is None or applying is None else _merged(merged, applying)
        return merged

    def permits_null(self, node: Any) -> bool:
        """Return whether a node accepts null; True if unknown."""
        if id(node) not in self._nullable:
            self._nullable[id(node)] = False  # a union that contains itself adds nothing
            self._nullable[id(node)] = self._find_null(node)
        return self._nullable[id(node)]

    def _find_null(self, node: Any) -> bool:
        if node is False:
            return False
        applying = self.applying(node)
        if applying is None:
            return True
        types = applying.get("type", "null")
        if types != "null" and not (isinstance(types, list) and "null" in types):
            return False
        if applying.get("const") is not None or None not in applying.get("enum", [None]):
            return False
        return all(any(map(self.permits_null, applying[union])) for union in UNIONS if union in applying)

    def droppable(self, node: Mapping[str, Any], name: str) -> bool:
        """Return whether null can only mean absence."""
        return name not in node.get("required", ()) and not self.permits_null(node["properties"][name])

    def branches(self, node: Any) -> Iterator[dict[str, Any] | None]:
        """Yield a union's flattened branches."""
        waiting, seen = [node], set()
        while waiting:
            applying = self.applying(waiting.pop(0))
            if applying is None:
                yield None
            elif id(applying) not in seen:
                seen.add(id(applying))
                inner = [branch for union in UNIONS for branch in applying.get(union, ())]
                if inner:
                    waiting[:0] = inner
                else:
                    yield applying

    def adapts(self, node: Any) -> bool:
        """Return whether strict mode may change values."""
        waiting, seen = [node], set()
        while waiting:
            applying = self.applying(waiting.pop())
            if applying is None or id(applying) in seen:
                continue
            seen.add(id(applying))
            properties = properties_of(applying)
            if any(self.droppable(applying, name) for name in properties):
                return True
            waiting.extend(properties.values())
            waiting.extend(branch for union in UNIONS for branch in applying.get(union, ()))
            waiting.extend(applying.get("prefixItems", ()))
            waiting.extend(applying[key] for key in ("items", "additionalProperties") if key in applying)
        return False


def properties_of(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return a node's properties by name."""
    properties = node.get("properties")
    return properties if isinstance(properties, dict) else {}


def fixed_values(node: Mapping[str, Any] | None) -> list[Any] | None:
    """Return the values in ``enum`` or ``const``, or None."""
    if node is None:
        return None
    if "const" in node:
        return [node["const"]]
    values = node.get("enum")
    return values if isinstance(values, list) else None


def is_json_equal(left: Any, right: Any) -> bool:
    """Return whether JSON values are equal; true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def _beside(node: Mapping[str, Any], *without: str) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in {"$ref", *DEFINITIONS, *without}}


def _merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any] | None:
    """Return the conjunction of two nodes, if their keywords combine."""
    merged = dict(first)
    for key, value in second.items():
        if key not in merged:
            merged[key] = value
        elif key in ANNOTATIONS or merged[key] == value:
            continue
        elif key == "properties":
            both = merged[key].keys() & value.keys()
            if any(merged[key][name] != value[name] for name in both):
                return None
            merged[key] = {**merged[key], **value}
        elif key == "required":
            merged[key] = list(dict.fromkeys([*merged[key], *value]))
        else:
            return None
    for node in (first, second):
        # ``additionalProperties`` ignores the other node's properties.
        if "additionalProperties" in node and properties_of(node).keys() != properties_of(merged).keys():
            return None
    return merged
