"""Finds the ``unit`` of a run in its context."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from kantan_agents.errors import InvalidRolloutError

UnitSource = str | Callable[[Mapping[str, Any]], object]
"""A path of keys such as ``"user.id"``, or a function of the context."""


def checked_unit(unit: object) -> UnitSource:
    """Return a valid source; E110 otherwise."""
    if callable(unit):
        return unit
    if isinstance(unit, str) and all(key.strip() for key in unit.split(".")):
        return unit
    reason = f"must be a path in the context such as 'user.id', or a function of the context, not {unit!r}"
    raise InvalidRolloutError(option="unit", reason=reason)


def shown_unit(unit: UnitSource) -> str:
    """Return the source as a string."""
    return unit if isinstance(unit, str) else getattr(unit, "__qualname__", type(unit).__name__) + "()"


def unit_in(context: Any, unit: UnitSource) -> tuple[str | None, str]:
    """Return the ``unit`` of a run, or None and the reason. ``1`` and ``"1"`` are the same."""
    value: Any = context
    if not isinstance(unit, str):
        value = unit(context if isinstance(context, Mapping) else {})
    elif isinstance(value, Mapping) and unit in value:
        value = value[unit]
    else:
        for key in unit.split("."):
            if not isinstance(value, Mapping) or key not in value:
                return None, "is not in the context"
            value = value[key]
    if isinstance(value, str) and value:
        return value, ""
    if isinstance(value, (int, UUID)) and not isinstance(value, bool):
        return str(value), ""
    return None, "is empty" if value in (
        "",
        None,
    ) else f"is a {type(value).__name__}, not a str, an int or a UUID"
