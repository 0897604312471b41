"""Messages in chat completions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, get_args

from kantan_agents.models.protocol.provider import Message, Role
from kantan_agents.models.protocol.translate.call_names import CallNames
from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.openai_chat.calls import call_from_chat, call_to_chat
from kantan_agents.models.protocol.translate.openai_chat.parts import part_to_chat, parts_from_chat
from kantan_agents.models.protocol.translate.openai_chat.tools import FORMAT, OWNER
from kantan_agents.models.protocol.translate.reader import WireReader, unknown_fields
from kantan_agents.models.protocol.types import ContentSegment


def messages_to_openai_chat(
    messages: Iterable[Message], instructions: str | None = None
) -> list[dict[str, Any]]:
    """Return a conversation as the ``messages`` of a request.

    Args:
        messages: The messages.
        instructions: The system prompt; it becomes the first message.

    Raises:
        UntranslatableError: E52, with everything that would be lost.
    """
    losses = Losses(FORMAT, OWNER)
    names = CallNames()
    written: list[dict[str, Any]] = []
    if instructions is not None:
        written.append({"role": "system", "content": instructions})
    for index, message in enumerate(messages):
        path = f"messages[{index}]."
        own = losses.format_extra(message.extra, path, "fields", "before")
        wire: dict[str, Any] = {"role": message.role}
        if message.role == "tool":
            wire["tool_call_id"] = message.tool_call_id
            if message.tool_name not in (None, names.get(message.tool_call_id)):
                losses.add(
                    f"{path}toolName", "is not that of the call, and the format sends only the call's id"
                )
        names.add(message)
        wire |= _content(message, own, losses, path)
        written.append(losses.with_fields(wire, own, path))
    losses.check()
    return written


def _content(message: Message, own: dict[str, Any], losses: Losses, path: str) -> dict[str, Any]:
    parts: list[dict[str, Any]] = list(losses.blocks(own, "before", path))
    calls = []
    for index, segment in enumerate(message.segments):
        where = f"{path}segments[{index}]."
        if segment.tool_call is not None:
            calls.append(call_to_chat(segment, segment.tool_call, losses, where))
            continue
        if calls:
            losses.add(where[:-1], f"is {segment.type} after a tool call: in this format, calls come last")
        parts += part_to_chat(segment, message.role, losses, where)
    content: Any = parts
    if len(parts) == 1 and set(parts[0]) == {"type", "text"}:
        content = parts[0]["text"]
    elif not parts and calls:
        content = None
    return {"content": content, "tool_calls": calls} if calls else {"content": content}


def messages_from_openai_chat(data: Any) -> tuple[Message, ...]:
    """Return the messages of a request; the instructions are the first message, with the role system.

    A tool result gets the tool's name from its call, if that is in the conversation.

    Raises:
        InvalidProtocolValueError: E50, with every problem.
    """
    reader = WireReader("list of messages of chat completions", OWNER)
    names = CallNames()
    messages: list[Message] = []
    for path, item in reader.objects(reader.expect(data, list), "messages"):
        role = item.get("role")
        if role not in get_args(Role):
            reader.add(f"{path}role", f"must be one of {', '.join(get_args(Role))}, not {role!r}"[:200])
            continue
        message = _message(item, role, names, reader, path)
        if message is not None:
            names.add(message)
            messages.append(message)
    reader.check()
    return tuple(messages)


def _message(
    item: dict[str, Any], role: Any, names: CallNames, reader: WireReader, path: str
) -> Message | None:
    segments, left = parts_from_chat(item.get("content"), reader, f"{path}content")
    known = ["role", "content"]
    call_id = None
    if role == "assistant":
        known.append("tool_calls")
        segments += calls_of(item, reader, path)
    if role == "tool":
        known.append("tool_call_id")
        call_id = reader.required(item, "tool_call_id", str, path)
    extra = reader.extra(fields=unknown_fields(item, *known), before=left)
    return reader.message(role, segments, path, call_id=call_id, tool_name=names.get(call_id), extra=extra)


def calls_of(item: dict[str, Any], reader: WireReader, path: str) -> Sequence[ContentSegment]:
    """Return an assistant's tool calls as segments."""
    calls = reader.field(item, "tool_calls", list, path) or []
    found = [call_from_chat(call, reader, at) for at, call in reader.objects(calls, f"{path}tool_calls")]
    return [segment for segment in found if segment is not None]
