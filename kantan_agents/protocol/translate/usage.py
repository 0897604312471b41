"""Token counts: the names of the formats, and the ones that stand in ``metadata["usage"]``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kantan_agents.protocol.translate.losses import Losses

Paths = Mapping[str, tuple[str, ...]]
"""Where a format has each count: our name, and the names that lead to it."""


def read_usage(wire: Mapping[str, Any], paths: Paths) -> tuple[dict[str, int], dict[str, Any]]:
    """Return the counts under our names, and what else the usage says."""
    rest = _copy(wire)
    counts = {}
    for name, path in paths.items():
        place = _place(rest, path)
        if place is not None and is_count(place.get(path[-1])):
            counts[name] = place.pop(path[-1])
    return counts, {name: value for name, value in rest.items() if value != {}}


def write_usage(
    counts: Mapping[str, int], rest: Any, paths: Paths, losses: Losses, path: str
) -> dict[str, Any]:
    """Return the usage of the format, of our counts and what else it says."""
    if not isinstance(rest, Mapping):
        losses.add(path, "must be an object")
        return {}
    wire = _copy(rest)
    for name, count in counts.items():
        way = paths.get(name)
        if way is None:
            losses.add(f"metadata.usage.{name}", "is a count the format has no place for")
        else:
            inner: Any = wire
            for step in way[:-1]:
                inner = inner.setdefault(step, {}) if isinstance(inner, dict) else None
            if not isinstance(inner, dict) or way[-1] in inner:
                losses.add(f"metadata.usage.{name}", "stands in extra as well, as something else")
            else:
                inner[way[-1]] = count
    return wire


def _place(wire: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any] | None:
    inner: Any = wire
    for step in path[:-1]:
        inner = inner.get(step)
        if not isinstance(inner, dict):
            return None
    return inner if isinstance(inner, dict) else None


def _copy(wire: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _copy(value) if isinstance(value, Mapping) else value for name, value in wire.items()}


def is_count(value: Any) -> bool:
    """Return whether a value is a number of tokens."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
