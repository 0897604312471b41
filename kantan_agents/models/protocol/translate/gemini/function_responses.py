"""Tool results in the Gemini API, which calls them function responses."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from kantan_agents.models.protocol.provider import Message
from kantan_agents.models.protocol.translate.call_names import CallNames
from kantan_agents.models.protocol.translate.gemini.parts import media_part, segment_of
from kantan_agents.models.protocol.translate.gemini.tools import NAME
from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.media import Media
from kantan_agents.models.protocol.translate.reader import Reader, unknown_fields
from kantan_agents.models.protocol.types import MEDIA, ContentSegment

_RESULT = "result"


def function_response(message: Message, names: CallNames, losses: Losses, path: str) -> dict[str, Any]:
    """Return a tool result as a function response: its texts under ``result``, its media as ``parts``."""
    name = message.tool_name or names.get(message.tool_call_id)
    if name is None:
        losses.add(f"{path}toolName", "is missing, and no earlier call has this id")
    texts: list[str] = []
    media: list[dict[str, Any]] = []
    for index, segment in enumerate(message.segments):
        where = f"{path}segments[{index}]."
        losses.format_extra(segment.extra, where)
        if segment.type in MEDIA:
            if Media.of(segment).url is not None:
                losses.add(f"{where}data", "is a URL, but media in a tool result must be base64")
            media.append(media_part(segment, losses, where))
        elif segment.type != "text":
            losses.add(where[:-1], f"a tool result cannot hold {segment.type}")
        elif media:
            losses.add(where[:-1], "is text after media: in this format, the texts of a result come first")
        else:
            texts.append(segment.text or "")
    response: dict[str, Any] = {_RESULT: texts[0] if len(texts) == 1 else texts} if texts else {}
    written: dict[str, Any] = {
        "id": message.tool_call_id,
        "name": losses.name(name or "missing", NAME, f"{path}toolName"),
        "response": response,
    }
    return {**written, "parts": media} if media else written


def tool_message(
    part: dict[str, Any], of_content: dict[str, Any], names: CallNames, reader: Reader, path: str
) -> Message | None:
    """Return the message of a part with a ``functionResponse``.

    A function response without an id belongs to the tool's first call that has no result yet.

    Args:
        part: The part.
        of_content: Unknown fields of the surrounding content, which this message keeps.
        names: The calls so far.
        reader: Collects the problems.
        path: Path of the part.
    """
    inside = f"{path}functionResponse."
    given = reader.required(part, "functionResponse", dict, path) or {}
    name = reader.required(given, "name", str, inside)
    call_id = reader.field(given, "id", str, inside) or names.next_open(name) or name
    if call_id is not None:
        names.mark_answered(call_id)
    response = reader.field(given, "response", dict, inside) or {}
    parts = reader.objects(reader.field(given, "parts", list, inside) or [], f"{inside}parts")
    media, left = reader.segments(parts, lambda item, where: segment_of(item, reader, where))
    if left:
        reader.add(f"{inside}parts", "have only unknown types")
    texts = [reader.build(partial(ContentSegment.of_text, text), inside) for text in _texts(response)]
    segments = [*(text for text in texts if text is not None), *media]
    fields = unknown_fields(given, "id", "name", "response", "parts")
    extra = reader.extra(fields=fields, part=unknown_fields(part, "functionResponse"), content=of_content)
    return reader.message("tool", segments, path, call_id=call_id, tool_name=name, extra=extra)


def _texts(response: dict[str, Any]) -> list[str]:
    if not response:
        return []
    result = response.get(_RESULT)
    if len(response) == 1 and isinstance(result, str):
        return [result]
    if len(response) == 1 and isinstance(result, list) and len(result) > 1:
        texts = [text for text in result if isinstance(text, str)]
        if len(texts) == len(result):
            return texts
    return [json.dumps(response, ensure_ascii=False)]
