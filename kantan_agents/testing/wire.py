"""The wire formats of the offline server: pure functions from a reply to a JSON body or stream events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from uuid import uuid4

import attrs

USAGE_IN, USAGE_OUT = 10, 5
OK = 200


@attrs.frozen
class ScriptedToolCall:
    """A tool call in a reply.

    Args:
        name: Name of the tool.
        arguments: Its arguments. A str is sent unchanged, even if it is not JSON.
        id: Id of the call.
    """

    name: str
    arguments: Mapping[str, Any] | str = attrs.field(factory=dict)
    id: str = attrs.field(factory=lambda: f"call_{uuid4().hex[:12]}")

    @property
    def wire_arguments(self) -> str:
        """The arguments as the API sends them."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments, ensure_ascii=False)


def _call_tuple(calls: Iterable[ScriptedToolCall]) -> tuple[ScriptedToolCall, ...]:
    return tuple(calls)


@attrs.frozen
class Reply:
    """One reply of the offline server.

    Args:
        text: The text of the model.
        tool_calls: The tool calls of the model, after the text.
        status: HTTP status. Unless it is 200, the body is an API error with ``text`` as its message.
        body: Sent unchanged in place of all of the above, for replies that are not JSON.
        headers: Additional response headers, such as ``{"retry-after-ms": "1"}``.
        delay: Seconds to wait before the reply is sent.
        refusal: The text with which the model refuses to answer.
        is_cut: Whether the reply ends early because it reached the token limit.
    """

    text: str | None = None
    tool_calls: tuple[ScriptedToolCall, ...] = attrs.field(default=(), converter=_call_tuple)
    status: int = OK
    body: bytes | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict)
    delay: float = 0.0
    refusal: str | None = None
    is_cut: bool = False

    @classmethod
    def of(cls, value: ReplyLike) -> Reply:
        """Return the reply for a str (text), a dict (JSON text), a ScriptedToolCall or a list of them.

        Raises:
            TypeError: ``value`` has another type.
        """
        if isinstance(value, Reply):
            return value
        if isinstance(value, str):
            return cls(value)
        if isinstance(value, ScriptedToolCall):
            return cls(tool_calls=(value,))
        if isinstance(value, Mapping):
            return cls(json.dumps(value, ensure_ascii=False))
        if isinstance(value, (list, tuple)) and all(isinstance(v, ScriptedToolCall) for v in value):
            return cls(tool_calls=value)
        raise TypeError(
            f"a reply is a str, a dict, a ScriptedToolCall, a list of them or a Reply, not {value!r}"
        )


ReplyLike = Reply | str | Mapping[str, Any] | ScriptedToolCall | list[ScriptedToolCall]


def error_body(reply: Reply) -> dict[str, Any]:
    """Return the JSON body of an API error."""
    message = reply.text or f"scripted error {reply.status}"
    return {"error": {"message": message, "type": "offline", "param": None, "code": None}}


def chunks(text: str, size: int = 16) -> list[str]:
    """Split ``text`` into the pieces in which it is streamed."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def response_body(reply: Reply, model: str) -> dict[str, Any]:
    """Return the JSON body with which ``POST /v1/responses`` sends a reply."""
    output: list[dict[str, Any]] = []
    if reply.text is not None or reply.refusal is not None:
        output.append(
            {
                "id": f"msg_{uuid4().hex[:12]}",
                "type": "message",
                "role": "assistant",
                "status": "incomplete" if reply.is_cut else "completed",
                "content": _content(reply),
            }
        )
    output += [
        {
            "id": f"fc_{call.id}",
            "type": "function_call",
            "status": "completed",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.wire_arguments,
        }
        for call in reply.tool_calls
    ]
    return {
        "id": f"resp_{uuid4().hex[:12]}",
        "object": "response",
        "created_at": 0,
        "model": model,
        "status": "incomplete" if reply.is_cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if reply.is_cut else None,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": USAGE_IN,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": USAGE_OUT,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": USAGE_IN + USAGE_OUT,
        },
    }


def _content(reply: Reply) -> list[dict[str, Any]]:
    if reply.refusal is not None:
        return [{"type": "refusal", "refusal": reply.refusal}]
    return [{"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}]


def response_events(reply: Reply, model: str) -> Iterator[dict[str, Any]]:
    """Yield the events with which a streamed ``POST /v1/responses`` sends a reply."""
    body = response_body(reply, model)
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
            part = item["content"][0]
            kind = {"output_text": "text", "refusal": "refusal"}[part["type"]]
            extra: dict[str, Any]
            name, extra = ("output_text", {"logprobs": []}) if kind == "text" else ("refusal", {})
            empty = {**item, "content": [], "status": "in_progress"}
            yield event("response.output_item.added", output_index=index, item=empty)
            yield event(
                "response.content_part.added",
                **place,
                content_index=0,
                part={**part, kind: ""},
            )
            for piece in chunks(part[kind]):
                yield event(f"response.{name}.delta", **place, content_index=0, delta=piece, **extra)
            whole = {kind: part[kind], **extra}
            yield event(f"response.{name}.done", **place, content_index=0, **whole)
            yield event("response.content_part.done", **place, content_index=0, part=part)
        else:
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
        yield event("response.output_item.done", output_index=index, item=item)
    yield event("response.incomplete" if reply.is_cut else "response.completed", response=body)


def completion_body(reply: Reply, model: str) -> dict[str, Any]:
    """Return the JSON body with which ``POST /v1/chat/completions`` sends a reply."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
    if reply.tool_calls:
        message["tool_calls"] = [_chat_tool_call(call) for call in reply.tool_calls]
    choice = {"index": 0, "message": message, "finish_reason": _finish_reason(reply)}
    return {**_chat_head("chat.completion", model), "choices": [choice], "usage": _chat_usage()}


def completion_events(reply: Reply, model: str) -> Iterator[dict[str, Any]]:
    """Yield the chunks with which a streamed ``POST /v1/chat/completions`` sends a reply."""
    head = _chat_head("chat.completion.chunk", model)

    def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return {**head, "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in chunks(reply.text or ""):
        yield chunk({"content": piece})
    for piece in chunks(reply.refusal or ""):
        yield chunk({"refusal": piece})
    for index, call in enumerate(reply.tool_calls):
        started = _chat_tool_call(call)
        started["function"] = {**started["function"], "arguments": ""}
        yield chunk({"tool_calls": [{"index": index, **started}]})
        for piece in chunks(call.wire_arguments):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _finish_reason(reply))
    yield {**head, "choices": [], "usage": _chat_usage()}


def _chat_head(kind: str, model: str) -> dict[str, Any]:
    return {"id": f"chatcmpl_{uuid4().hex[:12]}", "object": kind, "created": 0, "model": model}


def _chat_tool_call(call: ScriptedToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.wire_arguments}
    return {"id": call.id, "type": "function", "function": function}


def _finish_reason(reply: Reply) -> str:
    if reply.is_cut:
        return "length"
    return "tool_calls" if reply.tool_calls else "stop"


def _chat_usage() -> dict[str, int]:
    return {
        "prompt_tokens": USAGE_IN,
        "completion_tokens": USAGE_OUT,
        "total_tokens": USAGE_IN + USAGE_OUT,
    }
