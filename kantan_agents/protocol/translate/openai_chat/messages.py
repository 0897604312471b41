"""Messages in chat completions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, get_args

from kantan_agents.protocol.provider import Message, Role
from kantan_agents.protocol.translate.call_names import CallNames
from kantan_agents.protocol.translate.losses import Losses
from kantan_agents.protocol.translate.openai_chat.calls import call_from_chat, call_to_chat
from kantan_agents.protocol.translate.openai_chat.parts import part_to_chat, parts_from_chat
from kantan_agents.protocol.translate.openai_chat.tools import FORMAT, OWNER
from kantan_agents.protocol.translate.reading import Reading, unknown
from kantan_agents.protocol.types import ContentSegment


def messages_to_openai_chat(
    messages: Iterable[Message], instructions: str | None = None
) -> list[dict[str, Any]]:
    """Return a conversation as the ``messages`` of a request.

    Args:
        messages: The messages.
        instructions: The system prompt; it becomes the first message.

    Raises:
        UntranslatableError: E52, with all that would be lost.
    """
    losses = Losses(FORMAT, OWNER)
    names = CallNames()
    written: list[dict[str, Any]] = []
    if instructions is not None:
        written.append({"role": "system", "content": instructions})
    for place, message in enumerate(messages):
        path = f"messages[{place}]."
        own = losses.own(message.extra, path, "fields", "before")
        wire: dict[str, Any] = {"role": message.role}
        if message.role == "tool":
            wire["tool_call_id"] = message.tool_call_id
            if message.tool_name not in (None, names.get(message.tool_call_id)):
                losses.add(
                    f"{path}toolName", "is not that of the call, and the format sends only the call's id"
                )
        names.note(message)
        wire |= _said(message, own, losses, path)
        written.append(losses.with_fields(wire, own, path))
    losses.check()
    return written


def _said(message: Message, own: dict[str, Any], losses: Losses, path: str) -> dict[str, Any]:
    parts: list[dict[str, Any]] = list(losses.blocks(own, "before", path))
    calls = []
    for place, segment in enumerate(message.segments):
        where = f"{path}segments[{place}]."
        if segment.tool_call is not None:
            calls.append(call_to_chat(segment, segment.tool_call, losses, where))
            continue
        if calls:
            losses.add(where[:-1], f"{segment.type} after a tool call: in this format calls come last")
        parts += part_to_chat(segment, message.role, losses, where)
    content: Any = parts
    if len(parts) == 1 and set(parts[0]) == {"type", "text"}:
        content = parts[0]["text"]
    elif not parts and calls:
        content = None
    return {"content": content, "tool_calls": calls} if calls else {"content": content}


def messages_from_openai_chat(data: Any) -> tuple[Message, ...]:
    """Return the messages of a request; the instructions are the first of them, of the role system.

    The name of the tool that has answered is that of the call it answers, where that is among them.

    Raises:
        InvalidProtocolValueError: E50, with every mistake.
    """
    reading = Reading("list of messages of chat completions", OWNER)
    names = CallNames()
    messages: list[Message] = []
    for path, item in reading.objects(reading.whole(data, list), "messages"):
        role = item.get("role")
        if role not in get_args(Role):
            reading.add(f"{path}role", f"must be one of {', '.join(get_args(Role))}, not {role!r}"[:200])
            continue
        message = _message(item, role, names, reading, path)
        if message is not None:
            names.note(message)
            messages.append(message)
    reading.check()
    return tuple(messages)


def _message(
    item: dict[str, Any], role: Any, names: CallNames, reading: Reading, path: str
) -> Message | None:
    segments, left = parts_from_chat(item.get("content"), reading, f"{path}content")
    known = ["role", "content"]
    call_id = None
    if role == "assistant":
        known.append("tool_calls")
        segments += calls_of(item, reading, path)
    if role == "tool":
        known.append("tool_call_id")
        call_id = reading.needed(item, "tool_call_id", str, path)
    extra = reading.kept(fields=unknown(item, *known), before=left)
    return reading.message(role, segments, path, call_id=call_id, tool_name=names.get(call_id), extra=extra)


def calls_of(item: dict[str, Any], reading: Reading, path: str) -> Sequence[ContentSegment]:
    """Return the segments of the calls of an assistant's message."""
    calls = reading.field(item, "tool_calls", list, path) or []
    found = [call_from_chat(call, reading, at) for at, call in reading.objects(calls, f"{path}tool_calls")]
    return [segment for segment in found if segment is not None]
