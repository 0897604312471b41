"""Assembles Gemini's streamed responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kantan_agents.models.protocol.http.api import UnreadableAnswerError
from kantan_agents.models.protocol.http.streamed_segments import StreamedSegments
from kantan_agents.models.protocol.pieces import Piece, ReasoningPiece
from kantan_agents.models.protocol.translate.gemini import response_from_gemini
from kantan_agents.models.protocol.translate.gemini.parts import segment_of
from kantan_agents.models.protocol.translate.gemini.tools import OWNER
from kantan_agents.models.protocol.translate.reader import WireReader
from kantan_agents.models.protocol.types import ContentSegment, ProviderResponse


class GeminiStream:
    """Assembles one response from partial responses."""

    def __init__(self) -> None:
        self.is_complete = False
        self.segments = StreamedSegments(OWNER)
        self._body: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}

    def feed(self, event: Any) -> Iterator[ContentSegment | Piece]:
        """Yield an event's segments and pieces; raise UnreadableAnswerError."""
        if not isinstance(event, dict):
            raise UnreadableAnswerError("an event that is not an object", str(event))
        self._body |= {name: value for name, value in event.items() if name != "candidates"}
        reader = WireReader("event of the Gemini API", OWNER)
        candidates = reader.objects(reader.field(event, "candidates", list, "") or [], "candidates")
        path, candidate = candidates[0] if candidates else ("", {})
        content = reader.field(candidate, "content", dict, path) or {}
        parts = reader.objects(reader.field(content, "parts", list, path) or [], f"{path}content.parts")
        reader.check()
        self._candidate |= {name: value for name, value in candidate.items() if name != "content"}
        for where, part in parts:
            yield from self._part(part, where)
        feedback = event.get("promptFeedback")
        is_blocked = isinstance(feedback, dict) and "blockReason" in feedback
        self.is_complete = self.is_complete or is_blocked or bool(self._candidate.get("finishReason"))

    def _part(self, part: dict[str, Any], where: str) -> Iterator[ContentSegment | Piece]:
        reader = WireReader("event of the Gemini API", OWNER)
        segment = segment_of(part, reader, where)
        reader.check()
        if part.get("thought") and isinstance(part.get("text"), str):
            yield ReasoningPiece(part["text"])
        if segment is None or (part.get("text") == "" and segment.extra):
            self.segments.add_unknown(part)
        elif segment.type == "text":
            yield from self.segments.add_text(segment.text or "", segment.extra.get(OWNER, {}).get("fields"))
        else:
            yield from self.segments.add_segment(segment)

    def response(self) -> ProviderResponse:
        """Return metadata and extra fields."""
        return response_from_gemini({**self._body, "candidates": [self._candidate]})
