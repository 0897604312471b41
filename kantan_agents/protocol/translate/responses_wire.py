"""Segments of an assistant as items of the Responses API, with nothing in them that the API does not know."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from kantan_agents.protocol.json_data import plain
from kantan_agents.protocol.translate.losses import Losses
from kantan_agents.protocol.translate.responses_items import IMAGE, image_type
from kantan_agents.protocol.translate.responses_parts import text_part
from kantan_agents.protocol.types import ContentSegment, ProviderToolCall


def wire_items(segments: Iterable[ContentSegment], losses: Losses, path: str) -> list[dict[str, Any]]:
    """Return the segments as items, in order; texts between two calls are one message.

    Args:
        segments: The segments.
        losses: Where to note what no item has a place for.
        path: Where the segments stand, ending in a dot.
    """
    items: list[dict[str, Any]] = []
    content: list[dict[str, Any]] | None = None
    for place, segment in enumerate(segments):
        where = f"{path}segments[{place}]."
        own = losses.own(segment.extra, where, "fields", "message", "before", "after")
        before, after = losses.blocks(own, "before", where), losses.blocks(own, "after", where)
        items += before
        if segment.type != "text":
            items += _other(segment, own, losses, where)
            content = None
        else:
            if content is None or before or "message" in own:
                content = []
                message = {"type": "message", "role": "assistant", "content": content}
                items.append(losses.with_fields(message, {"fields": own.get("message", {})}, where))
            part = losses.with_fields(text_part(segment), own, where)
            content.append({**part, "annotations": []} if _lacks_annotations(part) else part)
        if after:
            items += after
            content = None
    return items


def _lacks_annotations(part: Mapping[str, Any]) -> bool:
    return part["type"] == "output_text" and "annotations" not in part


def _other(
    segment: ContentSegment, own: Mapping[str, Any], losses: Losses, path: str
) -> list[dict[str, Any]]:
    if "message" in own:
        losses.add(f"{path}extra.{losses.owner}.message", "has no place here")
    if segment.tool_call is not None:
        return [losses.with_fields(_call(segment.tool_call, losses, path), own, path)]
    fields = own.get("fields")
    is_made = segment.type == "image" and isinstance(fields, Mapping) and fields.get("type") == IMAGE
    if is_made and not segment.is_url and image_type(fields or {}) == segment.mime_type:
        return [losses.with_fields({"result": segment.data}, own, path)]
    losses.add(path[:-1], f"an assistant's message cannot hold {segment.type}")
    return []


def _call(call: ProviderToolCall, losses: Losses, path: str) -> dict[str, Any]:
    losses.own(call.extra, f"{path}toolCall.")
    arguments = json.dumps(plain(call.args), ensure_ascii=False, allow_nan=False)
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments}
