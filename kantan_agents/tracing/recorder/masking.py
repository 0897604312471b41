"""Masks secrets in everything that is recorded, at least those that kantan-llm masks and in the same form."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

from kantan_llm.tracing.sanitize import sanitize_text

from kantan_agents.support.secrets import (
    is_named_secret,
    may_contain_secret,
    name_of_value,
    names_in_list,
    scan,
)

LIMIT_VARIABLE = "KANTAN_LLM_TRACING_MAX_CHARS"

MASK = "***"

# What kantan-llm masks. Its function also truncates, which names and keys must not be. A word also begins
# after an escape sequence: in JSON inside a text, a line end is two characters, and the last is a letter.
_WORD = r"(?:\b|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4}))"
_OF_KANTAN_LLM = (
    (re.compile(rf"{_WORD}sk-[A-Za-z0-9_-]{{10,}}\b"), "sk-***"),
    (re.compile(rf"{_WORD}Bearer\s+[A-Za-z0-9._-]{{10,}}\b"), "Bearer ***"),
    (re.compile(rf"{_WORD}api_key\s*[:=]\s*([A-Za-z0-9._-]{{6,}})\b", re.IGNORECASE), "api_key=***"),
)


def is_length_limited() -> bool:
    """Return whether kantan-llm currently limits the length of texts."""
    return bool(os.environ.get(LIMIT_VARIABLE))


def mask_text(text: str) -> str:
    """Return ``text`` as it is recorded: secrets masked, truncated to kantan-llm's limit if there is one."""
    masked = mask_name(text)
    return sanitize_text(masked) if is_length_limited() else masked


def mask_name(text: str) -> str:
    """Return a name or key with secrets masked and without truncation, as it is used in searches."""
    if not may_contain_secret(text):
        return text
    for pattern, mask in _OF_KANTAN_LLM:
        text = pattern.sub(mask, text)
    place = 0
    parts: list[str] = []
    for secret in scan(text)[0]:
        parts += (text[place : secret.start], f"{secret.quote}{MASK}{secret.quote}")
        place = secret.end
    return "".join((*parts, text[place:])) if parts else text


def mask_text_if_needed(text: str) -> str:
    """Do the same as ``mask_text``, faster for the many texts that it would not change."""
    return mask_text(text) if is_length_limited() or may_contain_secret(text) else text


def mask_data(data: Any, mask: Callable[[str], str] = mask_text, name: str = "") -> Any:
    """Return JSON data with secrets masked: in each text by ``mask``, in keys, and by the name of a value."""
    if isinstance(data, str):
        return MASK if is_named_secret(name, data) else mask(data)
    if isinstance(data, dict):
        named = name_of_value(data)
        return {
            mask_name(key): mask_data(value, mask, named if named and key == "value" else key)
            for key, value in data.items()
        }
    if isinstance(data, list):
        names = names_in_list(data, name)
        return [mask_data(value, mask, named) for value, named in zip(data, names, strict=True)]
    is_number = isinstance(data, (int, float)) and not isinstance(data, bool)
    return MASK if is_number and is_named_secret(name, str(data)) else data
