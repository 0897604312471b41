"""What places a span in its trace and in time: ids, times, types. It is no content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

PLACE = ("object", "id", "trace_id", "parent_id", "started_at", "ended_at")


def placement(exported: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of an exported span or trace places it."""
    return {name: exported.get(name) for name in PLACE}


def change_content(exported: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return an exported span or trace with ``change`` applied to everything but its placement."""
    changed = {name: value if name in PLACE else change(value) for name, value in exported.items()}
    data = exported.get("span_data")
    if isinstance(data, Mapping) and "type" in data:
        changed["span_data"]["type"] = data["type"]
    return changed
