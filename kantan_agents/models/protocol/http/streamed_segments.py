"""Segments of streams, with unknown blocks in ``extra``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kantan_agents.models.protocol.translate.reader import with_extra
from kantan_agents.models.protocol.types import ContentSegment


class StreamedSegments:
    """Creates the segments of a response as its blocks arrive.

    Consumers join text and use the last ``extra``, so each piece repeats earlier ``extra``.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._unknown_blocks: list[dict[str, Any]] = []
        self._pending: ContentSegment | None = None
        self._text_extra: dict[str, Any] | None = None

    def add_text(self, text: str, fields: Mapping[str, Any] | None = None) -> Iterator[ContentSegment]:
        """Yield a piece of text with unknown ``fields``."""
        yield from self._release()
        own = self._text_extra or {}
        if self._unknown_blocks:
            own = {**own, "before": [*own.get("before", []), *self._unknown_blocks]}
            self._unknown_blocks = []
        if fields:
            own = {**own, "fields": {**own.get("fields", {}), **fields}}
        has_changed = own != (self._text_extra or {})
        self._text_extra = own
        if text or has_changed:
            yield ContentSegment("text", text=text, extra={self._owner: own} if has_changed else {})

    def add_segment(self, segment: ContentSegment) -> Iterator[ContentSegment]:
        """Hold back a segment; yield the previous one."""
        yield from self._release()
        self._text_extra = None
        self._pending = with_extra(segment, self._owner, before=self._unknown_blocks)
        self._unknown_blocks = []

    def add_unknown(self, block: dict[str, Any]) -> None:
        """Store a block without a segment."""
        self._unknown_blocks.append(block)

    def end(self) -> Iterator[ContentSegment]:
        """Yield the last segment."""
        after, self._unknown_blocks = self._unknown_blocks, []
        if self._pending is not None:
            self._pending = with_extra(self._pending, self._owner, after=after)
            yield from self._release()
        elif after and self._text_extra is not None:
            yield ContentSegment("text", text="", extra={self._owner: {**self._text_extra, "after": after}})

    def _release(self) -> Iterator[ContentSegment]:
        pending, self._pending = self._pending, None
        if pending is not None:
            yield pending
