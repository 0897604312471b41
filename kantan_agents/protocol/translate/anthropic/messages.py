"""Messages in Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kantan_agents.protocol.provider import Message
from kantan_agents.protocol.translate.anthropic.blocks import around, blocks_of, checked_id, segment_of
from kantan_agents.protocol.translate.anthropic.tools import FORMAT, OWNER
from kantan_agents.protocol.translate.call_names import CallNames
from kantan_agents.protocol.translate.losses import Losses
from kantan_agents.protocol.translate.reading import Reading, unknown

_ROLES = ("user", "assistant")
_MESSAGE = "message"


def messages_to_anthropic(messages: Iterable[Message], instructions: str | None = None) -> dict[str, Any]:
    """Return a conversation as ``system`` and ``messages`` of a request.

    The instructions and the system messages at the beginning are ``system``. The results of tools that
    follow one another are one message, as the API wants it. The API refuses texts without a visible
    character: they are left out, and so is a message that has nothing else.

    Args:
        messages: The messages.
        instructions: The system prompt.

    Raises:
        UntranslatableError: E52, with all that would be lost.
    """
    losses = Losses(FORMAT, OWNER)
    names = CallNames()
    system: list[dict[str, Any]] = []
    if instructions and not instructions.isspace():
        system.append({"type": "text", "text": instructions})
    written: list[dict[str, Any]] = []
    is_answering = False
    for place, message in enumerate(messages):
        path = f"messages[{place}]."
        own = losses.own(message.extra, path, "fields", "before", *_more(message))
        content = [*losses.blocks(own, "before", path), *_content(message, losses, path)]
        names.note(message)
        if message.role == "system":
            if written:
                losses.add(f"{path}role", "a system message can only stand at the beginning")
            system += content
        elif message.role == "tool":
            result = _result(message, content, names, losses, path)
            result = losses.with_fields(result, own, path)
            if is_answering and not own.get(_MESSAGE):
                written[-1]["content"].append(result)
            else:
                wire = {"role": "user", "content": [result]}
                written.append(losses.with_fields(wire, {"fields": own.get(_MESSAGE, {})}, path))
        elif content:
            wire = {"role": message.role, "content": _short(content)}
            written.append(losses.with_fields(wire, own, path))
        is_answering = message.role == "tool" or (is_answering and not content)
    losses.check()
    return {**({"system": _short(system)} if system else {}), "messages": written}


def _more(message: Message) -> tuple[str, ...]:
    return (_MESSAGE,) if message.role == "tool" else ()


def _content(message: Message, losses: Losses, path: str) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for place, segment in enumerate(message.segments):
        where = f"{path}segments[{place}]."
        is_blank = segment.type == "text" and not (segment.text or "").strip()
        blocks += (
            around(segment, losses, where) if is_blank else blocks_of(segment, message.role, losses, where)
        )
    return blocks


def _result(
    message: Message, content: list[dict[str, Any]], names: CallNames, losses: Losses, path: str
) -> dict[str, Any]:
    if message.tool_name not in (None, names.get(message.tool_call_id)):
        losses.add(f"{path}toolName", "is not that of the call, and the format sends only the call's id")
    call_id = checked_id(message.tool_call_id, losses, f"{path}toolCallId")
    result = {"type": "tool_result", "tool_use_id": call_id}
    return {**result, "content": _short(content)} if content else result


def _short(content: list[dict[str, Any]]) -> Any:
    is_text = len(content) == 1 and set(content[0]) == {"type", "text"}
    return content[0]["text"] if is_text else content


def messages_from_anthropic(data: Any) -> tuple[Message, ...]:
    """Return the messages of a request (``system`` and ``messages``); ``system`` is the first of them.

    Each result of a tool is a message of its own, with the tool's name where its call is among them.

    Raises:
        InvalidProtocolValueError: E50, with every mistake.
    """
    reading = Reading("request of Anthropic's Messages API", OWNER)
    body = reading.whole(data, dict)
    names = CallNames()
    messages: list[Message | None] = []
    if body.get("system"):
        segments, left = reading.gathered(_blocks(body["system"], reading, "system"), _reader(reading))
        messages.append(reading.message("system", segments, "system.", extra=reading.kept(before=left)))
    items = reading.needed(body, "messages", list, "") or []
    for path, item in reading.objects(items, "messages"):
        if item.get("role") not in _ROLES:
            reading.add(f"{path}role", f"must be user or assistant, not {item.get('role')!r}"[:200])
            continue
        for message in _messages(item, names, reading, path):
            messages.append(message)
            if message is not None:
                names.note(message)
    reading.check()
    return tuple(message for message in messages if message is not None)


def _reader(reading: Reading) -> Any:
    return lambda block, path: segment_of(block, reading, path)


def _blocks(content: Any, reading: Reading, path: str) -> list[tuple[str, dict[str, Any]]]:
    if isinstance(content, str):
        return [(f"{path}.", {"type": "text", "text": content})]
    if isinstance(content, list):
        return reading.objects(content, path)
    reading.add(path, f"must be a text or a list, not {type(content).__name__}")
    return []


def _messages(
    item: dict[str, Any], names: CallNames, reading: Reading, path: str
) -> Iterable[Message | None]:
    fields = unknown(item, "role", "content")
    group: list[tuple[str, dict[str, Any]]] = []
    blocks = _blocks(item.get("content"), reading, f"{path}content")
    # Where there are results alone, the first of them keeps what is said of the message.
    of_message = fields if all(block.get("type") == "tool_result" for _, block in blocks) else {}
    for where, block in blocks:
        if block.get("type") == "tool_result" and item["role"] == "user":
            if group:
                yield _said(item["role"], group, fields, reading, path)
                group = []
            yield _answer(block, of_message, names, reading, where)
            of_message = {}
        else:
            group.append((where, block))
    if group or not blocks:
        yield _said(item["role"], group, fields, reading, path)


def _said(
    role: Any, blocks: list[tuple[str, dict[str, Any]]], fields: dict[str, Any], reading: Reading, path: str
) -> Message | None:
    segments, left = reading.gathered(blocks, _reader(reading))
    return reading.message(role, segments, path, extra=reading.kept(fields=fields, before=left))


def _answer(
    block: dict[str, Any], of_message: dict[str, Any], names: CallNames, reading: Reading, path: str
) -> Message | None:
    call_id = reading.needed(block, "tool_use_id", str, path)
    content = block.get("content")
    blocks = [] if content is None else _blocks(content, reading, f"{path}content")
    segments, left = reading.gathered(blocks, _reader(reading))
    fields = unknown(block, "type", "tool_use_id", "content")
    extra = reading.kept(fields=fields, before=left, message=of_message)
    return reading.message("tool", segments, path, call_id=call_id, tool_name=names.get(call_id), extra=extra)
