"""Stores in ``provider_data`` what an SDK item cannot hold.

The SDK preserves it in sessions, stored runs and further turns, and never sends it to OpenAI.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from kantan_agents.models.protocol.json_data import copied, plain
from kantan_agents.models.protocol.types import ContentSegment, ProviderToolCall

_KEY = "kantan_agents"
_SEGMENTS, _EXTRAS, _FILLER, _CALLS = "segments", "extras", "filler", "calls"
_LONG = 1_000
_SEGMENT, _CALL = "segment", "call"


def message_data(segments: Sequence[ContentSegment], calls: Sequence[int] = ()) -> dict[str, Any] | None:
    """Return an assistant message's ``provider_data``, if needed.

    It excludes text: a middleware that rewrites the message must leave no copy. ``calls`` counts the calls
    before each segment.
    """
    others: list[Any] = []
    extras: dict[str, Any] = {}
    texts = 0
    for segment in segments:
        if segment.type == "text":
            if segment.extra:
                extras[str(texts)] = plain(segment.extra)
            texts += 1
        else:
            others.append([texts, segment.to_dict()])
    data: dict[str, Any] = {_SEGMENTS: others, _EXTRAS: extras, _FILLER: not texts}
    if any(calls):
        data[_CALLS] = list(calls)
    data = {name: value for name, value in data.items() if value}
    return {_KEY: data} if data else None


def message_segments(item: Mapping[str, Any], texts: Iterable[str]) -> list[ContentSegment]:
    """Return a message's segments."""
    data = _data(item)
    extras = data.get(_EXTRAS) or {}
    written = [
        ContentSegment("text", text=text, extra=copied(extras.get(str(index), {})))
        for index, text in enumerate(texts)
    ]
    if data.get(_FILLER) and not "".join(segment.text or "" for segment in written):
        written = []
    segments: list[ContentSegment] = []
    index = 0
    for before, segment in data.get(_SEGMENTS) or ():
        segments += written[index:before]
        index = max(index, before)
        segments.append(ContentSegment.from_dict(segment).copied())
    return segments + written[index:]


def calls_before(item: Mapping[str, Any], segments: Sequence[ContentSegment]) -> list[int]:
    """Return the number of calls before each segment."""
    calls = _data(item).get(_CALLS)
    # The recorded order does not apply to another number of parts.
    if not isinstance(calls, list) or len(calls) != len(segments):
        return [0] * len(segments)
    return [count if isinstance(count, int) else 0 for count in calls]


def has_provider_data(item: Mapping[str, Any]) -> bool:
    """Return whether this library's data are present."""
    return bool(_data(item))


def without_media(item: Any) -> Any:
    """Replace long media by their size, for traces."""
    # Only an assistant's item can have segments there.
    data = _data(item) if isinstance(item, Mapping) and item.get("role") == "assistant" else {}
    if not any(len(segment.get("data") or "") > _LONG for _, segment in data.get(_SEGMENTS) or ()):
        return item
    shown = [[index, _shown(segment)] for index, segment in data[_SEGMENTS]]
    return {**item, "provider_data": {**item["provider_data"], _KEY: {**data, _SEGMENTS: shown}}}


def _shown(segment: Mapping[str, Any]) -> dict[str, Any]:
    size = len(segment.get("data") or "")
    return {**segment, "data": f"<{size} characters>"} if size > _LONG else dict(segment)


def call_data(segment: ContentSegment, call: ProviderToolCall) -> dict[str, Any] | None:
    """Return a call's ``provider_data``, if any."""
    data = {name: plain(extra) for name, extra in ((_SEGMENT, segment.extra), (_CALL, call.extra)) if extra}
    return {_KEY: data} if data else None


def call_segment(item: Mapping[str, Any], call: ProviderToolCall) -> ContentSegment:
    """Return a call's segment with its ``extra``."""
    data = _data(item)
    if data.get(_CALL):
        call = attrs.evolve(call, extra=copied(data[_CALL]))
    return ContentSegment("tool_call", tool_call=call, extra=copied(data.get(_SEGMENT) or {}))


def _data(item: Mapping[str, Any]) -> Mapping[str, Any]:
    provider_data = item.get("provider_data")
    data = provider_data.get(_KEY) if isinstance(provider_data, Mapping) else None
    return data if isinstance(data, Mapping) else {}
