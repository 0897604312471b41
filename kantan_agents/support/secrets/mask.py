"""Masks secrets in text and URLs."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

from kantan_agents.support.secrets.names import MASK
from kantan_agents.support.secrets.scan import may_contain_secret, scan

# The patterns and masks of kantan-llm. A word also starts after an escape sequence: in JSON inside text, a
# line end is two characters, and the last is a letter.
_WORD = r"(?:\b|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4}))"
_OF_KANTAN_LLM = (
    (re.compile(rf"(?:{_WORD}|(?<=_))sk-[A-Za-z0-9_-]{{10,}}(?:\.[A-Za-z0-9_-]+)*\b"), "sk-***"),
    (re.compile(rf"{_WORD}Bearer\s+[A-Za-z0-9._-]{{10,}}\b"), "Bearer ***"),
    (re.compile(rf"{_WORD}api_key\s*[:=]\s*([A-Za-z0-9._-]{{6,}})\b", re.IGNORECASE), "api_key=***"),
)


def mask(text: str) -> str:
    """Mask at least the secrets that kantan-llm masks, in the same form."""
    if not may_contain_secret(text):
        return text
    for pattern, masked in _OF_KANTAN_LLM:
        text = pattern.sub(masked, text)
    place = 0
    parts: list[str] = []
    for secret in scan(text)[0]:
        parts += (text[place : secret.start], f"{secret.quote}{MASK}{secret.quote}")
        place = secret.end
    return "".join((*parts, text[place:])) if parts else text


def shown_url(url: object) -> str:
    """Remove user, password, query and fragment, and mask tokens in the path."""
    parts = urlsplit(str(url))
    return mask(urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")))
