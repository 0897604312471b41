"""Assistant segments as items for the Responses API."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from kantan_agents.models.protocol.json_data import plain
from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.openai_responses.items import IMAGE, image_type
from kantan_agents.models.protocol.translate.openai_responses.parts import text_part
from kantan_agents.models.protocol.types import ContentSegment, ProviderToolCall


def wire_items(segments: Iterable[ContentSegment], losses: Losses, path: str) -> list[dict[str, Any]]:
    """Return the segments as items, in order."""
    items: list[dict[str, Any]] = []
    content: list[dict[str, Any]] | None = None
    for index, segment in enumerate(segments):
        where = f"{path}segments[{index}]."
        own = losses.format_extra(segment.extra, where, "fields", "message", "before", "after")
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
        losses.add(f"{path}extra.{losses.owner}.message", "is not allowed here")
    if segment.tool_call is not None:
        return [losses.with_fields(_call(segment.tool_call, losses, path), own, path)]
    fields = own.get("fields")
    is_generated = segment.type == "image" and isinstance(fields, Mapping) and fields.get("type") == IMAGE
    if is_generated and not segment.is_url and image_type(fields or {}) == segment.mime_type:
        return [losses.with_fields({"result": segment.data}, own, path)]
    losses.add(path[:-1], f"an assistant's message cannot hold {segment.type}")
    return []


def _call(call: ProviderToolCall, losses: Losses, path: str) -> dict[str, Any]:
    losses.format_extra(call.extra, f"{path}toolCall.")
    arguments = json.dumps(plain(call.args), ensure_ascii=False, allow_nan=False)
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments}
