"""An answer, segment by segment, as the events of a stream of the Responses API."""

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
    ResponseTextDeltaEvent,
    ResponseTextDoneEvent,
    ResponseUsage,
)

from kantan_agents.protocol.answers import Item, sdk_item
from kantan_agents.protocol.translate.responses_items import NO_ID, call_item, message_item
from kantan_agents.protocol.types import ContentSegment

_MESSAGE: dict[str, Any] = {"id": NO_ID, "type": "message", "role": "assistant"}


class EventWriter:
    """Writes the events of one answer: those of the message as they come, those of the calls after it.

    Attributes:
        items: The output items that are complete.

    Args:
        model: Name of the model.
        taken: Ids of calls that were made before.
    """

    def __init__(self, model: str, taken: Collection[str]) -> None:
        self.items: list[Item] = []
        self._model = model
        self._ids = set(taken)
        self._number = -1
        self._said: list[ContentSegment] = []
        self._places: list[int] = []
        self._calls: list[ContentSegment] = []
        self._text: ContentSegment | None = None
        self._texts = 0

    def begin(self) -> Any:
        """Return the first event."""
        response = self._response("in_progress", [], None)
        return ResponseCreatedEvent(type="response.created", response=response, sequence_number=self._next())

    def write(self, segment: ContentSegment, *, goes_on: bool) -> Iterator[Any]:
        """Yield the events of a segment.

        Args:
            segment: The segment.
            goes_on: Whether a text that follows a text is more of it, and not another one.
        """
        if segment.tool_call is not None:
            yield from self._end_text()
            self._calls.append(segment)
            return
        if not self._said and self._text is None:
            item = sdk_item({**_MESSAGE, "status": "in_progress", "content": []})
            yield self._item(ResponseOutputItemAddedEvent, "response.output_item.added", item)
        if segment.type != "text":
            yield from self._end_text()
            self._say(segment)
        else:
            if not goes_on:
                yield from self._end_text()
            yield from self._piece(segment)

    def end(self, usage: Usage) -> Iterator[Any]:
        """Yield the last events; of an answer of nothing, those of an empty message as well."""
        if not self._calls and not self._said and self._text is None:
            empty = sdk_item(message_item([]))
            yield self._item(ResponseOutputItemAddedEvent, "response.output_item.added", empty)
            yield self._item(ResponseOutputItemDoneEvent, "response.output_item.done", empty)
            self.items.append(empty)
        yield from self._end_message()
        for call in self._calls:
            yield from self._call(call)
        response = self._response("completed", list(self.items), usage)
        yield ResponseCompletedEvent(
            type="response.completed", response=response, sequence_number=self._next()
        )

    def _piece(self, segment: ContentSegment) -> Iterator[Any]:
        if self._text is None:
            self._text = segment
            yield ResponseContentPartAddedEvent(
                type="response.content_part.added", part=_text_part(""), **self._place()
            )
        else:
            self._text = attrs.evolve(
                self._text,
                text=(self._text.text or "") + (segment.text or ""),
                extra={**self._text.extra, **segment.extra},
            )
        if segment.text:
            yield ResponseTextDeltaEvent(
                type="response.output_text.delta", delta=segment.text, logprobs=[], **self._place()
            )

    def _end_text(self) -> Iterator[Any]:
        if self._text is None:
            return
        text = self._text.text or ""
        yield ResponseTextDoneEvent(type="response.output_text.done", text=text, logprobs=[], **self._place())
        yield ResponseContentPartDoneEvent(
            type="response.content_part.done", part=_text_part(text), **self._place()
        )
        self._say(self._text)
        self._text = None
        self._texts += 1

    def _say(self, segment: ContentSegment) -> None:
        self._said.append(segment)
        self._places.append(len(self._calls))

    def _end_message(self) -> Iterator[Any]:
        yield from self._end_text()
        if self._said:
            message = sdk_item(message_item(self._said, self._places))
            yield self._item(ResponseOutputItemDoneEvent, "response.output_item.done", message)
            self.items.append(message)

    def _call(self, segment: ContentSegment) -> Iterator[Any]:
        if segment.tool_call is None:
            return
        wire = call_item(segment, segment.tool_call, self._ids)
        started = sdk_item({**wire, "arguments": ""})
        yield self._item(ResponseOutputItemAddedEvent, "response.output_item.added", started)
        place = {"item_id": wire["call_id"], "output_index": len(self.items)}
        yield ResponseFunctionCallArgumentsDeltaEvent(
            type="response.function_call_arguments.delta",
            delta=wire["arguments"],
            sequence_number=self._next(),
            **place,
        )
        yield ResponseFunctionCallArgumentsDoneEvent(
            type="response.function_call_arguments.done",
            arguments=wire["arguments"],
            name=wire["name"],
            sequence_number=self._next(),
            **place,
        )
        call = sdk_item(wire)
        yield self._item(ResponseOutputItemDoneEvent, "response.output_item.done", call)
        self.items.append(call)

    def _item(self, event: Any, kind: str, item: Item) -> Any:
        return event(type=kind, item=item, output_index=len(self.items), sequence_number=self._next())

    def _place(self) -> dict[str, Any]:
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
            usage=None if usage is None else _usage(usage),
        )


def _text_part(text: str) -> ResponseOutputText:
    return ResponseOutputText(type="output_text", text=text, annotations=[], logprobs=[])


def _usage(usage: Usage) -> ResponseUsage:
    return ResponseUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        input_tokens_details=usage.input_tokens_details,
        output_tokens_details=usage.output_tokens_details,
    )
