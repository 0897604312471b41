"""Converts recorded answers to the SDK's objects."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import cache
from typing import Any

from agents import ModelResponse
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseCreatedEvent,
    ResponseFunctionCallArgumentsDeltaEvent,
    ResponseOutputItem,
    ResponseOutputItemAddedEvent,
    ResponseOutputItemDoneEvent,
    ResponseReasoningSummaryTextDeltaEvent,
    ResponseTextDeltaEvent,
)
from pydantic import TypeAdapter, ValidationError

from kantan_agents.agent.bridge.model_answers import answer_of
from kantan_agents.core.answers import CUT_OFF
from kantan_agents.models.finish_reasons import mark_cut_off, note_end, replaced
from kantan_agents.models.protocol.responses import response_usage, sdk_usage
from kantan_agents.models.protocol.usage import usage_of
from kantan_agents.traces.capture import ModelAnswer


@cache
def _items() -> TypeAdapter[Any]:
    return TypeAdapter(ResponseOutputItem)


def response_of(answer: ModelAnswer, model: str) -> Response:
    """Return a recorded answer as a stream's final response."""
    metadata = {"usage": answer.usage}
    counted = None if usage_of(metadata) is None else response_usage(sdk_usage(metadata))
    response = Response.model_construct(
        id=answer.response_id or "",
        created_at=0,
        model=model,
        object="response",
        output=[_item(item) for item in answer.output],
        tool_choice="auto",
        tools=[],
        parallel_tool_calls=False,
        status="completed",
        usage=counted,
    )
    if answer.finish_reason in CUT_OFF:
        note_end(answer.finish_reason, model, None)
        mark_cut_off(response, answer.finish_reason)
    return response


def _item(data: Any) -> Any:
    try:
        return _items().validate_python(data)
    except ValidationError:
        return data  # this version of the client does not know the kind; the SDK passes it on


def model_response(answer: ModelAnswer, model: str) -> ModelResponse:
    """Return a recorded answer as a ``ModelResponse``."""
    found = answer_of(response_of(answer, model), is_request=True)
    found.usage.requests = int(answer.usage.get("requests") or 0)  # type: ignore[arg-type]
    return replaced(found, response_id=answer.response_id)


async def stream_events(answer: ModelAnswer, model: str) -> AsyncIterator[Any]:
    """Yield a recorded answer's stream events, one delta per output text."""
    response = response_of(answer, model)
    created = response.model_copy(update={"status": "in_progress", "output": [], "usage": None})
    yield ResponseCreatedEvent(type="response.created", response=created, sequence_number=0)
    number = 0
    for index, item in enumerate(response.output):
        for event in _item_events(item, index):
            number += 1
            event.sequence_number = number
            yield event
    yield ResponseCompletedEvent.model_construct(
        type="response.completed", response=response, sequence_number=number + 1
    )


def _item_events(item: Any, index: int) -> Iterator[Any]:
    added = ResponseOutputItemAddedEvent.model_construct
    yield added(type="response.output_item.added", item=item, output_index=index, sequence_number=0)
    item_id, kind = getattr(item, "id", None) or "", getattr(item, "type", None)
    if kind == "message":
        for place, part in enumerate(item.content):
            text = getattr(part, "text", None)
            if text:
                yield ResponseTextDeltaEvent.model_construct(
                    type="response.output_text.delta",
                    item_id=item_id,
                    output_index=index,
                    content_index=place,
                    delta=text,
                    logprobs=[],
                    sequence_number=0,
                )
    elif kind == "function_call" and item.arguments:
        yield ResponseFunctionCallArgumentsDeltaEvent.model_construct(
            type="response.function_call_arguments.delta",
            item_id=item_id,
            output_index=index,
            delta=item.arguments,
            sequence_number=0,
        )
    elif kind == "reasoning":
        for place, part in enumerate(item.summary):
            yield ResponseReasoningSummaryTextDeltaEvent.model_construct(
                type="response.reasoning_summary_text.delta",
                item_id=item_id,
                output_index=index,
                summary_index=place,
                delta=part.text,
                sequence_number=0,
            )
    done = ResponseOutputItemDoneEvent.model_construct
    yield done(type="response.output_item.done", item=item, output_index=index, sequence_number=0)
