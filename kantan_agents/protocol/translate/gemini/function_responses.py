"""The results of tools in the Gemini API."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from kantan_agents.protocol.provider import Message
from kantan_agents.protocol.translate.call_names import CallNames
from kantan_agents.protocol.translate.gemini.parts import media_part, segment_of
from kantan_agents.protocol.translate.gemini.tools import NAME
from kantan_agents.protocol.translate.losses import Losses
from kantan_agents.protocol.translate.media import Media
from kantan_agents.protocol.translate.reading import Reading, unknown
from kantan_agents.protocol.types import MEDIA, ContentSegment

_RESULT = "result"


def function_response(message: Message, names: CallNames, losses: Losses, path: str) -> dict[str, Any]:
    """Return the result of a tool as a part: its texts under ``result``, then its media as parts."""
    name = message.tool_name or names.get(message.tool_call_id)
    if name is None:
        losses.add(f"{path}toolName", "is missing, and there is no call with this id before it")
    texts: list[str] = []
    media: list[dict[str, Any]] = []
    for place, segment in enumerate(message.segments):
        where = f"{path}segments[{place}]."
        losses.own(segment.extra, where)
        if segment.type in MEDIA:
            if Media.of(segment).url is not None:
                losses.add(f"{where}data", "is a URL, and the result of a tool takes its media as base64")
            media.append(media_part(segment, losses, where))
        elif segment.type != "text":
            losses.add(where[:-1], f"the result of a tool cannot hold {segment.type}")
        elif media:
            losses.add(where[:-1], "text after media: in this format the texts of a result come first")
        else:
            texts.append(segment.text or "")
    response: dict[str, Any] = {_RESULT: texts[0] if len(texts) == 1 else texts} if texts else {}
    written: dict[str, Any] = {
        "id": message.tool_call_id,
        "name": losses.name(name or "missing", NAME, f"{path}toolName"),
        "response": response,
    }
    return {**written, "parts": media} if media else written


def message_of(
    part: dict[str, Any], of_content: dict[str, Any], names: CallNames, reading: Reading, path: str
) -> Message | None:
    """Return the message of a part with a ``functionResponse``.

    One without an id answers the first call of its name that nobody has answered.

    Args:
        part: The part.
        of_content: What is said of the content it stands in, which this message keeps.
        names: The calls so far.
        reading: Takes the mistakes.
        path: Where the part is.
    """
    inside = f"{path}functionResponse."
    given = reading.needed(part, "functionResponse", dict, path) or {}
    name = reading.needed(given, "name", str, inside)
    call_id = reading.field(given, "id", str, inside) or names.next_open(name) or name
    if call_id is not None:
        names.answered(call_id)
    response = reading.field(given, "response", dict, inside) or {}
    parts = reading.objects(reading.field(given, "parts", list, inside) or [], f"{inside}parts")
    media, left = reading.gathered(parts, lambda item, where: segment_of(item, reading, where))
    if left:
        reading.add(f"{inside}parts", "hold something that is not known")
    texts = [reading.value(partial(ContentSegment.of_text, said), inside) for said in _texts(response)]
    segments = [*(text for text in texts if text is not None), *media]
    fields = unknown(given, "id", "name", "response", "parts")
    extra = reading.kept(fields=fields, part=unknown(part, "functionResponse"), content=of_content)
    return reading.message("tool", segments, path, call_id=call_id, tool_name=name, extra=extra)


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
