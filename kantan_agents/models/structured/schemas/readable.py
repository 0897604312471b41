"""Finds parts of an output type that no reply could fill."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_core import SchemaValidator, ValidationError, to_jsonable_python

# JSON keys are strings, from which pydantic reads none of these.
_NOT_FROM_TEXT = frozenset(
    {
        "arguments",
        "arguments-v3",
        "call",
        "dataclass",
        "dict",
        "frozenset",
        "generator",
        "list",
        "model",
        "model-fields",
        "named-tuple",
        "none",
        "set",
        "tuple",
        "typed-dict",
    }
)
_NOT_PARTS = ("metadata", "serialization", "default", "expected", "members")


def unreadable_parts(core_schema: Any) -> list[str]:
    """Return parts that JSON cannot fill."""
    found = []
    definitions = {one["ref"]: one for one in _nodes(core_schema) if isinstance(one.get("ref"), str)}
    for node in _nodes(core_schema):
        if node.get("type") == "generator":
            found.append(
                "a value of an Iterable or Generator can be read only once, and its items are validated too "
                "late; use list[...]"
            )
        elif node.get("type") == "dict" and not _is_read_from_text(node.get("keys_schema"), definitions):
            found.append(
                f"keys of a JSON object are text, from which no {_shown(node['keys_schema'])} can be read; "
                "use keys of another type, or a list of objects"
            )
    return [*dict.fromkeys(found)]


def _nodes(schema: Any) -> Iterator[Mapping[str, Any]]:
    left = [schema]
    while left:
        part = left.pop()
        if isinstance(part, Mapping):
            yield part
            left += [inner for name, inner in part.items() if name not in _NOT_PARTS]
        elif isinstance(part, (list, tuple)):
            left += part


def _is_read_from_text(key: Any, definitions: Mapping[str, Any]) -> bool:
    if not isinstance(key, Mapping):
        return True
    kind = key.get("type")
    if kind == "definition-ref":
        found = definitions.get(key["schema_ref"])
        return found is None or _is_read_from_text(found, definitions)
    if kind in ("union", "tagged-union"):
        choices = key["choices"].values() if isinstance(key["choices"], Mapping) else key["choices"]
        # A choice may be a pair with a label.
        return any(
            _is_read_from_text(choice[0] if isinstance(choice, tuple) else choice, definitions)
            for choice in choices
        )
    if kind in ("nullable", "default", "function-after", "custom-error"):
        return _is_read_from_text(key["schema"], definitions)
    if kind in ("literal", "enum"):
        values = key["expected"] if kind == "literal" else [one.value for one in key["members"]]
        return any(_reads(key, value) for value in values)
    return kind not in _NOT_FROM_TEXT


def _reads(key: Any, value: Any) -> bool:
    validator = SchemaValidator({"type": "dict", "keys_schema": key, "values_schema": {"type": "any"}})
    try:
        validator.validate_python(to_jsonable_python({value: 0}, fallback=str))
    except (ValidationError, TypeError, ValueError):
        return False
    return True


def _shown(key: Mapping[str, Any]) -> str:
    kind = getattr(key.get("cls"), "__name__", None) or str(key.get("type"))
    return f"key of the type {kind}"
