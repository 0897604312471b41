"""Recognizes what is not text: images and files, which must reach the model unchanged."""

from __future__ import annotations

import re

_DATA_URL = re.compile(
    r"data:(?:image|audio|video|application|font)/[\w.+-]{1,100}(?:;[\w.+-]{1,40}=[\w.+-]{1,80}){0,4};base64,"
)
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]+|[A-Za-z0-9_-]+)={0,2}")
_LINK = re.compile(r"(?:https?|gs|s3)://[^\s\"'<>\\]+", re.IGNORECASE)

_SHORTEST_FILE = 32


def is_data_url(text: str) -> bool:
    """Return whether the whole text is a data URL with well-formed base64."""
    begin = _DATA_URL.match(text) if text.startswith("data:") else None
    return begin is not None and _is_base64(text, begin.end())


def is_media(text: str) -> bool:
    """Return whether the value of a field for media is a data URL or the base64 of a file."""
    return is_data_url(text) or (len(text) >= _SHORTEST_FILE and _is_base64(text, 0))


def is_link(text: str) -> bool:
    """Return whether the value of a field for media is the address of a file that the provider fetches."""
    return _LINK.fullmatch(text) is not None


def _is_base64(text: str, start: int) -> bool:
    return (len(text) - start) % 4 == 0 and _BASE64.fullmatch(text, start) is not None
