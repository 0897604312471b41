"""Answers in chat completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kantan_agents.protocol.translate.losses import Losses
from kantan_agents.protocol.translate.metadata import Known, read_texts
from kantan_agents.protocol.translate.openai_chat.calls import call_to_chat
from kantan_agents.protocol.translate.openai_chat.messages import calls_of
from kantan_agents.protocol.translate.openai_chat.parts import parts_from_chat
from kantan_agents.protocol.translate.openai_chat.tools import FORMAT, OWNER
from kantan_agents.protocol.translate.reading import Reading, unknown
from kantan_agents.protocol.translate.usage import read_usage, write_usage
from kantan_agents.protocol.types import ContentSegment, ProviderResponse

USAGE: Final[Mapping[str, tuple[str, ...]]] = {
    "input_tokens": ("prompt_tokens",),
    "output_tokens": ("completion_tokens",),
    "total_tokens": ("total_tokens",),
    "cached_tokens": ("prompt_tokens_details", "cached_tokens"),
    "reasoning_tokens": ("completion_tokens_details", "reasoning_tokens"),
}
_REFUSAL = {OWNER: {"fields": {"type": "refusal"}}}


def response_from_openai_chat(data: Any) -> ProviderResponse:
    """Return the answer of a chat completion.

    Text comes first, then a refusal, then audio, then the calls. ``metadata`` has ``id``, ``model``,
    ``finish_reason`` and ``usage``; what else the API says is in ``extra["openai"]``.

    Raises:
        InvalidProtocolValueError: E50, with every mistake; more than one choice is one.
    """
    reading = Reading("chat completion", OWNER)
    body = reading.whole(data, dict)
    choices = reading.needed(body, "choices", list, "") or []
    if len(choices) != 1:
        reading.add("choices", f"must be one, not {len(choices)}")
    choice = (reading.objects(choices[:1], "choices") or [("", {})])[0][1]
    message = reading.needed(choice, "message", dict, "choices[0].") or {}
    segments = _segments(message, reading, "choices[0].message.")
    counts, rest = read_usage(reading.field(body, "usage", dict, "") or {}, USAGE)
    texts = read_texts(reading, body, "", id="id", model="model")
    texts |= read_texts(reading, choice, "choices[0].", finish_reason="finish_reason")
    extra = reading.kept(
        fields=unknown(body, "id", "model", "choices", "usage", *_if(body, "object", "chat.completion")),
        choice=unknown(choice, "message", "finish_reason", *_if(choice, "index", 0)),
        message=unknown(message, *_SAID, *_if(message, "role", "assistant")),
        usage=rest,
    )
    reading.check()
    return ProviderResponse(tuple(segments), Known(**texts, usage=counts).as_metadata(), extra=extra)


_SAID = ("content", "tool_calls", "refusal", "audio")


def _segments(message: dict[str, Any], reading: Reading, path: str) -> list[ContentSegment]:
    segments, left = parts_from_chat(message.get("content"), reading, f"{path}content")
    if left:
        reading.add(f"{path}content", "holds nothing but parts that are not known")
    refusal = reading.field(message, "refusal", str, path)
    if refusal is not None:
        said = reading.value(lambda: ContentSegment("text", text=refusal, extra=_REFUSAL), f"{path}refusal")
        segments += [] if said is None else [said]
    audio = reading.field(message, "audio", dict, path)
    if audio is not None:
        extra = reading.kept(fields=unknown(audio, "data"))
        data = audio.get("data")
        heard = reading.value(lambda: ContentSegment("audio", data=data, extra=extra), f"{path}audio.")
        segments += [] if heard is None else [heard]
    return [*segments, *calls_of(message, reading, path)]


def _if(data: Mapping[str, Any], name: str, value: Any) -> tuple[str, ...]:
    return (name,) if data.get(name) == value else ()


def response_to_openai_chat(response: ProviderResponse) -> dict[str, Any]:
    """Return an answer as a chat completion.

    Raises:
        UntranslatableError: E52, with all that would be lost: a second text, text after a call, images.
    """
    losses = Losses(FORMAT, OWNER)
    own = losses.own(response.extra, "", "fields", "choice", "message", "usage")
    known = Known.of(response.metadata, losses)
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
    for place, segment in enumerate(response.segments):
        path = f"segments[{place}]."
        kind = (
            "refusal"
            if segment.type == "text" and segment.extra.get(OWNER) == _REFUSAL[OWNER]
            else segment.type
        )
        if kind not in _ORDER:
            losses.add(path[:-1], f"an answer cannot hold {kind}")
            continue
        rank = _ORDER.index(kind)
        if rank < last or (rank == last and kind != "tool_call" and place):
            losses.add(path[:-1], f"{kind} cannot stand here: an answer is one text, one audio, then calls")
        last = rank
        if segment.tool_call is not None:
            calls.append(call_to_chat(segment, segment.tool_call, losses, path))
        elif kind == "audio":
            message["audio"] = _audio(segment, losses, path)
        else:
            losses.own(segment.extra, path, *(("fields",) if kind == "refusal" else ()))
            message["content" if kind == "text" else "refusal"] = segment.text
    return {**message, "tool_calls": calls} if calls else message


def _audio(segment: ContentSegment, losses: Losses, path: str) -> dict[str, Any]:
    if segment.mime_type is not None:
        losses.add(f"{path}mimeType", "has no place in an answer")
    if segment.is_url:
        losses.add(f"{path}data", "is a URL, and audio is base64")
    own = losses.own(segment.extra, path, "fields")
    return losses.with_fields({"data": segment.data}, own, path)
