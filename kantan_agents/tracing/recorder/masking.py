"""Masks secrets as kantan-llm does, in any JSON data and not only in single texts."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

# Private patterns, as kantan-llm has no public function that masks a text without truncating it.
from kantan_llm.tracing.sanitize import _RE_API_KEY, _RE_BEARER, _RE_SK, sanitize_text

LIMIT_VARIABLE = "KANTAN_LLM_TRACING_MAX_CHARS"

# Case-insensitive regular expressions match these as an "i" or a "k".
_CASE_VARIANTS = "\u0130\u0131\u212a"

# JSON inside a text, such as the arguments of a tool, escapes a line end with two characters and others with
# six. The last of them is a letter or digit, and kantan-llm's patterns match nothing right after one.
_ESCAPE = re.compile(r"(\\(?:[nrtbf]|u[0-9a-f]{4}))(?=sk-|Bearer|api_key)", re.IGNORECASE)


def may_contain_secret(text: str) -> bool:
    """Return whether kantan-llm's patterns might match in ``text``; False is certain.

    Searching a text with the patterns costs about as much as writing the whole span. This check costs next
    to nothing.
    """
    if "sk-" in text or "Bearer" in text or "api_key" in text.lower():
        return True
    return not text.isascii() and any(letter in text for letter in _CASE_VARIANTS)


def is_length_limited() -> bool:
    """Return whether kantan-llm currently limits the length of texts."""
    return bool(os.environ.get(LIMIT_VARIABLE))


def mask_text(text: str) -> str:
    """Return ``text`` as kantan-llm records it: secrets masked, truncated to the limit if there is one."""
    return sanitize_text(_mask_after_escapes(text, sanitize_text))


def mask_name(text: str) -> str:
    """Return a name or key with secrets masked and without truncation, as it is used in searches."""
    if not may_contain_secret(text):
        return text
    return _mask_only(_mask_after_escapes(text, _mask_only))


def _mask_only(text: str) -> str:
    masked = _RE_BEARER.sub("Bearer ***", _RE_SK.sub("sk-***", text))
    return _RE_API_KEY.sub("api_key=***", masked)


def _mask_after_escapes(text: str, mask: Callable[[str], str]) -> str:
    """Return ``text`` with the secrets masked that directly follow an escape sequence."""
    # Split after the escapes, each part is a text that begins with the secret.
    parts = _ESCAPE.split(text) if "\\" in text else []
    return "".join(map(mask, parts)) if len(parts) > 1 else text


def mask_text_if_needed(text: str) -> str:
    """Do the same as ``mask_text``, faster for the many texts that it would not change."""
    return mask_text(text) if is_length_limited() or may_contain_secret(text) else text


def mask_data(data: Any, mask: Callable[[str], str] = mask_text) -> Any:
    """Return JSON data with ``mask`` applied to every text, and ``mask_name`` to every key."""
    if isinstance(data, str):
        return mask(data)
    if isinstance(data, dict):
        return {mask_name(key): mask_data(value, mask) for key, value in data.items()}
    if isinstance(data, list):
        return [mask_data(value, mask) for value in data]
    return data
