"""A model's stream in which the call of the final tool is the message it stands for."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from openai.types.responses import (
    ResponseContentPartAddedEvent,
    ResponseContentPartDoneEvent,
    ResponseTextDeltaEvent,
    ResponseTextDoneEvent,
)

from kantan_agents.structured.asking.final_tool import is_final_call, items_without_final_calls, message_of

_ADDED, _DONE = "response.output_item.added", "response.output_item.done"
_DELTA = "response.function_call_arguments.delta"
_ARGUMENTS = "response.function_call_arguments.done"


async def final_calls_as_messages(events: Any, name: str) -> AsyncGenerator[Any, None]:
    """Yield a model's stream events; those of a call of the final tool become those of a message.

    Args:
        events: The SDK's stream events.
        name: Name of the final tool.
    """
    places: set[int] = set()
    async with aclosing(events):
        async for event in events:
            kind = getattr(event, "type", None)
            if kind in (_ADDED, _DONE) and is_final_call(event.item, name):
                places.add(event.output_index)
                for changed in _item(event, is_done=kind == _DONE):
                    yield changed
            elif kind in (_DELTA, _ARGUMENTS) and event.output_index in places:
                yield _text(event, is_done=kind == _ARGUMENTS)
            elif kind == "response.completed":
                yield _completed(event, name)
            else:
                yield event


def _item(event: Any, *, is_done: bool) -> list[Any]:
    message = message_of(event.item)
    item = event.model_copy(update={"item": message})
    place = {
        "item_id": message.id,
        "output_index": event.output_index,
        "content_index": 0,
        "part": message.content[0],
        "sequence_number": event.sequence_number,
    }
    if is_done:
        return [ResponseContentPartDoneEvent(type="response.content_part.done", **place), item]
    return [item, ResponseContentPartAddedEvent(type="response.content_part.added", **place)]


def _text(event: Any, *, is_done: bool) -> Any:
    place = {
        "item_id": event.item_id,
        "output_index": event.output_index,
        "content_index": 0,
        "logprobs": [],
        "sequence_number": event.sequence_number,
    }
    if is_done:
        return ResponseTextDoneEvent(type="response.output_text.done", text=event.arguments, **place)
    return ResponseTextDeltaEvent(type="response.output_text.delta", delta=event.delta, **place)


def _completed(event: Any, name: str) -> Any:
    items = items_without_final_calls(event.response.output, name)
    return event.model_copy(update={"response": event.response.model_copy(update={"output": items})})
