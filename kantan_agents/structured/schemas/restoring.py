"""The way back from the wire: nulls that stand for absent properties are taken out again."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Literal

from kantan_agents.structured.schemas.schema_nodes import (
    UNIONS,
    Nodes,
    fixed_values,
    is_json_equal,
    properties_of,
)

Way = Literal["exact", "loose", "filled"]


class Restorer:
    """Walks values along one schema. What does not change is returned as it is, not copied.

    Attributes:
        adapts: Whether there is anything to restore in any value.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._nodes = Nodes(schema)
        self._branches: dict[int, list[dict[str, Any]]] = {}
        self.adapts = self._nodes.adapts(schema)

    def exact(self, value: Any) -> Any:
        """Restore a value that has come in the strict schema's form.

        Of several branches of a union, only one whose properties are exactly there is meant. So what has come
        in another form stays as it is.
        """
        return self._restored(value, "exact")

    def loose(self, value: Any) -> Any:
        """Restore a value of which some properties are null and some absent, as models write them."""
        return self._restored(value, "loose")

    def filled(self, value: Any) -> Any:
        """Return a value with the defaults of the properties that are absent."""
        return self._restored(value, "filled")

    def _restored(self, value: Any, way: Way) -> Any:
        try:
            return self._walk(self._nodes.root, value, way)
        except RecursionError:  # deeper than any reader of JSON goes
            return value

    def _walk(self, node: Any, value: Any, way: Way) -> Any:
        if not isinstance(value, (dict, list)):
            return value
        applying = self._nodes.applying(node)
        if applying is None:
            return value
        if isinstance(value, dict):
            value = self._object(applying, value, way)
        else:
            value = self._array(applying, value, way)
        if any(union in applying for union in UNIONS):
            branch = self._branch(applying, value, way)
            if branch is not None:
                return self._walk(branch, value, way)
        return value

    def _object(self, node: dict[str, Any], value: dict[str, Any], way: Way) -> dict[str, Any]:
        properties, others = properties_of(node), node.get("additionalProperties")
        result, changed = {}, False
        for name, old in value.items():
            inner = properties.get(name, others)
            if way != "filled" and old is None and name in properties and self._nodes.droppable(node, name):
                changed = True
                continue
            new = self._walk(inner, old, way)
            changed = changed or new is not old
            result[name] = new
        if way == "filled":
            for name, inner in properties.items():
                if name not in result and isinstance(inner, dict) and "default" in inner:
                    result[name] = copy.deepcopy(inner["default"])
                    changed = True
        return result if changed else value

    def _array(self, node: dict[str, Any], value: list[Any], way: Way) -> list[Any]:
        first = node.get("prefixItems", [])
        rest = node.get("items")
        result = [
            self._walk(first[index] if index < len(first) else rest, old, way)
            for index, old in enumerate(value)
        ]
        return result if any(new is not old for new, old in zip(result, value, strict=True)) else value

    def _branch(self, node: dict[str, Any], value: Any, way: Way) -> dict[str, Any] | None:
        """Return the branch of a union that a value is meant for; None if it cannot be told."""
        if id(node) not in self._branches:
            self._branches[id(node)] = [found for found in self._nodes.branches(node) if found is not None]
        if isinstance(value, list):
            arrays = [branch for branch in self._branches[id(node)] if "items" in branch]
            return arrays[0] if len(arrays) == 1 else None
        objects = [branch for branch in self._branches[id(node)] if "properties" in branch]
        if len(objects) == 1:
            return objects[0]
        keys = value.keys()
        consistent = [branch for branch in objects if self._is_consistent(branch, value)]
        tests: list[Callable[[dict[str, Any]], bool]] = [lambda branch: branch["properties"].keys() == keys]
        if way != "exact":
            tests.append(
                lambda branch: set(branch.get("required", ())) <= keys <= branch["properties"].keys()
            )
            tests.append(lambda branch: set(branch.get("required", ())) <= keys)
        return next((branch for test in tests for branch in consistent if test(branch)), None)

    def _is_consistent(self, branch: dict[str, Any], value: dict[str, Any]) -> bool:
        """Return whether no property has a value that the branch does not list."""
        for name, inner in branch["properties"].items():
            listed = fixed_values(self._nodes.applying(inner)) if name in value else None
            if listed is None or any(is_json_equal(value[name], one) for one in listed):
                continue
            if value[name] is not None or not self._nodes.droppable(branch, name):
                return False
        return True


def restored(schema: Mapping[str, Any], value: Any) -> Any:
    """Return a value in the form of ``schema``, of one in the form of ``strict_schema(schema)``.

    A null where a property may be absent and may not be null is taken out, so that its default applies.

    Args:
        schema: The JSON Schema as its author means it.
        value: A JSON value; it is not changed.
    """
    return Restorer(schema).exact(value)
