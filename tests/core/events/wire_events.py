"""Exact streams of the Responses API, for what ``OfflineServer`` does not make from a reply by itself."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from kantan_agents.testing import Reply

REASONING = "response.reasoning_summary_text.delta"
TEXT = "response.output_text.delta"
ARGUMENTS = "response.function_call_arguments.delta"
REFUSAL = "response.refusal.delta"
CODE = "response.code_interpreter_call_code.delta"
IMAGE = "response.image_generation_call.partial_image"


def response(output: Sequence[Mapping[str, Any]] = (), **fields: Any) -> dict[str, Any]:
    """Return the body of a response."""
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 15,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "model": "offline-model",
        "status": "completed",
        "output": list(output),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
        **fields,
    }


def message(text: str) -> dict[str, Any]:
    """Return a message item."""
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}


def call(name: str, arguments: str, call_id: str = "call_1") -> dict[str, Any]:
    """Return a tool call item."""
    return {
        "id": f"fc_{call_id}",
        "type": "function_call",
        "status": "completed",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
    }


def summary(text: str) -> dict[str, Any]:
    """Return a reasoning item with a summary."""
    return {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}


def streamed(*items: tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]], **fields: Any) -> Reply:
    """Return a reply that streams items, each with the events between its beginning and its end."""
    return exact(*_events(items, fields))


def exact(*events: Mapping[str, Any]) -> Reply:
    """Return a reply with these stream events."""
    return Reply(events=[_EVENT.validate_python(event) for event in events])


_EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def deltas(
    kind: str, *pieces: str, item: str = "msg_1", index: int = 0, **fields: Any
) -> list[dict[str, Any]]:
    """Return the deltas of an item."""
    return [
        {"type": kind, "item_id": item, "output_index": index, "delta": piece, **fields} for piece in pieces
    ]


def text(*pieces: str, index: int = 0) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a message and its deltas."""
    return message("".join(pieces)), deltas(TEXT, *pieces, index=index, content_index=0, logprobs=[])


def _events(
    items: Sequence[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]], fields: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    numbers = itertools.count()
    output = [item for item, _ in items]
    started = response(status="in_progress", usage=None, **fields)
    yield {"type": "response.created", "sequence_number": next(numbers), "response": started}
    for index, (item, between) in enumerate(items):
        place = {"output_index": index, "item": item}
        yield {"type": "response.output_item.added", "sequence_number": next(numbers), **place}
        for event in between:
            yield {"sequence_number": next(numbers), **event}
        yield {"type": "response.output_item.done", "sequence_number": next(numbers), **place}
    done = response(output, **fields)
    yield {"type": "response.completed", "sequence_number": next(numbers), "response": done}
