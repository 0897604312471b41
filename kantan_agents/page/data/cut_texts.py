"""Truncated and repeated strings."""

from __future__ import annotations

import json
from typing import Any, Final

from kantan_agents.traces.capture.canonical import canonical

MOST: Final = 20_000
"""In characters; the rest is loaded on demand."""


def cut(value: Any) -> dict[str, Any] | None:
    """JSON data becomes text."""
    if value is None:
        return None
    text = value if isinstance(value, str) else as_text(value)
    return {"text": text[:MOST], "length": len(text)}


def as_text(value: Any) -> str:
    """Indented."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


class Pool:
    """Messages of several model calls are sent once."""

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
