"""Restores values after strict mode."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Literal

from kantan_agents.models.structured.schemas.schema_nodes import (
    UNIONS,
    Nodes,
    fixed_values,
    is_json_equal,
    properties_of,
)

Mode = Literal["exact", "loose", "filled"]


class Restorer:
    """Restores values of one schema, if it ``adapts``."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._nodes = Nodes(schema)
        self._branches: dict[int, list[dict[str, Any]]] = {}
        self.adapts = self._nodes.adapts(schema)

    def exact(self, value: Any) -> Any:
        """Restore a value in strict form; others stay unchanged.

        In a union, the branch must have exactly the value's properties.
        """
        return self._restored(value, "exact")

    def loose(self, value: Any) -> Any:
        """Restore a value with both null and absent properties."""
        return self._restored(value, "loose")

    def filled(self, value: Any) -> Any:
        """Fill in defaults of absent properties."""
        return self._restored(value, "filled")

    def _restored(self, value: Any, mode: Mode) -> Any:
        try:
            return self._walk(self._nodes.root, value, mode)
        except RecursionError:  # deeper than JSON decoders support
            return value

    def _walk(self, node: Any, value: Any, mode: Mode) -> Any:
        if not isinstance(value, (dict, list)):
            return value
        applying = self._nodes.applying(node)
        if applying is None:
            return value
        if isinstance(value, dict):
            value = self._object(applying, value, mode)
        else:
            value = self._array(applying, value, mode)
        if any(union in applying for union in UNIONS):
            branch = self._branch(applying, value, mode)
            if branch is not None:
                return self._walk(branch, value, mode)
        return value

    def _object(self, node: dict[str, Any], value: dict[str, Any], mode: Mode) -> dict[str, Any]:
        properties, others = properties_of(node), node.get("additionalProperties")
        result, changed = {}, False
        for name, old in value.items():
            inner = properties.get(name, others)
            if mode != "filled" and old is None and name in properties and self._nodes.droppable(node, name):
                changed = True
                continue
            new = self._walk(inner, old, mode)
            changed = changed or new is not old
            result[name] = new
        if mode == "filled":
            for name, inner in properties.items():
                if name not in result and isinstance(inner, dict) and "default" in inner:
                    result[name] = copy.deepcopy(inner["default"])
                    changed = True
        return result if changed else value

    def _array(self, node: dict[str, Any], value: list[Any], mode: Mode) -> list[Any]:
        first = node.get("prefixItems", [])
        rest = node.get("items")
        result = [
            self._walk(first[index] if index < len(first) else rest, old, mode)
            for index, old in enumerate(value)
        ]
        return result if any(new is not old for new, old in zip(result, value, strict=True)) else value

    def _branch(self, node: dict[str, Any], value: Any, mode: Mode) -> dict[str, Any] | None:
        """Return a value's union branch; None if it is ambiguous."""
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
        if mode != "exact":
            tests.append(
                lambda branch: set(branch.get("required", ())) <= keys <= branch["properties"].keys()
            )
            tests.append(lambda branch: set(branch.get("required", ())) <= keys)
        return next((branch for test in tests for branch in consistent if test(branch)), None)

    def _is_consistent(self, branch: dict[str, Any], value: dict[str, Any]) -> bool:
        for name, inner in branch["properties"].items():
            listed = fixed_values(self._nodes.applying(inner)) if name in value else None
            if listed is None or any(is_json_equal(value[name], one) for one in listed):
                continue
            if value[name] is not None or not self._nodes.droppable(branch, name):
                return False
        return True


def restored(schema: Mapping[str, Any], value: Any) -> Any:
    """Convert a value of ``strict_schema(schema)`` to the form of ``schema``.

    A null is removed if the property may be absent but not null.
    """
    return Restorer(schema).exact(value)


def with_ints(value: Any) -> Any:
    """Return JSON data with floats such as 2.0 as ints."""
    try:
        return _with_ints(value)
    except RecursionError:
        return value


def _with_ints(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        items = {name: _with_ints(inner) for name, inner in value.items()}
        return items if any(items[name] is not value[name] for name in items) else value
    if isinstance(value, list):
        listed = [_with_ints(inner) for inner in value]
        return listed if any(new is not old for new, old in zip(listed, value, strict=True)) else value
    return value
