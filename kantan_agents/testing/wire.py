"""The wire formats of both APIs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from agents import Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage

from kantan_agents.testing.replies import Reply, ReplyLike, ScriptedToolCall, call_of, texts_of

__all__ = [
    "NotSendableError",
    "Reply",
    "ReplyLike",
    "ScriptedToolCall",
    "chunks",
    "completion_body",
    "completion_events",
    "response_body",
    "response_events",
]

USAGE_IN, USAGE_OUT = 10, 5


class NotSendableError(Exception):
    """The requested API has no form for a reply."""


def chunks(text: str, size: int = 16) -> list[str]:
    """Split text for a stream."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def response_body(reply: Reply, model: str, *, with_usage: bool = True) -> dict[str, Any]:
    """For ``POST /v1/responses``."""
    return {
        "id": f"resp_{uuid4().hex[:12]}",
        "object": "response",
        "created_at": 0,
        "model": model,
        "status": "incomplete" if reply.is_cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if reply.is_cut else None,
        "output": [_output_item(part, is_cut=reply.is_cut) for part in _parts(reply)],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": _response_usage(reply.usage) if with_usage else None,
    }


def _parts(reply: Reply) -> list[Any]:
    if reply.items:
        return list(reply.items)
    if reply.refusal is not None:
        message: list[Any] = [{"type": "refusal", "refusal": reply.refusal}]
    else:
        message = [] if reply.text is None else [reply.text]
    return [*message, *reply.tool_calls]


def _output_item(part: Any, *, is_cut: bool) -> dict[str, Any]:
    if isinstance(part, ResponseFunctionToolCall):
        dumped = part.model_dump(mode="json", exclude_none=True)
        return {**dumped, "id": f"fc_{part.call_id}", "status": "completed"}
    if isinstance(part, ScriptedToolCall):
        return {
            "id": f"fc_{part.id}",
            "type": "function_call",
            "status": "completed",
            "call_id": part.id,
            "name": part.name,
            "arguments": part.wire_arguments,
        }
    if isinstance(part, (str, dict)):
        text: dict[str, Any] = {"type": "output_text", "text": part, "annotations": [], "logprobs": []}
        content = [text if isinstance(part, str) else part]
        status = "incomplete" if is_cut else "completed"
    elif isinstance(part, ResponseOutputMessage):
        content = [piece.model_dump(mode="json") for piece in part.content]
        status = part.status
    else:
        item: dict[str, Any] = part.model_dump(mode="json", exclude_none=True)
        return item
    return {
        "id": f"msg_{uuid4().hex[:12]}",
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": content,
    }


def _response_usage(given: Usage | None) -> dict[str, Any]:
    read, written, cached, reasoned = _tokens(given)
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": reasoned},
        "total_tokens": read + written,
    }


def _tokens(given: Usage | None) -> tuple[int, int, int, int]:
    if given is None or given == Usage():
        return USAGE_IN, USAGE_OUT, 0, 0
    cached = given.input_tokens_details.cached_tokens or 0
    return given.input_tokens, given.output_tokens, cached, given.output_tokens_details.reasoning_tokens or 0


def response_events(reply: Reply, model: str, *, with_usage: bool = True) -> Iterator[dict[str, Any]]:
    """For a streamed ``POST /v1/responses``."""
    body = response_body(reply, model, with_usage=with_usage)
    number = 0

    def event(kind: str, **fields: Any) -> dict[str, Any]:
        nonlocal number
        number += 1
        return {"type": kind, "sequence_number": number - 1, **fields}

    created = {**body, "status": "in_progress", "output": [], "usage": None}
    yield event("response.created", response=created)
    for index, item in enumerate(body["output"]):
        place = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            empty = {**item, "content": [], "status": "in_progress"}
            yield event("response.output_item.added", output_index=index, item=empty)
            for number_of_part, part in enumerate(item["content"]):
                kind = {"output_text": "text", "refusal": "refusal"}[part["type"]]
                extra: dict[str, Any]
                name, extra = ("output_text", {"logprobs": []}) if kind == "text" else ("refusal", {})
                inside = {**place, "content_index": number_of_part}
                yield event("response.content_part.added", **inside, part={**part, kind: ""})
                for piece in chunks(part[kind]):
                    yield event(f"response.{name}.delta", **inside, delta=piece, **extra)
                yield event(f"response.{name}.done", **inside, **{kind: part[kind]}, **extra)
                yield event("response.content_part.done", **inside, part=part)
        elif item["type"] == "function_call":
            empty = {**item, "arguments": "", "status": "in_progress"}
            yield event("response.output_item.added", output_index=index, item=empty)
            for piece in chunks(item["arguments"]):
                yield event("response.function_call_arguments.delta", **place, delta=piece)
            yield event(
                "response.function_call_arguments.done",
                **place,
                name=item["name"],
                arguments=item["arguments"],
            )
        else:
            yield event("response.output_item.added", output_index=index, item=item)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.incomplete" if reply.is_cut else "response.completed", response=body)


