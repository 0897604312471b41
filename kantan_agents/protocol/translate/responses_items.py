"""Segments of an answer as output items of the Responses format, and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from kantan_agents.errors import InvalidProtocolValueError
from kantan_agents.protocol.translate.carried import (
    call_data,
    is_ours,
    message_data,
    message_segments,
    with_call_data,
)
from kantan_agents.protocol.translate.reading import unknown, with_own
from kantan_agents.protocol.translate.responses_parts import OWNER, Problems, own_extra, segments_of_content
from kantan_agents.protocol.types import ContentSegment, ProviderToolCall

NO_ID = "__fake_id__"
"""The SDK's id of a message that no provider knows by an id."""

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
"""Items by which a provider keeps account of how it came to an answer; they mean nothing to another."""


def output_items(segments: Iterable[ContentSegment], taken: Collection[str] = ()) -> list[dict[str, Any]]:
    """Return the segments of an answer as output items of the SDK: one message, then the calls.

    A text that follows a call stands before it: results must come right after the calls in the formats the
    SDK makes of the items. The message carries the order, in which the segments are read again.

    Args:
        segments: The segments; of none at all there is an empty message.
        taken: Ids of calls that were made before. A call whose id is one of them, or is that of another call
            of this answer, gets a new one: results are told apart by it.
    """
    ids = set(taken)
    said: list[ContentSegment] = []
    places: list[int] = []
    calls: list[dict[str, Any]] = []
    for segment in segments:
        if segment.tool_call is None:
            said.append(segment)
            places.append(len(calls))
        else:
            calls.append(call_item(segment, segment.tool_call, ids))
    return [message_item(said, places), *calls] if said or not calls else calls


def message_item(segments: Sequence[ContentSegment], calls: Sequence[int] = ()) -> dict[str, Any]:
    """Return segments of an assistant as one message; ``calls`` is how many calls stand before each."""
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
    """Return a call as an item; its id is added to ``ids``, and is a new one if it stands there already.

    An id longer than OpenAI takes is replaced by a digest of it.
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
    item: Mapping[str, Any], path: str, problems: Problems, *, keeps: bool = False
) -> list[ContentSegment] | None:
    """Return the segments of an item in which an assistant says or calls something; None of any other.

    Args:
        item: The item.
        path: Where it stands, for problems.
        problems: Where to note what cannot be read.
        keeps: Whether ``extra`` of the segments keeps what the protocol has no field for.
    """
    kind = item.get("type")
    if kind == "function_call":
        return [_call(item, path, problems, keeps=keeps)]
    if kind == IMAGE and isinstance(item.get("result"), str) and item["result"]:
        fields = {"type": IMAGE, **unknown(item, "type", "result")} if keeps else {}
        mime_type = image_type(item)
        return [ContentSegment("image", data=item["result"], mime_type=mime_type, extra=own_extra(fields))]
    if item.get("role") == "assistant" and kind in (None, "message"):
        return _said(item, path, problems, keeps=keeps)
    return [] if isinstance(kind, str) and kind in BOOKKEEPING else None


def image_type(item: Mapping[str, Any]) -> str:
    """Return the media type of an image that OpenAI has made."""
    return f"image/{item.get('output_format') or 'png'}"


def _said(item: Mapping[str, Any], path: str, problems: Problems, *, keeps: bool) -> list[ContentSegment]:
    segments = segments_of_content(item.get("content"), f"{path}.content", problems, keeps=keeps)
    if any(segment.type != "text" for segment in segments):
        return segments
    if is_ours(item):
        try:
            return message_segments(item, (segment.text or "" for segment in segments))
        except (InvalidProtocolValueError, AttributeError, TypeError, ValueError) as error:
            problems.add(f"{path}.provider_data", f"cannot be read: {error}")
            return segments
    fields = (
        unknown(item, "type", "role", "content", "provider_data") if keeps and item.get("id") != NO_ID else {}
    )
    return [with_own(segments[0], OWNER, message=fields), *segments[1:]] if segments else []


def _call(item: Mapping[str, Any], path: str, problems: Problems, *, keeps: bool) -> ContentSegment:
    name, call_id, arguments = item.get("name"), item.get("call_id"), item.get("arguments")
    try:
        call = ProviderToolCall(name, arguments_of(arguments), call_id)  # type: ignore[arg-type]
        segment = with_call_data(item, call)
        if keeps and not is_ours(item):
            segment = with_own(segment, OWNER, fields=unknown(item, *_OF_CALL))
    except InvalidProtocolValueError as error:
        for problem in error.problems:
            problems.add(path, problem)
        return ContentSegment.of_text("")
    return segment


def arguments_of(text: Any) -> Any:
    """Return the arguments of a call: what the JSON text says, the text itself if it is no JSON."""
    if text is None or text == "":
        return {}
    try:
        return _DECODER.decode(text)
    except (ValueError, TypeError, RecursionError):
        return text


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
