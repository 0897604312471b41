"""``AssistantItems``: joins assistant items in the original order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kantan_agents.models.protocol.json_data import plain
from kantan_agents.models.protocol.provider import Message
from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.openai_responses.items import segments_of_item
from kantan_agents.models.protocol.translate.openai_responses.provider_data import (
    calls_before,
    has_provider_data,
)
from kantan_agents.models.protocol.translate.openai_responses.tools import OWNER
from kantan_agents.models.protocol.translate.reader import with_extra
from kantan_agents.models.protocol.types import ContentSegment


class AssistantItems:
    """Collects the segments of successive items.

    ``keep_unknown``: ``extra`` stores fields that the protocol does not define, and items without a segment.
    """

    def __init__(self, losses: Losses, *, keep_unknown: bool) -> None:
        self._losses = losses
        self._keep_unknown = keep_unknown
        self._segments: list[ContentSegment] = []
        self._after_calls: list[tuple[int, ContentSegment]] = []
        self._calls = 0
        self._blocks: list[Any] = []

    def add(self, item: Mapping[str, Any], path: str) -> list[ContentSegment] | None:
        """Add an assistant's item; return its segments."""
        found = segments_of_item(item, path, self._losses, keep_unknown=self._keep_unknown)
        if found is None:
            return None
        if not found:
            if self._keep_unknown and not has_provider_data(item):
                self._blocks.append(plain(item))
            return found
        if self._blocks:
            found[0] = with_extra(found[0], OWNER, before=self._blocks)
            self._blocks = []
        if item.get("type") == "function_call":
            self._segments += found
            self._calls += 1
            self._release(self._calls)
        else:
            self._release(None)
            self._calls = 0
            self._after_calls = list(zip(calls_before(item, found), found, strict=True))
            self._release(0)
        return found

    def _release(self, calls: int | None) -> None:
        """Append held segments after this number of calls."""
        while self._after_calls and (calls is None or self._after_calls[0][0] <= calls):
            self._segments.append(self._after_calls.pop(0)[1])

    def take(self) -> tuple[list[ContentSegment], list[Any]]:
        """Return and clear segments and other items."""
        self._release(None)
        segments, blocks = self._segments, self._blocks
        self._segments, self._blocks, self._calls = [], [], 0
        if segments and blocks:
            segments[-1] = with_extra(segments[-1], OWNER, after=blocks)
            blocks = []
        return segments, blocks

    def message(self) -> list[Message]:
        """Return and clear the message, if any."""
        segments, blocks = self.take()
        extra = {OWNER: {"before": blocks}} if blocks else {}
        return [Message("assistant", segments, extra=extra)] if segments or blocks else []
