"""A strategy for a schema's values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import jsonschema_rs
from hypothesis import strategies as st

from kantan_agents.testing.strategies.json_values import WORDS, json_values
from kantan_agents.testing.strategies.near_rules import matching_texts

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[T]], T]
Schema = Mapping[str, Any] | bool

_DEEP = 3  # from here on, optional parts are omitted, so that recursive values end
_MORE = 3  # elements beyond the required ones
_TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
_FORMATS: Mapping[str, st.SearchStrategy[str]] = {
    "date": st.dates().map(str),
    "date-time": st.datetimes().map(lambda moment: f"{moment.isoformat()}Z"),
    "time": st.times().map(lambda moment: f"{moment.isoformat()}Z"),
    "duration": st.integers(0, 99).map("P{}D".format),
    "email": WORDS.map("{}@example.com".format),
    "ipv4": st.ip_addresses(v=4).map(str),
    "ipv6": st.ip_addresses(v=6).map(str),
    "uri": WORDS.map("https://example.com/{}".format),
    "uuid": st.uuids().map(str),
}


def valid_values(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Generate values that a schema accepts.

    Keywords such as ``if`` or ``not`` only filter.
    """
    is_valid = validity(schema)
    return _values(schema).filter(is_valid)


def validity(schema: Mapping[str, Any]) -> Callable[[Any], bool]:
    """Return a validator."""
    validator: Any = jsonschema_rs.validator_for(dict(schema))
    check: Callable[[Any], bool] = validator.is_valid
    return check


@st.composite
def _values(draw: st.DrawFn, schema: Mapping[str, Any]) -> Any:
    return _Reader(schema, draw).value(schema, 0)


class _Reader:
    def __init__(self, root: Mapping[str, Any], draw: st.DrawFn) -> None:
        self._root = root
        self._draw: Any = draw

    def value(self, schema: Schema, depth: int) -> Any:
        node = self._resolved(schema, depth)
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return self._draw(st.sampled_from(node["enum"]))
        kind = node.get("type", _implied_type(node))
        if isinstance(kind, list):
            kind = self._draw(st.sampled_from(kind))
        match kind:
            case "object":
                return self._object(node, depth)
            case "array":
                return self._array(node, depth)
            case "string":
                return self._draw(_texts(node))
            case "integer" | "number":
                return self._draw(_numbers(node, whole=kind == "integer"))
            case "boolean":
                return self._draw(st.booleans())
            case "null":
                return None
        return self._draw(json_values(max_leaves=3))

    def _resolved(self, schema: Schema, depth: int) -> Mapping[str, Any]:
        node: Mapping[str, Any] = {} if isinstance(schema, bool) else schema
        while True:
            if "$ref" in node:
                others = {key: value for key, value in node.items() if key != "$ref"}
                node = _merged(_target(self._root, node["$ref"]), others)
                continue
            union = next((key for key in ("anyOf", "oneOf") if key in node), None)
            if union is not None:
                branch = self._branch(node[union], depth)
                node = _merged({key: value for key, value in node.items() if key != union}, branch)
                continue
            if "allOf" not in node:
                return node
            parts = node["allOf"]
            node = {key: value for key, value in node.items() if key != "allOf"}
            for part in parts:
                node = _merged(node, part if isinstance(part, Mapping) else {})

    def _branch(self, branches: list[Any], depth: int) -> Mapping[str, Any]:
        simple = [branch for branch in branches if depth < _DEEP or _is_simple(branch)]
        branch = self._draw(st.sampled_from(simple or branches))
        return branch if isinstance(branch, Mapping) else {}

    def _object(self, node: Mapping[str, Any], depth: int) -> dict[str, Any]:
        properties: Mapping[str, Any] = node.get("properties", {})
        required = node.get("required", ())
        value = {
            name: self.value(inner, depth + 1)
            for name, inner in properties.items()
            if name in required or (depth < _DEEP and self._draw(st.booleans()))
        }
        more = node.get("additionalProperties", not properties)
        least = max(node.get("minProperties", 0) - len(value), 0)
        most = min(node.get("maxProperties", math.inf) - len(value), least + (_MORE if depth < _DEEP else 0))
        if more is not False and most > 0:
            names = self._draw(st.lists(WORDS, min_size=least, max_size=int(most), unique=True))
            value |= {name: self.value(more, depth + 1) for name in names if name not in properties}
        return value

    def _array(self, node: Mapping[str, Any], depth: int) -> list[Any]:
        first = node.get("prefixItems", ())
        least = max(node.get("minItems", 0), len(first))
        most = min(node.get("maxItems", math.inf), least + (_MORE if depth < _DEEP else 0))
        rest = node.get("items", True)
        count = self._draw(st.integers(least, max(least, int(most)))) if rest is not False else len(first)
        parts = [first[index] if index < len(first) else rest for index in range(count)]
        values = [self.value(part, depth + 1) for part in parts]
        return _unique(values) if node.get("uniqueItems") else values


def _target(root: Mapping[str, Any], reference: str) -> Mapping[str, Any]:
    found: Any = root
    for step in reference.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = found[int(name)] if isinstance(found, list) else found[name]
    return found if isinstance(found, Mapping) else {}


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**first, **second}
    if "properties" in first and "properties" in second:
        merged["properties"] = {**first["properties"], **second["properties"]}
    if "required" in first and "required" in second:
        merged["required"] = [*first["required"], *second["required"]]
    return merged


def _implied_type(node: Mapping[str, Any]) -> str | None:
    if "properties" in node or "additionalProperties" in node:
        return "object"
    return "array" if "items" in node or "prefixItems" in node else None


def _is_simple(branch: Any) -> bool:
    return (
        isinstance(branch, Mapping) and "$ref" not in branch and branch.get("type") not in ("object", "array")
    )


def _texts(node: Mapping[str, Any]) -> st.SearchStrategy[str]:
    least, most = node.get("minLength", 0), node.get("maxLength")
    matching = matching_texts(node.get("pattern"))
    if matching is None:
        matching = _FORMATS.get(node.get("format", ""))
    if matching is not None:
        return matching.filter(lambda text: least <= len(text) <= (math.inf if most is None else most))
    upper = least + 20 if most is None else min(most, least + 20)
    return st.text(st.characters(codec="utf-8"), min_size=least, max_size=upper) if least or most else _TEXTS


def _numbers(node: Mapping[str, Any], *, whole: bool) -> st.SearchStrategy[Any]:
    low, high = (
        _bound(node, "minimum", "exclusiveMinimum", max),
        _bound(node, "maximum", "exclusiveMaximum", min),
    )
    step = node.get("multipleOf")
    if step is not None and (not whole or step == int(step)):
        start = None if low is None else math.ceil(low / step)
        end = None if high is None else math.floor(high / step)
        return st.integers(start, end).map(lambda count: count * step)
    if whole:
        return st.integers(
            None if low is None else math.ceil(low), None if high is None else math.floor(high)
        )
    return st.floats(low, high, allow_nan=False, allow_infinity=False)


def _bound(
    node: Mapping[str, Any], included: str, excluded: str, stricter: Callable[..., Any]
) -> float | int | None:
    given = [node[name] for name in (included, excluded) if name in node]
    return stricter(given) if given else None


def _unique(values: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for value in values:
        if value not in kept:
            kept.append(value)
    return kept
