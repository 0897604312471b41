"""JSON Schema helpers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_MISSING = object()


def resolve(schema: Mapping[str, Any], reference: Any) -> Any:
    """Return the target of a ``$ref``, if it exists."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found: Any = schema
    for step in reference[1:].split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping):
            found = found.get(key, _MISSING)
        elif isinstance(found, (list, tuple)) and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        else:
            found = _MISSING
    return None if found is _MISSING else found


def find_cycle(schema: Mapping[str, Any]) -> str | None:
    """Return a recursive ``$ref``, if any."""
    edges = {
        reference: set(_references(resolve(schema, reference))) for reference in set(_references(schema))
    }
    done: set[str] = set()
    for start in sorted(edges):
        stack: list[tuple[str, Iterator[str]]] = [(start, iter(sorted(edges[start])))]
        on_stack = {start}
        while stack:
            reference, further = stack[-1]
            step = next(further, None)
            if step is None:
                stack.pop()
                on_stack.discard(reference)
                done.add(reference)
            elif step in on_stack:
                return step
            elif step not in done:
                on_stack.add(step)
                stack.append((step, iter(sorted(edges.get(step, ())))))
    return None


def describe_keywords(schema: dict[str, Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Move unsupported keywords to the description."""
    if not keywords:
        return schema
    listed = ", ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in keywords.items())
    given = schema.get("description")
    text = f"{given} ({listed})" if isinstance(given, str) and given else f"({listed})"
    return {**schema, "description": text}


def _references(schema: Any) -> Iterator[str]:
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, Mapping):
            if isinstance(part.get("$ref"), str):
                yield part["$ref"]
            pending += part.values()
        elif isinstance(part, (list, tuple)):
            pending += part
