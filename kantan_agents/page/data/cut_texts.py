"""Texts that are cut, and contents that a run has many times and the page once."""

from __future__ import annotations

import json
from typing import Any, Final

from kantan_agents.traces.capture.canonical import canonical

MOST: Final = 20_000
"""So many characters of a text are sent to the page; the whole text is on demand."""


def cut(value: Any) -> dict[str, Any] | None:
    """Return a text with its length, or JSON data as such a text; None for None."""
    if value is None:
        return None
    text = value if isinstance(value, str) else as_text(value)
    return {"text": text[:MOST], "length": len(text)}


def as_text(value: Any) -> str:
    """Return JSON data as indented text."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


class Pool:
    """Contents by number. A conversation is in each of its model calls, and its messages are sent once."""

    def __init__(self) -> None:
        self.contents: list[Any] = []
        self._known: dict[bytes, int] = {}

    def add(self, content: Any) -> int:
        """Return the number of a content."""
        key = canonical(content)
        number = self._known.setdefault(key, len(self.contents))
        if number == len(self.contents):
            self.contents.append(content)
        return number
