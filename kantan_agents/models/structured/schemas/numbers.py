"""Numbers in JSON: an integer may be written with a zero fraction."""

from __future__ import annotations

from typing import Any


def with_ints(value: Any) -> Any:
    """Return JSON data with each float without a fraction as an int.

    Returns:
        The same value if it has no such float, or is nested so deeply that nothing else can read it either.
    """
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
