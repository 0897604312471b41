"""``$ref`` in JSON Schema: what it refers to, and whether that comes back to itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_MISSING = object()


def target(schema: Mapping[str, Any], reference: Any) -> Any:
    """Return what a reference of this schema refers to; None if there is no such thing in it."""
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


def cycle(schema: Mapping[str, Any]) -> str | None:
    """Return a reference that leads back to itself, None if there is none."""
    leads = {reference: set(_references(target(schema, reference))) for reference in set(_references(schema))}
    done: set[str] = set()
    for start in sorted(leads):
        way: list[tuple[str, Iterator[str]]] = [(start, iter(sorted(leads[start])))]
        on_way = {start}
        while way:
            reference, further = way[-1]
            step = next(further, None)
            if step is None:
                way.pop()
                on_way.discard(reference)
                done.add(reference)
            elif step in on_way:
                return step
            elif step not in done:
                on_way.add(step)
                way.append((step, iter(sorted(leads.get(step, ())))))
    return None


def _references(schema: Any) -> Iterator[str]:
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            if isinstance(part.get("$ref"), str):
                yield part["$ref"]
            waiting += part.values()
        elif isinstance(part, (list, tuple)):
            waiting += part
