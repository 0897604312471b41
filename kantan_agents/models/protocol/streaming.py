"""``EventWriter``: Responses API events from segments."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import attrs
from agents import Usage
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseContentPartAddedEvent,
    ResponseContentPartDoneEvent,
    ResponseCreatedEvent,
    ResponseFunctionCallArgumentsDeltaEvent,
    ResponseFunctionCallArgumentsDoneEvent,
    ResponseOutputItemAddedEvent,
    ResponseOutputItemDoneEvent,
    ResponseOutputText,
    ResponseReasoningTextDeltaEvent,
    ResponseTextDeltaEvent,
    ResponseTextDoneEvent,
)

from kantan_agents.models.protocol.pieces import ArgumentsPiece, Piece, ReasoningPiece
from kantan_agents.models.protocol.responses import Item, response_usage, sdk_item
from kantan_agents.models.protocol.translate.openai_responses.items import NO_ID, call_item, message_item
from kantan_agents.models.protocol.types import ContentSegment, ProviderToolCall

_MESSAGE: dict[str, Any] = {"id": NO_ID, "type": "message", "role": "assistant"}


class EventWriter:
    """Writes events: the message immediately, calls after it."""

    def __init__(self, model: str, used_ids: Collection[str]) -> None:
        self.items: list[Item] = []
        self._model = model
        self._ids = set(used_ids)
        self._number = -1
        self._segments: list[ContentSegment] = []
        self._calls_before: list[int] = []
        self._calls: list[ContentSegment] = []
        self._text: ContentSegment | None = None
        self._texts = 0
        # Calls that started before the answer ended: final id and output index by provider id. 0 is the
        # message's index.
        self._begun: dict[str, tuple[str, int]] = {}
        self._highest = -1

    def begin(self) -> Any:
        """Return the first event."""
        response = self._response("in_progress", [], None)
        return ResponseCreatedEvent(type="response.created", response=response, sequence_number=self._next())

    def write(self, segment: ContentSegment, *, continues_text: bool) -> Iterator[Any]:
        """Yield a segment's events."""
        if segment.tool_call is not None:
            yield from self._end_text()
            self._calls.append(segment)
            return
        if not self._segments and self._text is None:
            item = sdk_item({**_MESSAGE, "status": "in_progress", "content": []})
            yield self._item(ResponseOutputItemAddedEvent, "response.output_item.added", item)
        if segment.type != "text":
            yield from self._end_text()
            self._add(segment)
        else:
            if not continues_text:
                yield from self._end_text()
            yield from self._text_delta(segment)

    def write_piece(self, piece: Piece) -> Iterator[Any]:
        """Yield a piece's events, which may start a call."""
        if not piece.text:
            return
        if isinstance(piece, ReasoningPiece):
            yield ResponseReasoningTextDeltaEvent(
                type="response.reasoning_text.delta",
                delta=piece.text,
                content_index=0,
                item_id=NO_ID,
                output_index=0,
                sequence_number=self._next(),
            )
            return
        if piece.call_id not in self._begun:
            begun = call_item(*_empty_call(piece), self._ids)
            self._begun[piece.call_id] = begun["call_id"], len(self._begun) + 1
            yield self._item(
                ResponseOutputItemAddedEvent,
                "response.output_item.added",
                sdk_item({**begun, "arguments": ""}),
                self._begun[piece.call_id][1],
            )
        call_id, index = self._begun[piece.call_id]
        yield ResponseFunctionCallArgumentsDeltaEvent(
            type="response.function_call_arguments.delta",
            delta=piece.text,
            item_id=call_id,
            output_index=index,
            sequence_number=self._next(),
        )

    def end(self, usage: Usage) -> Iterator[Any]:
        """Yield the last events."""
        if not self._calls and not self._segments and self._text is None:
            empty = sdk_item(message_item([]))
            yield self._item(ResponseOutputItemAddedEvent, "response.output_item.added", empty)
            yield self._item(ResponseOutputItemDoneEvent, "response.output_item.done", empty)
            self.items.append(empty)
        yield from self._end_message()
        self._highest = max([self._highest, *(index for _, index in self._begun.values())])
        for call in self._calls:
            yield from self._call(call)
        response = self._response("completed", list(self.items), usage)
        yield ResponseCompletedEvent(
            type="response.completed", response=response, sequence_number=self._next()
        )

    def _text_delta(self, segment: ContentSegment) -> Iterator[Any]:
        if self._text is None:
            self._text = segment
            yield ResponseContentPartAddedEvent(
                type="response.content_part.added", part=_text_part(""), **self._position()
            )
        else:
            self._text = attrs.evolve(
                self._text,
                text=(self._text.text or "") + (segment.text or ""),
                extra={**self._text.extra, **segment.extra},
            )
        if segment.text:
            yield ResponseTextDeltaEvent(
                type="response.output_text.delta", delta=segment.text, logprobs=[], **self._position()
            )

    def _end_text(self) -> Iterator[Any]:
        if self._text is None:
            return
        text = self._text.text or ""
        yield ResponseTextDoneEvent(
            type="response.output_text.done", text=text, logprobs=[], **self._position()
        )
        yield ResponseContentPartDoneEvent(
            type="response.content_part.done", part=_text_part(text), **self._position()
        )
        self._add(self._text)
        self._text = None
        self._texts += 1

    def _add(self, segment: ContentSegment) -> None:
        self._segments.append(segment)
        self._calls_before.append(len(self._calls))

    def _end_message(self) -> Iterator[Any]:
        yield from self._end_text()
        if self._segments:
            message = sdk_item(message_item(self._segments, self._calls_before))
            yield self._item(ResponseOutputItemDoneEvent, "response.output_item.done", message)
            self.items.append(message)

    def _call(self, segment: ContentSegment) -> Iterator[Any]:
        if segment.tool_call is None:
            return
        call = segment.tool_call
        call_id, index = self._begun.pop(call.id, (None, None))
        if call_id is not None:
            self._ids.discard(call_id)
            call = attrs.evolve(call, id=call_id)
        wire = call_item(segment, call, self._ids)
        if index is None:
            # Earlier calls have taken their indexes.
            index = max(len(self.items), self._highest + 1)
            started = sdk_item({**wire, "arguments": ""})
            yield self._item(ResponseOutputItemAddedEvent, "response.output_item.added", started, index)
        self._highest = max(self._highest, index)
        position = {"item_id": wire["call_id"], "output_index": index}
        if call_id is None:
            yield ResponseFunctionCallArgumentsDeltaEvent(
                type="response.function_call_arguments.delta",
                delta=wire["arguments"],
                sequence_number=self._next(),
                **position,
            )
        yield ResponseFunctionCallArgumentsDoneEvent(
            type="response.function_call_arguments.done",
            arguments=wire["arguments"],
            name=wire["name"],
            sequence_number=self._next(),
            **position,
        )
        item = sdk_item(wire)
        yield self._item(ResponseOutputItemDoneEvent, "response.output_item.done", item, index)
        self.items.append(item)

    def _item(self, event: Any, kind: str, item: Item, index: int | None = None) -> Any:
        place = len(self.items) if index is None else index
        return event(type=kind, item=item, output_index=place, sequence_number=self._next())

    def _position(self) -> dict[str, Any]:
        return {
            "item_id": NO_ID,
            "output_index": len(self.items),
            "content_index": self._texts,
            "sequence_number": self._next(),
        }

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _response(self, status: Any, items: list[Item], usage: Usage | None) -> Response:
        return Response(
            id=NO_ID,
            created_at=0,
            model=self._model,
            object="response",
            output=items,  # type: ignore[arg-type]
            tool_choice="auto",
            tools=[],
            parallel_tool_calls=True,
            status=status,
            usage=None if usage is None else response_usage(usage),
        )


def _empty_call(piece: ArgumentsPiece) -> tuple[ContentSegment, ProviderToolCall]:
    call = ProviderToolCall(piece.tool, {}, piece.call_id)
    return ContentSegment("tool_call", tool_call=call), call


def _text_part(text: str) -> ResponseOutputText:
    return ResponseOutputText(type="output_text", text=text, annotations=[], logprobs=[])
