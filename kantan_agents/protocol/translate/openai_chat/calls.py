"""Tool calls in chat completions: their arguments are JSON text."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from kantan_agents.protocol.json_data import plain
from kantan_agents.protocol.translate.losses import Losses
from kantan_agents.protocol.translate.openai_chat.tools import NAME
from kantan_agents.protocol.translate.reading import Reading, unknown
from kantan_agents.protocol.types import ContentSegment, ProviderToolCall


def call_to_chat(
    segment: ContentSegment, call: ProviderToolCall, losses: Losses, path: str
) -> dict[str, Any]:
    """Return a call as one of ``tool_calls``."""
    losses.own(call.extra, f"{path}toolCall.")
    function = {
        "name": losses.name(call.name, NAME, f"{path}toolCall.name"),
        "arguments": json.dumps(plain(call.args), ensure_ascii=False),
    }
    written = {"id": call.id, "type": "function", "function": function}
    return losses.with_fields(written, losses.own(segment.extra, path, "fields"), path)


def call_from_chat(item: dict[str, Any], reading: Reading, path: str) -> ContentSegment | None:
    """Return the segment of one of ``tool_calls``; None if it is none, which is a mistake."""
    if item.get("type") not in (None, "function"):
        reading.add(f"{path}type", f"must be function, not {item['type']!r}"[:200])
        return None
    function = reading.needed(item, "function", dict, path)
    if function is None:
        return None
    name = reading.needed(function, "name", str, f"{path}function.")
    text = reading.field(function, "arguments", str, f"{path}function.") or ""
    call_id = reading.field(item, "id", str, path) or ""
    extra = reading.kept(fields=unknown(item, "id", "type", "function"))
    args = args_of(text)
    if name is None:
        return None
    return reading.value(
        lambda: ContentSegment("tool_call", tool_call=ProviderToolCall(name, args, call_id), extra=extra),
        path,
    )


def args_of(text: str) -> Any:
    """Return the arguments a model has written: an empty text means none, what is no JSON stays text."""
    if not text.strip():
        return {}
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
