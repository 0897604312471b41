"""Masks secrets in everything that is recorded."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from kantan_llm.tracing.sanitize import sanitize_text

from kantan_agents.support.secrets import (
    MASK,
    is_named_secret,
    mask,
    name_of_value,
    names_in_list,
)

LIMIT_VARIABLE = "KANTAN_LLM_TRACING_MAX_CHARS"


def is_length_limited() -> bool:
    """Return whether kantan-llm currently limits the length of strings."""
    return bool(os.environ.get(LIMIT_VARIABLE))


def mask_text(text: str) -> str:
    """Mask secrets, and truncate to kantan-llm's limit, if any."""
    masked = mask(text)
    return sanitize_text(masked) if is_length_limited() else masked


def mask_data(data: Any, mask_value: Callable[[str], str] = mask_text, name: str = "") -> Any:
    """Mask secrets in JSON data: in values, in keys, and by their names."""
    if isinstance(data, str):
        return MASK if is_named_secret(name, data) else mask_value(data)
    if isinstance(data, dict):
        named = name_of_value(data)
        return {
            mask(key): mask_data(value, mask_value, named if named and key == "value" else key)
            for key, value in data.items()
        }
    if isinstance(data, list):
        names = names_in_list(data, name)
        return [mask_data(value, mask_value, named) for value, named in zip(data, names, strict=True)]
    is_number = isinstance(data, (int, float)) and not isinstance(data, bool)
    return MASK if is_number and is_named_secret(name, str(data)) else data
