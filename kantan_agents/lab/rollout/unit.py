"""Finds the unit of a run, such as the user, in its context."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from kantan_agents.errors import InvalidRolloutError

UnitSource = str | Callable[[Mapping[str, Any]], object]
"""A path of keys such as ``"user.id"``, or a function of the context."""


def checked_unit(unit: object) -> UnitSource:
    """Return where units are found.

    Raises:
        InvalidRolloutError: E110, it is neither a path nor a function.
    """
    if callable(unit):
        return unit
    if isinstance(unit, str) and all(key.strip() for key in unit.split(".")):
        return unit
    reason = f"must be a path in the context such as 'user.id', or a function of the context, not {unit!r}"
    raise InvalidRolloutError(option="unit", reason=reason)


def shown_unit(unit: UnitSource) -> str:
    """Return where units are found, for people."""
    return unit if isinstance(unit, str) else getattr(unit, "__qualname__", type(unit).__name__) + "()"


def unit_in(context: Any, unit: UnitSource) -> tuple[str | None, str]:
    """Return the unit of a run, or None and the reason why there is none.

    A str, an int and a UUID count; ``1`` and ``"1"`` are the same unit.

    Args:
        context: The context of the run.
        unit: Where the unit is found.

    Raises:
        Exception: What the function raises.
    """
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
