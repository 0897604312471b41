"""Responses in chat completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.metadata import ResponseMetadata, read_texts
from kantan_agents.models.protocol.translate.openai_chat.calls import call_to_chat
from kantan_agents.models.protocol.translate.openai_chat.messages import calls_of
from kantan_agents.models.protocol.translate.openai_chat.parts import parts_from_chat
from kantan_agents.models.protocol.translate.openai_chat.tools import FORMAT, OWNER
from kantan_agents.models.protocol.translate.reader import WireReader, unknown_fields
from kantan_agents.models.protocol.translate.usage import read_usage, write_usage
from kantan_agents.models.protocol.types import ContentSegment, ProviderResponse

USAGE: Final[Mapping[str, tuple[str, ...]]] = {
    "input_tokens": ("prompt_tokens",),
    "output_tokens": ("completion_tokens",),
    "total_tokens": ("total_tokens",),
    "cached_tokens": ("prompt_tokens_details", "cached_tokens"),
    "reasoning_tokens": ("completion_tokens_details", "reasoning_tokens"),
}
_REFUSAL = {OWNER: {"fields": {"type": "refusal"}}}


def response_from_openai_chat(data: Any) -> ProviderResponse:
    """Return a chat completion as a ``ProviderResponse``.

    The segments are the text, the ``refusal``, the audio and the tool calls, in this order. ``metadata`` has
    ``id``, ``model``, ``finish_reason`` and ``usage``; all other fields are in ``extra["openai"]``.

    Raises:
        InvalidProtocolValueError: E50, with every problem; more than one choice is a problem.
    """
    reader = WireReader("chat completion", OWNER)
    body = reader.expect_answer(data, "choices")
    choices = body["choices"]
    if len(choices) != 1:
        reader.add("choices", f"must be one, not {len(choices)}")
    choice = (reader.objects(choices[:1], "choices") or [("", {})])[0][1]
    message = reader.required(choice, "message", dict, "choices[0].") or {}
    role = reader.field(message, "role", str, "choices[0].message.")
    if role is None and not any(name in message for name in _CONTENT_FIELDS):
        reader.add("choices[0].message", "has no content")
    segments = _segments(message, reader, "choices[0].message.")
    counts, rest = read_usage(reader.field(body, "usage", dict, "") or {}, USAGE)
    texts = read_texts(reader, body, "", id="id", model="model")
    texts |= read_texts(reader, choice, "choices[0].", finish_reason="finish_reason")
    extra = reader.extra(
        fields=unknown_fields(
            body, "id", "model", "choices", "usage", *_if_equal(body, "object", "chat.completion")
        ),
        choice=unknown_fields(choice, "message", "finish_reason", *_if_equal(choice, "index", 0)),
        message=unknown_fields(message, *_CONTENT_FIELDS, *_if_equal(message, "role", "assistant")),
        usage=rest,
    )
    reader.check()
    return ProviderResponse(tuple(segments), ResponseMetadata(**texts, usage=counts).to_dict(), extra=extra)


_CONTENT_FIELDS = ("content", "tool_calls", "refusal", "audio")


def _segments(message: dict[str, Any], reader: WireReader, path: str) -> list[ContentSegment]:
    segments, left = parts_from_chat(message.get("content"), reader, f"{path}content")
    if left:
        reader.add(f"{path}content", "has only parts of unknown types")
    refusal = reader.field(message, "refusal", str, path)
    if refusal is not None:
        refused = reader.build(lambda: ContentSegment("text", text=refusal, extra=_REFUSAL), f"{path}refusal")
        segments += [] if refused is None else [refused]
    audio = reader.field(message, "audio", dict, path)
    if audio is not None:
        extra = reader.extra(fields=unknown_fields(audio, "data"))
        data = audio.get("data")
        spoken = reader.build(lambda: ContentSegment("audio", data=data, extra=extra), f"{path}audio.")
        segments += [] if spoken is None else [spoken]
    return [*segments, *calls_of(message, reader, path)]


def _if_equal(data: Mapping[str, Any], name: str, value: Any) -> tuple[str, ...]:
    return (name,) if data.get(name) == value else ()


def response_to_openai_chat(response: ProviderResponse) -> dict[str, Any]:
    """Return a ``ProviderResponse`` as a chat completion.

    Raises:
        UntranslatableError: E52, with everything that would be lost, such as images or text after a call.
    """
    losses = Losses(FORMAT, OWNER)
    own = losses.format_extra(response.extra, "", "fields", "choice", "message", "usage")
    known = ResponseMetadata.of(response.metadata, losses)
    message = _message(response, losses)
    message = losses.with_fields(message, {"fields": own.get("message", {})}, "")
    choice = {"index": 0, "message": message, **known.fields(finish_reason="finish_reason")}
    choice = losses.with_fields(choice, {"fields": own.get("choice", {})}, "")
    body = {"object": "chat.completion", **known.fields(id="id", model="model"), "choices": [choice]}
    usage = write_usage(known.usage, own.get("usage", {}), USAGE, losses, "extra.openai.usage")
    if usage:
        body["usage"] = usage
    body = losses.with_fields(body, own, "")
    losses.check()
    return body


_ORDER = ("text", "refusal", "audio", "tool_call")


def _message(response: ProviderResponse, losses: Losses) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    last = 0
    calls = []
    for index, segment in enumerate(response.segments):
        path = f"segments[{index}]."
        kind = (
            "refusal"
            if segment.type == "text" and segment.extra.get(OWNER) == _REFUSAL[OWNER]
            else segment.type
        )
        if kind not in _ORDER:
            losses.add(path[:-1], f"an answer cannot hold {kind}")
            continue
        rank = _ORDER.index(kind)
        if rank < last or (rank == last and kind != "tool_call" and index):
            losses.add(path[:-1], f"{kind} is not allowed here: an answer is one text, one audio, then calls")
        last = rank
        if segment.tool_call is not None:
            calls.append(call_to_chat(segment, segment.tool_call, losses, path))
        elif kind == "audio":
            message["audio"] = _audio(segment, losses, path)
        else:
            losses.format_extra(segment.extra, path, *(("fields",) if kind == "refusal" else ()))
            message["content" if kind == "text" else "refusal"] = segment.text
    return {**message, "tool_calls": calls} if calls else message


def _audio(segment: ContentSegment, losses: Losses, path: str) -> dict[str, Any]:
    if segment.mime_type is not None:
        losses.add(f"{path}mimeType", "is not allowed in an answer")
    if segment.is_url:
        losses.add(f"{path}data", "is a URL, but audio must be base64")
    own = losses.format_extra(segment.extra, path, "fields")
    return losses.with_fields({"data": segment.data}, own, path)
