"""Assigns the parts of a streamed answer to its calls.

Some servers omit a call's index, or use one for all calls.
"""

from __future__ import annotations

import json
from typing import Any


class _BegunCall:
    def __init__(self, place: int) -> None:
        self.place = place
        self.id = ""
        self.name = ""
        self._arguments: list[str] = []

    def is_ended_by(self, part: Any) -> bool:
        """Return whether a part with the same index starts another call."""
        if part.id or not (part.function and part.function.name and part.function.arguments and self.name):
            return bool(part.id and self.id and part.id != self.id)
        try:
            json.loads("".join(self._arguments))
        except (ValueError, RecursionError):
            return False  # a server may repeat the name in every part
        return True

    def add(self, part: Any) -> None:
        self.id = part.id or self.id
        if part.function:
            self.name = part.function.name or self.name
            self._arguments.append(part.function.arguments or "")


class CallParts:
    """The calls of one answer that have started."""

    def __init__(self) -> None:
        self._by_index: dict[Any, _BegunCall] = {}
        self._used: set[int] = set()

    def place(self, part: Any) -> Any:
        """Return a part with its call's index."""
        begun = self._by_index.get(part.index)
        if begun is None or begun.is_ended_by(part):
            is_free = isinstance(part.index, int) and part.index not in self._used
            place = part.index if is_free else max(self._used, default=-1) + 1
            self._used.add(place)
            begun = self._by_index[part.index] = _BegunCall(place)
        begun.add(part)
        part.index = begun.place
        return part
