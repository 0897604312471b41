"""Messages in Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kantan_agents.models.protocol.provider import Message
from kantan_agents.models.protocol.translate.anthropic.blocks import (
    blocks_of,
    checked_id,
    segment_of,
    surrounding_blocks,
)
from kantan_agents.models.protocol.translate.anthropic.tools import FORMAT, OWNER
from kantan_agents.models.protocol.translate.call_names import CallNames
from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.reader import WireReader, unknown_fields

_ROLES = ("user", "assistant")
_MESSAGE = "message"


def messages_to_anthropic(messages: Iterable[Message], instructions: str | None = None) -> dict[str, Any]:
    """Return a conversation as ``system`` and ``messages`` of a request.

    The instructions and the leading system messages become ``system``. Successive tool results are joined to
    one message, as the API requires. Text without a visible character, which the API rejects, is omitted, and
    so are messages without other content.

    Args:
        messages: The messages.
        instructions: The system prompt.

    Raises:
        UntranslatableError: E52, with everything that would be lost.
    """
    losses = Losses(FORMAT, OWNER)
    names = CallNames()
    system: list[dict[str, Any]] = []
    if instructions and not instructions.isspace():
        system.append({"type": "text", "text": instructions})
    written: list[dict[str, Any]] = []
    in_results = False
    for index, message in enumerate(messages):
        path = f"messages[{index}]."
        own = losses.format_extra(message.extra, path, "fields", "before", *_message_part(message))
        content = [*losses.blocks(own, "before", path), *_content(message, losses, path)]
        names.add(message)
        if message.role == "system":
            if written:
                losses.add(f"{path}role", "a system message is only allowed at the beginning")
            system += content
        elif message.role == "tool":
            result = _tool_result(message, content, names, losses, path)
            result = losses.with_fields(result, own, path)
            if in_results and not own.get(_MESSAGE):
                written[-1]["content"].append(result)
            else:
                wire = {"role": "user", "content": [result]}
                written.append(losses.with_fields(wire, {"fields": own.get(_MESSAGE, {})}, path))
        elif content:
            wire = {"role": message.role, "content": _compact(content)}
            written.append(losses.with_fields(wire, own, path))
        in_results = message.role == "tool" or (in_results and not content)
    losses.check()
    return {**({"system": _compact(system)} if system else {}), "messages": written}


def _message_part(message: Message) -> tuple[str, ...]:
    return (_MESSAGE,) if message.role == "tool" else ()


def _content(message: Message, losses: Losses, path: str) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for index, segment in enumerate(message.segments):
        where = f"{path}segments[{index}]."
        is_blank = segment.type == "text" and not (segment.text or "").strip()
        blocks += (
            surrounding_blocks(segment, losses, where)
            if is_blank
            else blocks_of(segment, message.role, losses, where)
        )
    return blocks


def _tool_result(
    message: Message, content: list[dict[str, Any]], names: CallNames, losses: Losses, path: str
) -> dict[str, Any]:
    if message.tool_name not in (None, names.get(message.tool_call_id)):
        losses.add(f"{path}toolName", "is not that of the call, and the format sends only the call's id")
    call_id = checked_id(message.tool_call_id, losses, f"{path}toolCallId")
    result = {"type": "tool_result", "tool_use_id": call_id}
    return {**result, "content": _compact(content)} if content else result


def _compact(content: list[dict[str, Any]]) -> Any:
    is_text = len(content) == 1 and set(content[0]) == {"type", "text"}
    return content[0]["text"] if is_text else content


def messages_from_anthropic(data: Any) -> tuple[Message, ...]:
    """Return the messages of a request (``system`` and ``messages``); ``system`` becomes the first message.

    Each tool result becomes a separate message, with the tool's name if its call is in the conversation.

    Raises:
        InvalidProtocolValueError: E50, with every problem.
    """
    reader = WireReader("request of Anthropic's Messages API", OWNER)
    body = reader.expect(data, dict)
    names = CallNames()
    messages: list[Message | None] = []
    if body.get("system"):
        segments, left = reader.segments(_blocks(body["system"], reader, "system"), _reader(reader))
        messages.append(reader.message("system", segments, "system.", extra=reader.extra(before=left)))
    items = reader.required(body, "messages", list, "") or []
    for path, item in reader.objects(items, "messages"):
        if item.get("role") not in _ROLES:
            reader.add(f"{path}role", f"must be user or assistant, not {item.get('role')!r}"[:200])
            continue
        for message in _messages(item, names, reader, path):
            messages.append(message)
            if message is not None:
                names.add(message)
    reader.check()
    return tuple(message for message in messages if message is not None)


def _reader(reader: WireReader) -> Any:
    return lambda block, path: segment_of(block, reader, path)


def _blocks(content: Any, reader: WireReader, path: str) -> list[tuple[str, dict[str, Any]]]:
    if isinstance(content, str):
        return [(f"{path}.", {"type": "text", "text": content})]
    if isinstance(content, list):
        return reader.objects(content, path)
    reader.add(path, f"must be a text or a list, not {type(content).__name__}")
    return []


def _messages(
    item: dict[str, Any], names: CallNames, reader: WireReader, path: str
) -> Iterable[Message | None]:
    fields = unknown_fields(item, "role", "content")
    group: list[tuple[str, dict[str, Any]]] = []
    blocks = _blocks(item.get("content"), reader, f"{path}content")
    # The first of only results gets the message's unknown fields.
    of_message = fields if all(block.get("type") == "tool_result" for _, block in blocks) else {}
    for where, block in blocks:
        if block.get("type") == "tool_result" and item["role"] == "user":
            if group:
                yield _message(item["role"], group, fields, reader, path)
                group = []
            yield _tool_message(block, of_message, names, reader, where)
            of_message = {}
        else:
            group.append((where, block))
    if group or not blocks:
        yield _message(item["role"], group, fields, reader, path)


def _message(
    role: Any, blocks: list[tuple[str, dict[str, Any]]], fields: dict[str, Any], reader: WireReader, path: str
) -> Message | None:
    segments, left = reader.segments(blocks, _reader(reader))
    return reader.message(role, segments, path, extra=reader.extra(fields=fields, before=left))


def _tool_message(
    block: dict[str, Any], of_message: dict[str, Any], names: CallNames, reader: WireReader, path: str
) -> Message | None:
    call_id = reader.required(block, "tool_use_id", str, path)
    content = block.get("content")
    blocks = [] if content is None else _blocks(content, reader, f"{path}content")
    segments, left = reader.segments(blocks, _reader(reader))
    fields = unknown_fields(block, "type", "tool_use_id", "content")
    extra = reader.extra(fields=fields, before=left, message=of_message)
    return reader.message("tool", segments, path, call_id=call_id, tool_name=names.get(call_id), extra=extra)
