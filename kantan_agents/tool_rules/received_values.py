"""Finds received values that a rule cannot check."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from kantan_agents.tool_rules.declared import ITEMS, NULL, NUMBERS, Types, type_of

UNREADABLE: Final = "value that rules cannot read"
"""The only key of the object for such a value. It survives a recording."""

_CHECKED_TYPES: tuple[tuple[frozenset[str], Types], ...] = (
    (frozenset({"minimum", "maximum"}), NUMBERS),
    (frozenset({"minLength", "maxLength", "pattern"}), frozenset({"string"})),
)
"""Keywords ignore values of other types."""


def checked_types(keywords: Mapping[str, Any]) -> Types | None:
    """Includes null; None for all."""
    return next((kinds | NULL for known, kinds in _CHECKED_TYPES if known & keywords.keys()), None)


def first_unchecked(
    steps: tuple[str, ...], keywords: Mapping[str, Any], value: Any, written: Any
) -> Types | None:
    """Return the types that a rule can check where the function receives another type first.

    A number that the model wrote as a string has been checked as that string, and vice versa. ValueError if a
    value cannot be read.
    """
    if isinstance(value, dict) and UNREADABLE in value:
        raise ValueError(f"it receives a value of type {value[UNREADABLE]}, which rules cannot read")
    if not steps:
        types = None if "type" in keywords else checked_types(keywords)
        is_checked = types is None or type_of(value) in types or _is_same_number(value, written)
        return None if is_checked else types
    step, rest = steps[0], steps[1:]
    if isinstance(value, list) and step == ITEMS:
        places = written if isinstance(written, list) else []
        inner = [(item, places[at] if at < len(places) else None) for at, item in enumerate(value)]
    elif isinstance(value, dict) and step in value:
        inner = [(value[step], written.get(step) if isinstance(written, dict) else None)]
    elif value is None or isinstance(value, (dict, list)) or isinstance(written, (dict, list)):
        return None
    else:
        return frozenset({"array" if step == ITEMS else "object", "null"})
    found = (first_unchecked(rest, keywords, item, one) for item, one in inner)
    return next((types for types in found if types is not None), None)


def _is_same_number(value: Any, written: Any) -> bool:
    pair = (value, written) if isinstance(value, str) else (written, value)
    if not isinstance(pair[0], str) or type_of(pair[1]) not in NUMBERS:
        return False
    try:
        return Decimal(pair[0]) == Decimal(pair[1])
    except InvalidOperation:
        return False
