"""Messages (``contents``) in the Gemini API."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from typing import Any

from kantan_agents.models.protocol.provider import Message
from kantan_agents.models.protocol.translate.call_names import CallNames
from kantan_agents.models.protocol.translate.gemini.parts import media_part, parts_of, segment_of
from kantan_agents.models.protocol.translate.gemini.tools import FORMAT, NAME, OWNER
from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.media import Media
from kantan_agents.models.protocol.translate.reader import WireReader, unknown_fields
from kantan_agents.models.protocol.types import MEDIA, ContentSegment

_ROLES = {"user": "user", "assistant": "model"}
_EMPTY_TEXT = {"text": ""}
_RESULT = "result"


def messages_to_gemini(messages: Iterable[Message], instructions: str | None = None) -> dict[str, Any]:
    """Return a conversation as ``systemInstruction`` and ``contents`` of a request.

    The instructions and the leading system messages become ``systemInstruction``. Successive tool results are
    joined to one content, as the API requires. Empty text is omitted, and so are messages without other
    content.

    Args:
        messages: The messages.
        instructions: The system prompt.

    Raises:
        UntranslatableError: E52, with everything that would be lost.
    """
    losses = Losses(FORMAT, OWNER)
    names = CallNames()
    system: list[dict[str, Any]] = [{"text": instructions}] if instructions else []
    contents: list[dict[str, Any]] = []
    in_results = False
    for index, message in enumerate(messages):
        path = f"messages[{index}]."
        if message.role == "tool":
            own = losses.format_extra(message.extra, path, "fields", "part", "content")
            part = _tool_result(message, own, names, losses, path)
            if in_results and not own.get("content"):
                contents[-1]["parts"].append(part)
            else:
                wire = {"role": "user", "parts": [part]}
                contents.append(losses.with_fields(wire, {"fields": own.get("content", {})}, path))
            in_results = True
            continue
        own = losses.format_extra(message.extra, path, "fields", "before")
        parts = [*losses.blocks(own, "before", path), *_parts(message, losses, path)]
        names.add(message)
        if message.role == "system":
            if contents:
                losses.add(f"{path}role", "a system message is only allowed at the beginning")
            system += parts
        elif parts:
            wire = {"role": _ROLES[message.role], "parts": parts}
            contents.append(losses.with_fields(wire, own, path))
            in_results = False
    losses.check()
    return {**({"systemInstruction": {"parts": system}} if system else {}), "contents": contents}


def _parts(message: Message, losses: Losses, path: str) -> list[dict[str, Any]]:
    parts = []
    for index, segment in enumerate(message.segments):
        # An empty segment may only carry another format's data.
        parts += [
            part for part in parts_of(segment, losses, f"{path}segments[{index}].") if part != _EMPTY_TEXT
        ]
    return parts


def _tool_result(
    message: Message, own: dict[str, Any], names: CallNames, losses: Losses, path: str
) -> dict[str, Any]:
    response = losses.with_fields(_function_response(message, names, losses, path), own, path)
    return losses.with_fields({"functionResponse": response}, {"fields": own.get("part", {})}, path)


def messages_from_gemini(data: Any) -> tuple[Message, ...]:
    """Return the messages of a request (``systemInstruction`` and ``contents``).

    ``systemInstruction`` becomes the first message; each tool result becomes a separate message.

    Raises:
        InvalidProtocolValueError: E50, with every problem.
    """
    reader = WireReader("request of the Gemini API", OWNER)
    body = reader.expect(data, dict)
    names = CallNames()
    messages: list[Message | None] = []
    system = reader.field(body, "systemInstruction", dict, "")
    if system is not None:
        messages.append(_message("system", _blocks(system, reader, "systemInstruction."), system, reader, ""))
    items = reader.required(body, "contents", list, "") or []
    for path, item in reader.objects(items, "contents"):
        for message in _messages(item, names, reader, path):
            messages.append(message)
            if message is not None:
                names.add(message)
    reader.check()
    return tuple(message for message in messages if message is not None)


def _blocks(item: dict[str, Any], reader: WireReader, path: str) -> list[tuple[str, dict[str, Any]]]:
    return reader.objects(reader.required(item, "parts", list, path) or [], f"{path}parts")


def _messages(
    item: dict[str, Any], names: CallNames, reader: WireReader, path: str
) -> Iterable[Message | None]:
    roles = {"user": "user", "model": "assistant", "function": "user", None: "user"}
    role = item.get("role")
    if not isinstance(role, (str, type(None))) or role not in roles:
        reader.add(f"{path}role", f"must be user or model, not {role!r}"[:200])
        return
    group: list[tuple[str, dict[str, Any]]] = []
    blocks = _blocks(item, reader, path)
    # The first of only results gets the content's unknown fields.
    is_results = all("functionResponse" in part for _, part in blocks)
    of_content = unknown_fields(item, "role", "parts") if is_results else {}
    for where, part in blocks:
        if "functionResponse" in part and roles[role] == "user":
            if group:
                yield _message("user", group, item, reader, path)
                group = []
            yield _tool_message(part, of_content, names, reader, where)
            of_content = {}
        else:
            group.append((where, part))
    if group or not blocks:
        yield _message(roles[role], group, item, reader, path)


def _message(
    role: Any,
    blocks: list[tuple[str, dict[str, Any]]],
    item: dict[str, Any],
    reader: WireReader,
    path: str,
) -> Message | None:
    segments, left = reader.segments(blocks, lambda part, where: segment_of(part, reader, where))
    fields = unknown_fields(item, "role", "parts") if role != "system" else {}
    return reader.message(role, segments, path, extra=reader.extra(fields=fields, before=left))


def _function_response(message: Message, names: CallNames, losses: Losses, path: str) -> dict[str, Any]:
    """Return a tool result as a function response, with media as ``parts``."""
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


def _tool_message(
    part: dict[str, Any], of_content: dict[str, Any], names: CallNames, reader: WireReader, path: str
) -> Message | None:
    """Return the message of a ``functionResponse``.

    Without an id, it belongs to the tool's first call without a result. ``of_content`` are the content's
    unknown fields.
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
