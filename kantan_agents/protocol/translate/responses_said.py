"""What an assistant has said and called in a row of items, in its order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kantan_agents.protocol.json_data import plain
from kantan_agents.protocol.provider import Message
from kantan_agents.protocol.translate.carried import calls_before, is_ours
from kantan_agents.protocol.translate.reading import with_own
from kantan_agents.protocol.translate.responses_items import segments_of_item
from kantan_agents.protocol.translate.responses_parts import OWNER, Problems
from kantan_agents.protocol.types import ContentSegment


class Said:
    """The segments of items that follow one another.

    Args:
        problems: Where to note what cannot be read.
        keeps: Whether ``extra`` keeps what the protocol has no field for; items that are no segment are kept
            in that of the segment after them, or else of the one before.
    """

    def __init__(self, problems: Problems, *, keeps: bool) -> None:
        self._problems = problems
        self._keeps = keeps
        self._segments: list[ContentSegment] = []
        self._late: list[tuple[int, ContentSegment]] = []
        self._calls = 0
        self._blocks: list[Any] = []

    def add(self, item: Mapping[str, Any], path: str) -> list[ContentSegment] | None:
        """Take an item and return its segments; None if it is not one of an assistant's."""
        found = segments_of_item(item, path, self._problems, keeps=self._keeps)
        if found is None:
            return None
        if not found:
            if self._keeps and not is_ours(item):
                self._blocks.append(plain(item))
            return found
        if self._blocks:
            found[0] = with_own(found[0], OWNER, before=self._blocks)
            self._blocks = []
        if item.get("type") == "function_call":
            self._segments += found
            self._calls += 1
            self._place(self._calls)
        else:
            self._place(None)
            self._calls = 0
            self._late = list(zip(calls_before(item, found), found, strict=True))
            self._place(0)
        return found

    def _place(self, calls: int | None) -> None:
        """Put the segments that have waited for so many calls in their place; for None all of them."""
        while self._late and (calls is None or self._late[0][0] <= calls):
            self._segments.append(self._late.pop(0)[1])

    def take(self) -> tuple[list[ContentSegment], list[Any]]:
        """Return the segments so far, and the items that belong to none of them."""
        self._place(None)
        segments, blocks = self._segments, self._blocks
        self._segments, self._blocks, self._calls = [], [], 0
        if segments and blocks:
            segments[-1] = with_own(segments[-1], OWNER, after=blocks)
            blocks = []
        return segments, blocks

    def message(self) -> list[Message]:
        """Return the message of the items so far; none if there was nothing."""
        segments, blocks = self.take()
        extra = {OWNER: {"before": blocks}} if blocks else {}
        return [Message("assistant", segments, extra=extra)] if segments or blocks else []
