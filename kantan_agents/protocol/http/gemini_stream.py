"""The events of a streamed answer of the Gemini API: each is a part of the answer in the form of a whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kantan_agents.protocol.http.api import UnreadableAnswerError
from kantan_agents.protocol.http.pieces import Pieces
from kantan_agents.protocol.translate.gemini import response_from_gemini
from kantan_agents.protocol.translate.gemini.parts import segment_of
from kantan_agents.protocol.translate.gemini.tools import OWNER
from kantan_agents.protocol.translate.reading import Reading
from kantan_agents.protocol.types import ContentSegment, ProviderResponse


class GeminiStream:
    """Puts an answer together from its events.

    Attributes:
        is_complete: Whether the API has said why the answer ends.
        pieces: The segments so far.
    """

    def __init__(self) -> None:
        self.is_complete = False
        self.pieces = Pieces(OWNER)
        self._body: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}

    def feed(self, event: Any) -> Iterator[ContentSegment]:
        """Yield what an event brings.

        Raises:
            UnreadableAnswerError: It is no such event.
        """
        if not isinstance(event, dict):
            raise UnreadableAnswerError("an event that is no object", str(event))
        self._body |= {name: value for name, value in event.items() if name != "candidates"}
        reading = Reading("event of the Gemini API", OWNER)
        candidates = reading.objects(reading.field(event, "candidates", list, "") or [], "candidates")
        path, candidate = candidates[0] if candidates else ("", {})
        content = reading.field(candidate, "content", dict, path) or {}
        parts = reading.objects(reading.field(content, "parts", list, path) or [], f"{path}content.parts")
        reading.check()
        self._candidate |= {name: value for name, value in candidate.items() if name != "content"}
        for where, part in parts:
            yield from self._part(part, where)
        feedback = event.get("promptFeedback")
        is_blocked = isinstance(feedback, dict) and "blockReason" in feedback
        self.is_complete = self.is_complete or is_blocked or bool(self._candidate.get("finishReason"))

    def _part(self, part: dict[str, Any], where: str) -> Iterator[ContentSegment]:
        reading = Reading("event of the Gemini API", OWNER)
        segment = segment_of(part, reading, where)
        reading.check()
        if segment is None or (part.get("text") == "" and segment.extra):
            self.pieces.unknown(part)
        elif segment.type == "text":
            yield from self.pieces.text(segment.text or "", segment.extra.get(OWNER, {}).get("fields"))
        else:
            yield from self.pieces.other(segment)

    def response(self) -> ProviderResponse:
        """Return what is known of the whole answer, without the segments."""
        return response_from_gemini({**self._body, "candidates": [self._candidate]})
