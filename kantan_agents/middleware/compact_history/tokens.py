"""Estimates of tokens that a provider has not counted yet.

A tokenizer is exact for one model only, and the provider's count replaces the estimate after the first
answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kantan_agents.traces.capture.canonical import canonical

IMAGE = 1_000
"""For any size: providers scale images down, and count from 85 to about 1,600."""

FILE = 5_000
"""For a file, whose text only the provider reads."""

_ITEM = 4  # the role and type that a provider adds around each item
_MEDIA = {"image_url": IMAGE, "file_data": FILE, "file_url": FILE}
_UNCOUNTED = frozenset({"type", "role", "id", "call_id", "status", "detail"})
_DENSE = bytes(code for code in range(128) if not (chr(code).isalpha() or chr(code).isspace()))
_TWO, _THREE, _FOUR = (bytes(range(*leads)) for leads in ((0xC0, 0xE0), (0xE0, 0xF0), (0xF0, 0x100)))
_ENCRYPTED = 6  # characters of encrypted reasoning for a token
_GENERATED = "image_generation_call"


def tokens_of_text(text: str) -> int:
    """Estimate tokens by bytes.

    A token is 4 letters or spaces, or 2 digits or punctuation characters. A character of 3 bytes in UTF-8
    (Chinese, Japanese, Korean, Hindi, Thai) is a token, of 2 bytes (Greek, Cyrillic, Arabic, accents) half a
    token, of 4 bytes (emoji) 2 tokens.
    """
    data = text.encode("utf-8", "surrogatepass")
    size = len(data)
    eighths = 0
    if size != len(text):
        two, three, four = (size - len(data.translate(None, leads)) for leads in (_TWO, _THREE, _FOUR))
        eighths = 4 * two + 8 * three + 16 * four
        size -= 2 * two + 3 * three + 4 * four
    dense = len(data) - len(data.translate(None, _DENSE))
    eighths += 4 * dense + 2 * (size - dense)
    return -(-eighths // 8)


def tokens_of_item(item: Any) -> int:
    """Estimate the tokens of an item."""
    if isinstance(item, Mapping) and item.get("type") == _GENERATED:
        return _ITEM + IMAGE
    return _ITEM + _tokens_of(item)


def tokens_of_tool(tool: Any) -> int:
    """Estimate the tokens of a tool's or handoff's description."""
    texts = [getattr(tool, name, None) for name in ("name", "description", "tool_name", "tool_description")]
    schema = getattr(tool, "params_json_schema", None) or getattr(tool, "input_json_schema", None)
    if isinstance(schema, Mapping):
        texts.append(canonical(schema).decode())
    return 2 * _ITEM + sum(tokens_of_text(text) for text in texts if isinstance(text, str))


def _tokens_of(value: Any) -> int:
    if isinstance(value, str):
        return tokens_of_text(value)
    if isinstance(value, Mapping):
        return sum(_tokens_of_field(name, field) for name, field in value.items())
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return sum(map(_tokens_of, value))
    if value is None or isinstance(value, bool):
        return 0
    return 1 if isinstance(value, (int, float)) else tokens_of_text(str(value))


def _tokens_of_field(name: Any, value: Any) -> int:
    if name in _UNCOUNTED or value is None:
        return 0
    if name in _MEDIA and value:
        return _MEDIA[name]
    if name == "encrypted_content" and isinstance(value, str):
        return len(value) // _ENCRYPTED
    return _tokens_of(value)
