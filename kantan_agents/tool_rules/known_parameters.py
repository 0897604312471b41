"""Finds misspelled parameters in rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kantan_agents.tool_rules.declared import Path, inner_schemas, is_key, listed, own_types, resolved


def declares(schema: Any, path: Path) -> bool:
    """Whether a tool may have a parameter: False if its schema lists others only.

    An object with ``additionalProperties`` may have any.
    """
    try:
        return _may_have(schema, schema, path, set())
    except RecursionError:
        return True


def _may_have(root: Any, schema: Any, path: Path, seen: set[tuple[int, Path]]) -> bool:
    if not isinstance(schema, Mapping):
        return schema is not False
    if not path:
        return True
    if (id(schema), path) in seen:
        return False
    seen.add((id(schema), path))
    others = _same_value(root, schema)
    return _has_itself(root, schema, path, seen, says_more=bool(others)) or any(
        _may_have(root, one, path, seen) for one in others
    )


def _has_itself(
    root: Any, schema: Mapping[str, Any], path: Path, seen: set[tuple[int, Path]], *, says_more: bool
) -> bool:
    step, rest = path[0], path[1:]
    own = own_types(schema)
    if own is not None and ("object" if is_key(step) else "array") not in own:
        return False
    inner = list(inner_schemas(schema, step))
    if inner:
        return any(_may_have(root, one, rest, seen) for one in inner)
    lists_others = is_key(step) and isinstance(schema.get("properties"), Mapping)
    return not lists_others and not says_more


def _same_value(root: Any, schema: Mapping[str, Any]) -> list[Any]:
    found = [one for keyword in ("allOf", "anyOf", "oneOf") for one in listed(schema.get(keyword))]
    found += [schema[keyword] for keyword in ("then", "else") if keyword in schema]
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target, is_known = resolved(root, reference)
        found.append(target if is_known else True)
    return found
