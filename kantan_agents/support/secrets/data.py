"""``named_secrets``: finds the values in data whose key, header name or option says that they are secret."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from kantan_agents.support.secrets.names import Kind, is_secret_value, secret_name


def change_named(data: Mapping[str, Any], change: Callable[[str], Any]) -> dict[str, Any]:
    """Return a mapping with ``change`` applied to the secret values.

    These are the values of secret names, also as a list (``{"x-api-key": ["..."]}``), and the values of
    headers and variables that are written as ``{"name": "x-api-key", "value": "..."}``.

    Args:
        data: The mapping.
        change: Takes a value as text, and returns its replacement.
    """
    changed = {
        key: _changed(kind, value, change)
        if isinstance(key, str) and (kind := secret_name(key)) is not None
        else value
        for key, value in data.items()
    }
    name = data.get("name", data.get("key"))
    if "value" in data and isinstance(name, str) and (kind := secret_name(name)) is not None:
        changed["value"] = _changed(kind, data["value"], change)
    return changed


def change_pairs(items: Sequence[Any], change: Callable[[str], Any]) -> list[Any]:
    """Return a list with ``change`` applied to the secret values of options and headers.

    These are ``["--api-key", "..."]`` and ``["authorization", "..."]``.
    """
    changed = list(items)
    for number, (name, value) in enumerate(pairwise(items), 1):
        if not isinstance(name, str) or not isinstance(value, str):
            continue
        is_pair = name.startswith("-") or len(items) == 2  # noqa: PLR2004
        kind = secret_name(name) if is_pair else None
        # Two words in a list may also be two names.
        if kind is not None and (any(map(str.isdigit, value)) or " " in value):
            changed[number] = _changed(kind, value, change)
    return changed


def _changed(kind: Kind, value: Any, change: Callable[[str], Any]) -> Any:
    if isinstance(value, (list, tuple)):
        return [_changed(kind, inner, change) for inner in value]
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        text = str(value)
        return change(text) if is_secret_value(kind, text) else value
    return value
