"""Masks the secrets in JSON data, as a recorder does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kantan_agents.support.secrets import mask


def masked(value: Any) -> Any:
    """Return a copy of JSON data with the secrets in its texts masked."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {mask(str(key)): masked(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [masked(inner) for inner in value]
    return value
