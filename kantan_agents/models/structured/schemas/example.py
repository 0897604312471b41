"""Example values, which some models follow better than schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kantan_agents.models.structured.schemas.schema_nodes import Nodes, fixed_values, properties_of

_DEEPEST: Final = 8
_NULL: Final[Mapping[str, Any]] = {"type": "null"}
_MOST: Final = 200
_ENDLESS: Final = 2000
_OF_TYPE: Final[Mapping[str, Any]] = {
    "string": "...",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "null": None,
}
_OF_FORMAT: Final[Mapping[str, str]] = {
    "date": "2024-12-31",
    "date-time": "2024-12-31T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "P1D",
    "email": "name@example.com",
    "uri": "https://example.com/",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
}


def example_of(schema: Mapping[str, Any]) -> Any:
    """Return a JSON value of the form that a schema describes.

    Strings are ``"..."``; ``examples`` and ``default`` take precedence. It need not fit: ``pattern`` and the
    like are ignored. Recursive or very large schemas lose optional parts.
    """
    return _Example(schema).of(schema, 0)


class _Example:
    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._nodes = Nodes(schema)
        self._left = _MOST
        self._open: list[int] = []

    def of(self, node: Any, depth: int) -> Any:
        self._left -= 1
        node = self._branch(node, depth)
        for values in (node.get("examples"), fixed_values(node)):
            if isinstance(values, list) and values:
                return values[0]
        if node.get("default") is not None:
            return node["default"]
        kind = node.get("type", "object" if properties_of(node) else "string")
        if isinstance(kind, list):
            is_short = "null" in kind and not self._has_space(depth)
            kind = "null" if is_short else next((one for one in kind if one != "null"), "null")
        if kind == "object":
            return self._object(node, depth)
        if kind == "array":
            return self._array(node, depth)
        if kind == "string":
            return _OF_FORMAT.get(str(node.get("format")), _OF_TYPE["string"])
        return _OF_TYPE.get(kind)

    def _branch(self, node: Any, depth: int) -> Mapping[str, Any]:
        branches = [one for one in self._nodes.branches(node) if one]
        if not self._has_space(depth):  # required links would make 2 ** 16 nodes
            if any(one.get("type") == "null" for one in branches):
                return _NULL
            branches = [one for one in branches if id(properties_of(one)) not in self._open] or branches
        return next((one for one in branches if one.get("type") != "null"), {})

    def _object(self, node: Mapping[str, Any], depth: int) -> dict[str, Any]:
        required = node.get("required", ())
        names = [name for name in properties_of(node) if self._has_space(depth) or name in required]
        opened = id(properties_of(node))
        if depth >= 2 * _DEEPEST or self._left < -_ENDLESS:  # always leads back to itself
            return {}
        self._open.append(opened)
        made = {name: self.of(node["properties"][name], depth + 1) for name in names}
        self._open.pop()
        return made

    def _array(self, node: Mapping[str, Any], depth: int) -> list[Any]:
        if not self._has_space(depth):
            return []
        items = [*node.get("prefixItems", ())]
        if not items and isinstance(node.get("items"), dict):
            items = [node["items"]]
        return [self.of(item, depth + 1) for item in items]

    def _has_space(self, depth: int) -> bool:
        return depth < _DEEPEST and self._left > 0
