"""``AnthropicStream``: assembles a response from the stream events of Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kantan_agents.models.protocol.http.api import UnreadableAnswerError
from kantan_agents.models.protocol.http.streamed_segments import StreamedSegments
from kantan_agents.models.protocol.pieces import ArgumentsPiece, Piece, ReasoningPiece
from kantan_agents.models.protocol.translate.anthropic import response_from_anthropic
from kantan_agents.models.protocol.translate.anthropic.blocks import segment_of
from kantan_agents.models.protocol.translate.anthropic.tools import OWNER
from kantan_agents.models.protocol.translate.openai_chat.calls import args_of
from kantan_agents.models.protocol.translate.reader import Reader, unknown_fields
from kantan_agents.models.protocol.types import ContentSegment, ProviderResponse

_DELTA_FIELDS = {"thinking_delta": "thinking", "signature_delta": "signature"}


class AnthropicStream:
    """Assembles one response from its events.

    Attributes:
        is_complete: Whether the last event has arrived.
        segments: Turns content blocks into segments.
    """

    def __init__(self) -> None:
        self.is_complete = False
        self.segments = StreamedSegments(OWNER)
        self._body: dict[str, Any] = {}
        self._block: dict[str, Any] = {}
        self._json: list[str] = []
        self._texts: list[str] = []
        self._content: list[Any] = []

    @property
    def answer(self) -> dict[str, Any]:
        """The response that has arrived, as the API returns it without streaming."""
        return {**self._body, "content": self._content}

    def restart(self) -> None:
        """Expect another response, which continues this one."""
        self.is_complete = False
        self._body, self._content = {}, []

    def feed(self, event: Any) -> Iterator[ContentSegment | Piece]:
        """Yield the segments that an event completes, and the pieces in it.

        Raises:
            UnreadableAnswerError: It is not a valid event.
        """
        kind = _text(event, "type")
        if kind == "message_start":
            self._body = dict(_object(event, "message"))
        elif kind == "content_block_start":
            self._block, self._json, self._texts = dict(_object(event, "content_block")), [], []
            if self._block.get("type") == "text":
                yield from self._add_text(self._block)
        elif kind == "content_block_delta":
            yield from self._delta(_object(event, "delta"))
        elif kind == "content_block_stop":
            yield from self._stop()
        elif kind == "message_delta":
            self._body |= _object(event, "delta")
            usage = event.get("usage")
            if isinstance(usage, dict):
                # A count that is null has not changed.
                changed = {name: count for name, count in usage.items() if count is not None}
                self._body["usage"] = {**(self._body.get("usage") or {}), **changed}
        elif kind == "message_stop":
            self.is_complete = True

    def _delta(self, delta: dict[str, Any]) -> Iterator[ContentSegment | Piece]:
        kind = delta.get("type")
        if kind == "text_delta":
            yield from self._add_text(delta)
        elif kind == "input_json_delta":
            text = _text(delta, "partial_json")
            self._json.append(text)
            call_id, name = self._block.get("id"), self._block.get("name")
            if self._block.get("type") == "tool_use" and isinstance(call_id, str) and isinstance(name, str):
                yield ArgumentsPiece(call_id, name, text)
        elif kind == "citations_delta":
            self._block["citations"] = [*(self._block.get("citations") or []), delta.get("citation")]
        elif kind in _DELTA_FIELDS:
            name = _DELTA_FIELDS[kind]
            self._block[name] = str(self._block.get(name) or "") + _text(delta, name)
            if name == "thinking":
                yield ReasoningPiece(_text(delta, name))

    def _add_text(self, data: dict[str, Any]) -> Iterator[ContentSegment]:
        text = _text(data, "text")
        self._texts.append(text)
        yield from self.segments.add_text(text)

    def _stop(self) -> Iterator[ContentSegment]:
        block, self._block = self._block, {}
        kind = block.get("type")
        if kind == "text":
            self._content.append({**block, "text": "".join(self._texts)})
            fields = {
                name: value
                for name, value in unknown_fields(block, "type", "text").items()
                if value is not None
            }
            yield from self.segments.add_text("", fields)
            return
        if self._json:
            block["input"] = args_of("".join(self._json))
        self._content.append(block)
        reader = Reader("block of Anthropic's Messages API", OWNER)
        segment = segment_of(block, reader, "content_block.")
        reader.check()
        if segment is None:
            self.segments.add_unknown(block)
        else:
            yield from self.segments.add_segment(segment)

    def response(self, usage: dict[str, Any]) -> ProviderResponse:
        """Return the metadata and extra fields of the response, without its segments.

        Args:
            usage: The token counts of the response, and of those that it continues.
        """
        return response_from_anthropic({"type": "message", **self._body, "usage": usage, "content": []})


def _object(event: Any, name: str) -> dict[str, Any]:
    found = event.get(name) if isinstance(event, dict) else None
    if not isinstance(found, dict):
        raise UnreadableAnswerError(f"an event without {name}", str(event))
    return found


def _text(event: Any, name: str) -> str:
    found = event.get(name) if isinstance(event, dict) else None
    if not isinstance(found, str):
        raise UnreadableAnswerError(f"an event without {name}", str(event))
    return found
