"""Tool calls in chat completions."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from kantan_agents.models.protocol.json_data import plain
from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.openai_chat.tools import NAME
from kantan_agents.models.protocol.translate.reader import WireReader, unknown_fields
from kantan_agents.models.protocol.types import ContentSegment, ProviderToolCall


def call_to_chat(
    segment: ContentSegment, call: ProviderToolCall, losses: Losses, path: str
) -> dict[str, Any]:
    """Return a call as an item of ``tool_calls``."""
    losses.format_extra(call.extra, f"{path}toolCall.")
    function = {
        "name": losses.name(call.name, NAME, f"{path}toolCall.name"),
        "arguments": json.dumps(plain(call.args), ensure_ascii=False),
    }
    written = {"id": call.id, "type": "function", "function": function}
    return losses.with_fields(written, losses.format_extra(segment.extra, path, "fields"), path)


def call_from_chat(item: dict[str, Any], reader: WireReader, path: str) -> ContentSegment | None:
    """Return an item of ``tool_calls`` as a segment."""
    if item.get("type") not in (None, "function"):
        reader.add(f"{path}type", f"must be function, not {item['type']!r}"[:200])
        return None
    function = reader.required(item, "function", dict, path)
    if function is None:
        return None
    name = reader.required(function, "name", str, f"{path}function.")
    text = reader.field(function, "arguments", str, f"{path}function.") or ""
    call_id = reader.field(item, "id", str, path) or ""
    extra = reader.extra(fields=unknown_fields(item, "id", "type", "function"))
    args = args_of(text)
    if name is None:
        return None
    return reader.build(
        lambda: ContentSegment("tool_call", tool_call=ProviderToolCall(name, args, call_id), extra=extra),
        path,
    )


def args_of(text: str) -> Any:
    """Return parsed arguments, or the string."""
    if not text.strip():
        return {}
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
