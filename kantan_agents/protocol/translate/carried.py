"""What the items of the Responses format have no place for, carried along in ``provider_data``.

The SDK keeps that field of an item through sessions, stored runs and further turns, and takes it out again
before an item goes to OpenAI.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from kantan_agents.protocol.types import ContentSegment, ProviderToolCall

_KEY = "kantan_agents"
_SEGMENTS, _EXTRAS, _FILLER, _CALLS = "segments", "extras", "filler", "calls"
_LONG = 1_000
_SEGMENT, _CALL = "segment", "call"


def message_data(segments: Sequence[ContentSegment], calls: Sequence[int] = ()) -> dict[str, Any] | None:
    """Return what an assistant's message of these segments carries besides its texts, None for nothing.

    Texts stand in the message alone: whoever rewrites them there has rewritten all there is.

    Args:
        segments: The segments, without calls.
        calls: For each, how many calls of the answer stand before it.
    """
    others: list[Any] = []
    extras: dict[str, Any] = {}
    texts = 0
    for segment in segments:
        if segment.type == "text":
            if segment.extra:
                extras[str(texts)] = dict(segment.extra)
            texts += 1
        else:
            others.append([texts, segment.to_dict()])
    data: dict[str, Any] = {_SEGMENTS: others, _EXTRAS: extras, _FILLER: not texts}
    if any(calls):
        data[_CALLS] = list(calls)
    kept = {name: value for name, value in data.items() if value}
    return {_KEY: kept} if kept else None


def message_segments(item: Mapping[str, Any], texts: Iterable[str]) -> list[ContentSegment]:
    """Return the segments of an assistant's message in order.

    Args:
        item: The message.
        texts: The texts of its parts.
    """
    data = _data(item)
    extras = data.get(_EXTRAS) or {}
    written = [
        ContentSegment("text", text=text, extra=extras.get(str(place), {}))
        for place, text in enumerate(texts)
    ]
    if data.get(_FILLER) and not "".join(segment.text or "" for segment in written):
        written = []
    segments: list[ContentSegment] = []
    place = 0
    for before, segment in data.get(_SEGMENTS) or ():
        segments += written[place:before]
        place = max(place, before)
        segments.append(ContentSegment.from_dict(segment))
    return segments + written[place:]


def calls_before(item: Mapping[str, Any], segments: Sequence[ContentSegment]) -> list[int]:
    """Return for each segment of a message how many calls of the answer stand before it."""
    calls = _data(item).get(_CALLS)
    # Whoever has made more or fewer texts of the message has left no order to go by.
    if not isinstance(calls, list) or len(calls) != len(segments):
        return [0] * len(segments)
    return [count if isinstance(count, int) else 0 for count in calls]


def is_ours(item: Mapping[str, Any]) -> bool:
    """Return whether an item carries something of ours."""
    return bool(_data(item))


def without_media(item: Any) -> Any:
    """Return an item without what it carries of long media: for where nobody looks at them."""
    # Of any other item it has not been read whether that is ours at all.
    data = _data(item) if isinstance(item, Mapping) and item.get("role") == "assistant" else {}
    if not any(len(segment.get("data") or "") > _LONG for _, segment in data.get(_SEGMENTS) or ()):
        return item
    shown = [[place, _shown(segment)] for place, segment in data[_SEGMENTS]]
    return {**item, "provider_data": {**item["provider_data"], _KEY: {**data, _SEGMENTS: shown}}}


def _shown(segment: Mapping[str, Any]) -> dict[str, Any]:
    size = len(segment.get("data") or "")
    return {**segment, "data": f"<{size} characters>"} if size > _LONG else dict(segment)


def call_data(segment: ContentSegment, call: ProviderToolCall) -> dict[str, Any] | None:
    """Return what a function call carries besides name, arguments and id, None for nothing."""
    kept = {name: dict(extra) for name, extra in ((_SEGMENT, segment.extra), (_CALL, call.extra)) if extra}
    return {_KEY: kept} if kept else None


def with_call_data(item: Mapping[str, Any], call: ProviderToolCall) -> ContentSegment:
    """Return the segment of a call with what its item carries."""
    data = _data(item)
    if data.get(_CALL):
        call = attrs.evolve(call, extra=data[_CALL])
    return ContentSegment("tool_call", tool_call=call, extra=data.get(_SEGMENT) or {})


def _data(item: Mapping[str, Any]) -> Mapping[str, Any]:
    provider_data = item.get("provider_data")
    data = provider_data.get(_KEY) if isinstance(provider_data, Mapping) else None
    return data if isinstance(data, Mapping) else {}
