"""The names of values in data: keys, header names and options of commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from kantan_agents.support.secrets.names import is_secret_value, secret_name


def is_named_secret(name: str, value: str) -> bool:
    """Return whether the value with this name is a secret."""
    kind = secret_name(name) if name else None
    return kind is not None and is_secret_value(kind, value)


def name_of_value(data: Mapping[Any, Any]) -> str:
    """Return the name of the value in ``{"name": "x-api-key", "value": "..."}``, or an empty text."""
    name = data.get("name", data.get("key")) if "value" in data else None
    return name if isinstance(name, str) else ""


def names_in_list(items: Sequence[Any], name: str = "") -> list[str]:
    """Return the names of the items of a list.

    Options and headers such as ``["--api-key", "..."]`` and ``["authorization", "..."]`` name the next item.

    Args:
        items: The items.
        name: The name of the list.
    """
    names = [name] * len(items)
    for number, (option, value) in enumerate(pairwise(items), 1):
        if not isinstance(option, str) or not isinstance(value, str):
            continue
        # Two words in a list may also be two names.
        is_pair = option.startswith("-") or len(items) == 2  # noqa: PLR2004
        if is_pair and (any(map(str.isdigit, value)) or " " in value):
            names[number] = option
    return names
