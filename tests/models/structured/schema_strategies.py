"""Hypothesis strategies for JSON Schemas and their values."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
from hypothesis import strategies as st

NAMES = st.sampled_from(["a", "b", "c", "kind", "items", "$ref"])
TEXTS = st.text(st.characters(codec="utf-8"), max_size=4)

SCALARS = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "minLength": 2, "description": "long"},
        {"type": "string", "pattern": "^[a-c]*$"},
        {"type": "integer"},
        {"type": "integer", "minimum": 3, "maximum": 9, "title": "N"},
        {"type": "boolean"},
        {"type": "null"},
        {"type": ["string", "null"]},
        {"enum": ["x", "y", 3]},
        {"type": "string", "enum": ["x", "y"]},
        {"const": "t"},
    ]
)
NODE = {"$ref": "#/$defs/node"}


@st.composite
def objects(draw: Any, inner: Any) -> dict[str, Any]:
    properties = draw(st.dictionaries(NAMES, inner, max_size=3))
    required = [name for name in properties if draw(st.booleans())]
    for name in properties:
        if name not in required and draw(st.booleans()):
            properties[name] = {**properties[name], "default": draw(st.sampled_from([None, "t", 5]))}
    # Without an optional branch, a recursive value would never end.
    required = [name for name in required if "$ref" not in properties[name]]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def tagged(inner: Any) -> st.SearchStrategy[dict[str, Any]]:
    def with_tag(pair: tuple[dict[str, Any], dict[str, Any]]) -> dict[str, Any]:
        return {
            "oneOf": [
                {
                    **branch,
                    "properties": {"tag": {"const": tag}, **branch["properties"]},
                    "required": ["tag", *branch["required"]],
                }
                for tag, branch in zip("mn", pair, strict=True)
            ]
        }

    return st.tuples(objects(inner), objects(inner)).map(with_tag)


def nodes() -> st.SearchStrategy[dict[str, Any]]:
    return st.recursive(
        SCALARS | st.just(NODE),
        lambda inner: (
            objects(inner)
            | tagged(inner)
            | inner.map(lambda one: {"type": "array", "items": one, "maxItems": 3})
            | st.tuples(inner, inner).map(lambda two: {"anyOf": list(two)})
            | inner.map(lambda one: {"allOf": [one], "description": "of one"})
        ),
        max_leaves=6,
    )


@st.composite
def schemas(draw: Any) -> dict[str, Any]:
    """Draw a schema whose root is an object, with a recursive definition."""
    node = draw(objects(SCALARS | st.just(NODE) | st.just({"anyOf": [NODE, {"type": "null"}]})))
    return {**draw(objects(nodes())), "$defs": {"node": node}}


@st.composite
def values(draw: Any, root: dict[str, Any], schema: dict[str, Any] | None = None, depth: int = 0) -> Any:
    """Draw a value of a drawn schema, or of its strict form."""
    node = root if schema is None else schema
    while "allOf" in node:
        node = node["allOf"][0]
    if "$ref" in node:
        return draw(values(root, root["$defs"]["node"], depth + 1))
    for union in ("anyOf", "oneOf"):
        if union in node:
            branches = [one for one in node[union] if depth < 3 or one.get("type") == "null"] or node[union]
            return draw(values(root, draw(st.sampled_from(branches)), depth))
    if "const" in node or "enum" in node:
        return draw(st.sampled_from(node.get("enum", [node.get("const")])))
    kind = draw(st.sampled_from(node["type"])) if isinstance(node["type"], list) else node["type"]
    if kind == "object":
        names = [
            name
            for name in node["properties"]
            if name in node["required"] or (depth < 3 and draw(st.booleans()))
        ]
        return {name: draw(values(root, node["properties"][name], depth + 1)) for name in names}
    if kind == "array":
        most = node.get("maxItems", 3) if depth < 3 else 0
        return [draw(values(root, node["items"], depth + 1)) for _ in range(draw(st.integers(0, most)))]
    if kind == "integer":
        return draw(st.integers(node.get("minimum", -9), node.get("maximum", 9)))
    if kind == "string":
        return draw(st.text("abc", min_size=2, max_size=4) if len(node) > 1 else TEXTS)
    return None if kind == "null" else draw(st.booleans())


def fits(root: dict[str, Any], schema: Any, value: Any) -> bool:
    return bool(jsonschema_rs.is_valid({**schema, "$defs": root.get("$defs", {})}, value))


def on_wire(root: dict[str, Any], value: Any, schema: dict[str, Any] | None = None) -> Any:
    """Return a value in strict form: absent properties become null, or their only possible value."""
    node = root if schema is None else schema
    while "allOf" in node:
        node = node["allOf"][0]
    if "$ref" in node:
        return on_wire(root, value, root["$defs"]["node"])
    for union in ("anyOf", "oneOf"):
        if union in node:
            branch = next(one for one in node[union] if fits(root, one, value))
            return on_wire(root, value, branch)
    if isinstance(value, list):
        return [on_wire(root, item, node["items"]) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: on_wire(root, value[name], inner) if name in value else _absent(inner)
        for name, inner in node["properties"].items()
    }


def _absent(schema: dict[str, Any]) -> Any:
    one = schema.get("const")
    return one if one is not None and one == schema.get("default") else None
