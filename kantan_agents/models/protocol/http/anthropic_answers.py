"""Assembles Anthropic's streamed and paused answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kantan_agents.models.protocol.http.api import UnreadableAnswerError
from kantan_agents.models.protocol.http.streamed_segments import StreamedSegments
from kantan_agents.models.protocol.pieces import ArgumentsPiece, Piece, ReasoningPiece
from kantan_agents.models.protocol.translate.anthropic import response_from_anthropic
from kantan_agents.models.protocol.translate.anthropic.blocks import segment_of
from kantan_agents.models.protocol.translate.anthropic.tools import OWNER
from kantan_agents.models.protocol.translate.openai_chat.calls import args_of
from kantan_agents.models.protocol.translate.reader import WireReader, unknown_fields
from kantan_agents.models.protocol.types import ContentSegment, ProviderResponse

_DELTA_FIELDS = {"thinking_delta": "thinking", "signature_delta": "signature"}
MAX_PAUSES: Final = 10
"""Maximum continuations of a turn, to limit its cost."""

_PAUSED: Final = "pause_turn"


class AnthropicStream:
    """Assembles one response from its events."""

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
        """The response so far, as if unstreamed."""
        return {**self._body, "content": self._content}

    def restart(self) -> None:
        """Expect a continuation."""
        self.is_complete = False
        self._body, self._content = {}, []

    def feed(self, event: Any) -> Iterator[ContentSegment | Piece]:
        """Yield an event's segments and pieces; raise UnreadableAnswerError."""
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
                # A null count has not changed.
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
        reader = WireReader("block of Anthropic's Messages API", OWNER)
        segment = segment_of(block, reader, "content_block.")
        reader.check()
        if segment is None:
            self.segments.add_unknown(block)
        else:
            yield from self.segments.add_segment(segment)

    def response(self, usage: dict[str, Any]) -> ProviderResponse:
        """Return metadata and extra fields; ``usage`` includes continued responses."""
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


class PausedTurn:
    """Joins the responses of one turn, which the API splits with the stop reason ``pause_turn``."""

    def __init__(self) -> None:
        self.pauses = 0
        self.content: list[Any] = []
        self.usage: dict[str, Any] = {}
        self._container: Any = None

    def add(self, answer: Any) -> bool:
        """Add a response; return whether it continues."""
        if not isinstance(answer, dict) or not isinstance(answer.get("content"), list):
            return False
        self.content += answer["content"]
        if isinstance(answer.get("usage"), dict):
            self.usage = _sum(self.usage, answer["usage"])
        container = answer.get("container")
        if isinstance(container, dict) and container.get("id"):
            self._container = container["id"]
        # The API accepts a call of the agent's own tool only with its result.
        is_paused = answer.get("stop_reason") == _PAUSED and not any(map(_is_call, answer["content"]))
        self.pauses += is_paused
        return is_paused

    @property
    def _sendable(self) -> list[Any]:
        # The API rejects blank text, although its models write it.
        return [block for block in self.content if not _is_blank(block)]

    @property
    def is_endless(self) -> bool:
        """Whether the turn cannot continue."""
        return self.pauses > MAX_PAUSES or not self._sendable

    def joined(self, answer: Any) -> Any:
        """Return the whole turn as one response."""
        if not self.pauses or not isinstance(answer, dict) or not isinstance(answer.get("content"), list):
            return answer
        return {**answer, "content": self.content, "usage": self.usage}

    def continued(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request that continues the turn."""
        said = {"role": "assistant", "content": self._sendable}
        more: dict[str, Any] = {"messages": [*body["messages"], said]}
        if self._container is not None:
            given = body.get("container")
            more["container"] = (
                {**given, "id": self._container} if isinstance(given, dict) else self._container
            )
        return {**body, **more}


def _is_call(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_use"


def _is_blank(block: Any) -> bool:
    return (
        isinstance(block, dict) and block.get("type") == "text" and not str(block.get("text") or "").strip()
    )


def _sum(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    added = dict(one)
    for name, value in other.items():
        before = one.get(name)
        if isinstance(value, dict):
            added[name] = _sum(before if isinstance(before, dict) else {}, value)
        elif _is_count(value) and _is_count(before):
            added[name] = before + value
        elif value is not None or name not in one:
            added[name] = value
    return added


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
