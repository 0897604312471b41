"""Segments as the SDK's output items, and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from kantan_agents.errors import InvalidProtocolValueError
from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.openai_responses.parts import invalid_item, segments_of_content
from kantan_agents.models.protocol.translate.openai_responses.provider_data import (
    call_data,
    call_segment,
    has_provider_data,
    message_data,
    message_segments,
)
from kantan_agents.models.protocol.translate.openai_responses.tools import OWNER, fields_extra
from kantan_agents.models.protocol.translate.reader import unknown_fields, with_extra
from kantan_agents.models.protocol.types import ContentSegment, ProviderToolCall

NO_ID = "__fake_id__"
"""The SDK's placeholder for a missing message id."""

IMAGE = "image_generation_call"
_OF_CALL = ("type", "call_id", "name", "arguments", "provider_data")
_LONGEST_ID = 64

BOOKKEEPING = frozenset(
    {
        "reasoning",
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "mcp_list_tools",
        "tool_search_call",
        "tool_search_output",
    }
)
"""Items of a provider's own steps, useless to others."""


def output_items(segments: Iterable[ContentSegment], used_ids: Collection[str] = ()) -> list[dict[str, Any]]:
    """Return segments as the SDK's output items: one message, then the calls.

    Results must directly follow calls, so text after a call moves before it; the message records the order. A
    call id in ``used_ids`` is replaced.
    """
    ids = set(used_ids)
    others: list[ContentSegment] = []
    calls_before: list[int] = []
    calls: list[dict[str, Any]] = []
    for segment in segments:
        if segment.tool_call is None:
            others.append(segment)
            calls_before.append(len(calls))
        else:
            calls.append(call_item(segment, segment.tool_call, ids))
    return [message_item(others, calls_before), *calls] if others or not calls else calls


def message_item(segments: Sequence[ContentSegment], calls: Sequence[int] = ()) -> dict[str, Any]:
    """Return segments as one message."""
    texts = [segment.text for segment in segments if segment.type == "text"]
    parts: list[dict[str, Any]] = [
        {"type": "output_text", "text": text, "annotations": [], "logprobs": []} for text in texts or [""]
    ]
    data = message_data(segments, calls)
    return {
        "id": NO_ID,
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": parts,
        **({} if data is None else {"provider_data": data}),
    }


def call_item(segment: ContentSegment, call: ProviderToolCall, ids: set[str]) -> dict[str, Any]:
    """Return a call as an item, and add its id to ``ids``.

    A new id replaces a repeated one; a digest one that is too long for OpenAI.
    """
    call_id = call.id if len(call.id) <= _LONGEST_ID else _digest(call.id)
    call_id = str(uuid4()) if call_id in ids else call_id
    ids.add(call_id)
    data = call_data(segment, call)
    return {
        "type": "function_call",
        "call_id": call_id,
        "name": call.name,
        "arguments": json.dumps(call.args, ensure_ascii=False, allow_nan=False),
        **({} if data is None else {"provider_data": data}),
    }


def _digest(call_id: str) -> str:
    return f"call_{hashlib.sha256(call_id.encode()).hexdigest()[:32]}"


def segments_of_item(
    item: Mapping[str, Any], path: str, losses: Losses, *, keep_unknown: bool = False
) -> list[ContentSegment] | None:
    """Return the segments of an assistant's item; None for another item."""
    kind = item.get("type")
    if kind == "function_call":
        return [_call(item, path, losses, keep_unknown=keep_unknown)]
    if kind == IMAGE and isinstance(item.get("result"), str) and item["result"]:
        fields = {"type": IMAGE, **unknown_fields(item, "type", "result")} if keep_unknown else {}
        mime_type = image_type(item)
        try:
            extra = fields_extra(fields)
            return [ContentSegment("image", data=item["result"], mime_type=mime_type, extra=extra)]
        except InvalidProtocolValueError as error:
            raise invalid_item(error, path) from None
    if item.get("role") == "assistant" and kind in (None, "message"):
        return _assistant_segments(item, path, losses, keep_unknown=keep_unknown)
    return [] if isinstance(kind, str) and kind in BOOKKEEPING else None


def image_type(item: Mapping[str, Any]) -> str:
    """Return the type of a generated image."""
    return f"image/{item.get('output_format') or 'png'}"


def _assistant_segments(
    item: Mapping[str, Any], path: str, losses: Losses, *, keep_unknown: bool
) -> list[ContentSegment]:
    segments = segments_of_content(item.get("content"), f"{path}.content", losses, keep_unknown=keep_unknown)
    if any(segment.type != "text" for segment in segments):
        return segments
    if has_provider_data(item):
        try:
            return message_segments(item, (segment.text or "" for segment in segments))
        except (InvalidProtocolValueError, AttributeError, TypeError, ValueError) as error:
            losses.add(f"{path}.provider_data", f"cannot be read: {error}")
            return segments
    fields = (
        unknown_fields(item, "type", "role", "content", "provider_data")
        if keep_unknown and item.get("id") != NO_ID
        else {}
    )
    return [with_extra(segments[0], OWNER, message=fields), *segments[1:]] if segments else []


def _call(item: Mapping[str, Any], path: str, losses: Losses, *, keep_unknown: bool) -> ContentSegment:
    name, call_id, arguments = item.get("name"), item.get("call_id"), item.get("arguments")
    try:
        call = ProviderToolCall(name, arguments_of(arguments), call_id)  # type: ignore[arg-type]
        segment = call_segment(item, call)
        if keep_unknown and not has_provider_data(item):
            segment = with_extra(segment, OWNER, fields=unknown_fields(item, *_OF_CALL))
    except InvalidProtocolValueError as error:
        for problem in error.problems:
            losses.add(path, problem)
        return ContentSegment.of_text("")
    return segment


def arguments_of(text: Any) -> Any:
    """Return parsed arguments, or the string."""
    if text is None or text == "":
        return {}
    try:
        return _DECODER.decode(text)
    except (ValueError, TypeError, RecursionError):
        return text


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
