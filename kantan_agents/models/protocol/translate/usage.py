"""Translates token counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.usage import is_count

Paths = Mapping[str, tuple[str, ...]]
"""Path of each count in a format's usage object."""


def read_usage(wire: Mapping[str, Any], paths: Paths) -> tuple[dict[str, int], dict[str, Any]]:
    """Return known counts, and other fields."""
    rest = _copy(wire)
    counts = {}
    for name, path in paths.items():
        parent = _parent(rest, path)
        if parent is not None and is_count(parent.get(path[-1])):
            counts[name] = parent.pop(path[-1])
    return counts, {name: value for name, value in rest.items() if value != {}}


def write_usage(
    counts: Mapping[str, int], rest: Any, paths: Paths, losses: Losses, path: str
) -> dict[str, Any]:
    """Return a format's usage object."""
    if not isinstance(rest, Mapping):
        losses.add(path, "must be an object")
        return {}
    wire = _copy(rest)
    for name, count in counts.items():
        steps = paths.get(name)
        if steps is None:
            losses.add(f"metadata.usage.{name}", "is a count that the format cannot hold")
        else:
            inner: Any = wire
            for step in steps[:-1]:
                inner = inner.setdefault(step, {}) if isinstance(inner, dict) else None
            if not isinstance(inner, dict) or steps[-1] in inner:
                losses.add(f"metadata.usage.{name}", "has another value in extra")
            else:
                inner[steps[-1]] = count
    return wire


def _parent(wire: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any] | None:
    inner: Any = wire
    for step in path[:-1]:
        inner = inner.get(step)
        if not isinstance(inner, dict):
            return None
    return inner if isinstance(inner, dict) else None


def _copy(wire: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _copy(value) if isinstance(value, Mapping) else value for name, value in wire.items()}
