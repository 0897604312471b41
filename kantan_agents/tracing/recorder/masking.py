"""Secrets, masked as kantan-llm masks them, in any JSON data and not only in single texts."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

# The patterns are private: kantan-llm has no way to mask a text without cutting it.
from kantan_llm.tracing.sanitize import _RE_API_KEY, _RE_BEARER, _RE_SK, sanitize_text

LIMIT_VARIABLE = "KANTAN_LLM_TRACING_MAX_CHARS"

# Where case does not matter, regular expressions take these for an "i" or a "k".
_ODD_LETTERS = "\u0130\u0131\u212a"

# JSON in a text, such as the arguments of a tool, writes a line end as two characters and others as six. The
# last is a letter or digit, and kantan-llm's patterns find nothing that begins right behind one.
_ESCAPE = re.compile(r"(\\(?:[nrtbf]|u[0-9a-f]{4}))(?=sk-|Bearer|api_key)", re.IGNORECASE)


def is_suspicious(text: str) -> bool:
    """Tell whether kantan-llm might find a secret in ``text``; False is certain.

    Its patterns cost about as much for each character as writing the whole span does; this costs next to
    nothing.
    """
    if "sk-" in text or "Bearer" in text or "api_key" in text.lower():
        return True
    return not text.isascii() and any(letter in text for letter in _ODD_LETTERS)


def limit_from_environment() -> bool:
    """Tell whether kantan-llm limits the length of texts now."""
    return bool(os.environ.get(LIMIT_VARIABLE))


def mask_text(text: str) -> str:
    """Return ``text`` with secrets masked and, where there is a limit, cut, by kantan-llm itself."""
    return sanitize_text(_masked_behind_escapes(text, sanitize_text))


def mask_name(text: str) -> str:
    """Return ``text`` with secrets masked and uncut: something is looked up by it."""
    if not is_suspicious(text):
        return text
    return _mask_uncut(_masked_behind_escapes(text, _mask_uncut))


def _mask_uncut(text: str) -> str:
    masked = _RE_BEARER.sub("Bearer ***", _RE_SK.sub("sk-***", text))
    return _RE_API_KEY.sub("api_key=***", masked)


def _masked_behind_escapes(text: str, mask: Callable[[str], str]) -> str:
    """Return ``text`` with those secrets masked that stand right behind an escape."""
    # Split there, what follows begins a text of its own for a moment.
    parts = _ESCAPE.split(text) if "\\" in text else []
    return "".join(map(mask, parts)) if len(parts) > 1 else text


def mask_whole(text: str) -> str:
    """Return ``text`` with secrets masked and, where there is a limit, cut."""
    return mask_text(text) if limit_from_environment() or is_suspicious(text) else text


def mask_data(data: Any, mask: Callable[[str], str] = mask_text) -> Any:
    """Return JSON data with every text in it masked, and every key by ``mask_name``."""
    if isinstance(data, str):
        return mask(data)
    if isinstance(data, dict):
        return {mask_name(key): mask_data(value, mask) for key, value in data.items()}
    if isinstance(data, list):
        return [mask_data(value, mask) for value in data]
    return data
