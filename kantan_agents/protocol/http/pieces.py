"""The pieces of a streamed answer, with what the protocol has no segment for kept beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kantan_agents.protocol.translate.reading import with_own
from kantan_agents.protocol.types import ContentSegment


class Pieces:
    """Makes the segments of an answer as its blocks come in.

    Texts that follow one another are one text to whoever reads the stream, and the last ``extra`` of it is
    what counts: so each piece that adds something to it repeats what was there before.

    Args:
        owner: The API's name in ``extra``.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._waiting: list[dict[str, Any]] = []
        self._held: ContentSegment | None = None
        self._of_text: dict[str, Any] | None = None

    def text(self, text: str, fields: Mapping[str, Any] | None = None) -> Iterator[ContentSegment]:
        """Yield a piece of text.

        Args:
            text: The piece.
            fields: What else the API says of it.
        """
        yield from self._release()
        own = self._of_text or {}
        if self._waiting:
            own = {**own, "before": [*own.get("before", []), *self._waiting]}
            self._waiting = []
        if fields:
            own = {**own, "fields": {**own.get("fields", {}), **fields}}
        is_news = own != (self._of_text or {})
        self._of_text = own
        if text or is_news:
            yield ContentSegment("text", text=text, extra={self._owner: own} if is_news else {})

    def other(self, segment: ContentSegment) -> Iterator[ContentSegment]:
        """Yield what is ready before a segment that is no text; it comes itself when the next one does."""
        yield from self._release()
        self._of_text = None
        self._held = with_own(segment, self._owner, before=self._waiting)
        self._waiting = []

    def unknown(self, block: dict[str, Any]) -> None:
        """Keep a block the protocol has no segment for."""
        self._waiting.append(block)

    def end(self) -> Iterator[ContentSegment]:
        """Yield what is left."""
        after, self._waiting = self._waiting, []
        if self._held is not None:
            self._held = with_own(self._held, self._owner, after=after)
            yield from self._release()
        elif after and self._of_text is not None:
            yield ContentSegment("text", text="", extra={self._owner: {**self._of_text, "after": after}})

    def _release(self) -> Iterator[ContentSegment]:
        held, self._held = self._held, None
        if held is not None:
            yield held