def completion_body(reply: Reply, model: str, *, with_usage: bool = True) -> dict[str, Any]:
    """For ``POST /v1/chat/completions``, or ``NotSendableError``."""
    text, refusal, calls = _chat_message(reply)
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": refusal}
    if calls:
        message["tool_calls"] = [_chat_tool_call(call) for call in calls]
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(reply, calls)}
    usage = {"usage": _chat_usage(reply.usage)} if with_usage else {}
    return {**_chat_head("chat.completion", model), "choices": [choice], **usage}


def completion_events(reply: Reply, model: str, *, with_usage: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the chunks of a stream, or raise ``NotSendableError``.

    With ``with_usage``, a last chunk without choices reports the tokens, and ``usage`` of all others is null.
    """
    chunks_of_reply = _completion_chunks(reply, model, *_chat_message(reply))
    return _with_usage(chunks_of_reply, reply) if with_usage else chunks_of_reply


def _with_usage(sent: Iterator[dict[str, Any]], reply: Reply) -> Iterator[dict[str, Any]]:
    head: dict[str, Any] = {}
    for head in sent:
        yield {**head, "usage": None}
    yield {**head, "choices": [], "usage": _chat_usage(reply.usage)}


def _completion_chunks(
    reply: Reply, model: str, text: str | None, refusal: str | None, calls: list[ScriptedToolCall]
) -> Iterator[dict[str, Any]]:
    head = _chat_head("chat.completion.chunk", model)

    def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return {**head, "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in chunks(text or ""):
        yield chunk({"content": piece})
    for piece in chunks(refusal or ""):
        yield chunk({"refusal": piece})
    for index, call in enumerate(calls):
        started = _chat_tool_call(call)
        started["function"] = {**started["function"], "arguments": ""}
        yield chunk({"tool_calls": [{"index": index, **started}]})
        for piece in chunks(call.wire_arguments):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _finish_reason(reply, calls))


def _chat_message(reply: Reply) -> tuple[str | None, str | None, list[ScriptedToolCall]]:
    if reply.events is not None:
        raise NotSendableError("exact stream events are those of the Responses API")
    if not reply.items:
        return reply.text, reply.refusal, list(reply.tool_calls)
    messages: list[tuple[str | None, str | None]] = []
    calls: list[ScriptedToolCall] = []
    for item in reply.items:
        if isinstance(item, str):
            messages.append((item, None))
        elif isinstance(item, ResponseOutputMessage):
            messages.append(texts_of(item))
        elif isinstance(item, (ScriptedToolCall, ResponseFunctionToolCall)):
            calls.append(item if isinstance(item, ScriptedToolCall) else call_of(item))
        else:
            raise NotSendableError(f"there is no item of type {item.type!r}")
    if len(messages) > 1:
        raise NotSendableError(f"a reply has one message, not {len(messages)}")
    return (*(messages[0] if messages else (None, None)), calls)


def _chat_head(kind: str, model: str) -> dict[str, Any]:
    return {"id": f"chatcmpl_{uuid4().hex[:12]}", "object": kind, "created": 0, "model": model}


def _chat_tool_call(call: ScriptedToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.wire_arguments}
    return {"id": call.id, "type": "function", "function": function}


def _finish_reason(reply: Reply, calls: list[ScriptedToolCall]) -> str:
    if reply.is_cut:
        return "length"
    return "tool_calls" if calls else "stop"


def _chat_usage(given: Usage | None) -> dict[str, Any]:
    read, written, cached, reasoned = _tokens(given)
    return {
        "prompt_tokens": read,
        "completion_tokens": written,
        "total_tokens": read + written,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoned},
    }
