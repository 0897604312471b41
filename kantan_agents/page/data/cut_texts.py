"""Truncated strings, and a pool for repeated content."""

from __future__ import annotations

import json
from typing import Any, Final

from kantan_agents.traces.capture.canonical import canonical

MOST: Final = 20_000
"""Characters that are sent to the page; the rest is loaded on demand."""


def cut(value: Any) -> dict[str, Any] | None:
    """Truncate a str, or JSON data as text; None for None."""
    if value is None:
        return None
    text = value if isinstance(value, str) else as_text(value)
    return {"text": text[:MOST], "length": len(text)}


def as_text(value: Any) -> str:
    """Indented."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


class Pool:
    """Content by number: messages of several model calls are sent once."""

    def __init__(self) -> None:
        self.contents: list[Any] = []
        self._known: dict[bytes, int] = {}

    def add(self, content: Any) -> int:
        """Return the content's number."""
        key = canonical(content)
        number = self._known.setdefault(key, len(self.contents))
        if number == len(self.contents):
            self.contents.append(content)
        return number
