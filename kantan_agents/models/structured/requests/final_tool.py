"""The final tool, whose arguments are the answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from agents import FunctionTool, ModelResponse
from agents.models.fake_id import FAKE_RESPONSES_ID
from openai.types.responses import (
    ResponseContentPartAddedEvent,
    ResponseContentPartDoneEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
    ResponseTextDoneEvent,
)

from kantan_agents.models.finish_reasons import replaced

_NAME = "final_answer"
_ADDED, _DONE = "response.output_item.added", "response.output_item.done"
_DELTA = "response.function_call_arguments.delta"
_ARGUMENTS = "response.function_call_arguments.done"


def final_tool_name(tools: list[Any], handoffs: list[Any]) -> str:
    """Return a name that no tool or handoff has."""
    taken = {getattr(tool, "name", None) for tool in tools}
    taken |= {getattr(handoff, "tool_name", None) for handoff in handoffs}
    name, number = _NAME, 1
    while name in taken:
        number += 1
        name = f"{_NAME}_{number}"
    return name


def final_tool(name: str, schema: dict[str, Any]) -> FunctionTool:
    """Return a tool with the output schema."""
    return FunctionTool(
        name=name,
        description="Give the final answer. Call this once, when everything needed for the answer is known.",
        params_json_schema=schema,
        on_invoke_tool=_never,
        strict_json_schema=False,
    )


async def _never(_context: Any, _arguments: str) -> Any:
    # The SDK never runs it: its calls become messages.
    raise RuntimeError("the final tool only delivers the answer; it cannot be run")


def is_final_tool(tool: Any) -> bool:
    """Return whether a tool is the final tool."""
    return getattr(tool, "on_invoke_tool", None) is _never


def is_final_call(item: Any, name: str) -> bool:
    """Return whether an item calls the final tool."""
    return isinstance(item, ResponseFunctionToolCall) and item.name == name


def message_of(call: Any) -> ResponseOutputMessage:
    """Return the call as a message."""
    return text_message(call.arguments, call.status)


def text_message(text: str, status: str | None) -> ResponseOutputMessage:
    """Return an assistant message with the SDK's placeholder id."""
    is_cut = status == "incomplete"
    content = ResponseOutputText(type="output_text", text=text, annotations=[], logprobs=[])
    return ResponseOutputMessage(
        id=FAKE_RESPONSES_ID,
        type="message",
        role="assistant",
        status="incomplete" if is_cut else "completed",
        content=[content],
    )


def without_final_calls(answer: ModelResponse, name: str) -> ModelResponse:
    """Turn final calls in an answer into messages."""
    items = items_without_final_calls(answer.output, name)
    if items is answer.output:
        return answer
    return replaced(answer, output=items)


def items_without_final_calls(items: list[Any], name: str) -> list[Any]:
    """Turn calls of the final tool among output items into messages.

    They come last, as the SDK's answer. Reasoning before only such a call is dropped: providers reject it
    without the call.
    """
    final = [message_of(item) for item in items if is_final_call(item, name)]
    if not final:
        return items
    others: list[Any] = []
    leads_to_others = False
    for item in reversed(items):
        if is_final_call(item, name):
            leads_to_others = False
        elif leads_to_others or getattr(item, "type", None) != "reasoning":
            leads_to_others = True
            others.insert(0, item)
    return [*others, *final]


async def final_calls_as_messages(events: Any, name: str) -> AsyncGenerator[Any, None]:
    """Turn final calls in events into messages."""
    indexes: set[int] = set()
    async with aclosing(events):
        async for event in events:
            kind = getattr(event, "type", None)
            if kind in (_ADDED, _DONE) and is_final_call(event.item, name):
                indexes.add(event.output_index)
                for changed in _item_events(event, is_done=kind == _DONE):
                    yield changed
            elif kind in (_DELTA, _ARGUMENTS) and event.output_index in indexes:
                yield _text_event(event, is_done=kind == _ARGUMENTS)
            elif kind == "response.completed":
                yield _completed_event(event, name)
            else:
                yield event


def _item_events(event: Any, *, is_done: bool) -> list[Any]:
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


def _text_event(event: Any, *, is_done: bool) -> Any:
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


def _completed_event(event: Any, name: str) -> Any:
    items = items_without_final_calls(event.response.output, name)
    return event.model_copy(update={"response": event.response.model_copy(update={"output": items})})
