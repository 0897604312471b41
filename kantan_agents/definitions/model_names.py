"""Models as agent files name them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

MODELS: Mapping[str, Any] = MappingProxyType(
    {
        "inherit": None,
        "sonnet": "claude-sonnet-4-5",
        "opus": "claude-opus-4-5",
        "haiku": "claude-haiku-4-5",
        "claude-sonnet": "claude-sonnet-4-5",
        "claude-opus": "claude-opus-4-5",
        "claude-haiku": "claude-haiku-4-5",
        # Kode's pointers to whatever its user has set.
        "main": None,
        "task": None,
        "reasoning": None,
        "quick": None,
    }
)
"""Short names in files, and the models they stand for; None is the model that is used without one."""


def model_of(name: str | None, models: Mapping[str, Any] | None = None) -> Any:
    """Return the model a file asks for: a name, what ``models`` has for it, or None for the default.

    Args:
        name: The file's ``model``.
        models: The user's own short names; they win over ``MODELS``, and may be in any case.
    """
    if name is None or not name.strip():
        return None
    wanted = name.strip()
    for known in (models or {}, MODELS):
        if wanted in known:
            return known[wanted]
        folded = {key.casefold(): value for key, value in known.items()}
        if wanted.casefold() in folded:
            return folded[wanted.casefold()]
    return wanted
