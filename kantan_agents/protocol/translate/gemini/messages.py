"""Contents in the Gemini API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kantan_agents.protocol.provider import Message
from kantan_agents.protocol.translate.call_names import CallNames
from kantan_agents.protocol.translate.gemini.function_responses import function_response, message_of
from kantan_agents.protocol.translate.gemini.parts import parts_of, segment_of
from kantan_agents.protocol.translate.gemini.tools import FORMAT, OWNER
from kantan_agents.protocol.translate.losses import Losses
from kantan_agents.protocol.translate.reading import Reading, unknown

_ROLES = {"user": "user", "assistant": "model"}
_NOTHING = {"text": ""}


def messages_to_gemini(messages: Iterable[Message], instructions: str | None = None) -> dict[str, Any]:
    """Return a conversation as ``systemInstruction`` and ``contents`` of a request.

    The instructions and the system messages at the beginning are ``systemInstruction``. The results of tools
    that follow one another are one content, as the API wants it. Empty texts are left out, and so is a
    message that has nothing else.

    Args:
        messages: The messages.
        instructions: The system prompt.

    Raises:
        UntranslatableError: E52, with all that would be lost.
    """
    losses = Losses(FORMAT, OWNER)
    names = CallNames()
    system: list[dict[str, Any]] = [{"text": instructions}] if instructions else []
    contents: list[dict[str, Any]] = []
    is_answering = False
    for place, message in enumerate(messages):
        path = f"messages[{place}]."
        if message.role == "tool":
            own = losses.own(message.extra, path, "fields", "part", "content")
            part = _answer(message, own, names, losses, path)
            if is_answering and not own.get("content"):
                contents[-1]["parts"].append(part)
            else:
                wire = {"role": "user", "parts": [part]}
                contents.append(losses.with_fields(wire, {"fields": own.get("content", {})}, path))
            is_answering = True
            continue
        own = losses.own(message.extra, path, "fields", "before")
        parts = [*losses.blocks(own, "before", path), *_parts(message, losses, path)]
        names.note(message)
        if message.role == "system":
            if contents:
                losses.add(f"{path}role", "a system message can only stand at the beginning")
            system += parts
        elif parts:
            wire = {"role": _ROLES[message.role], "parts": parts}
            contents.append(losses.with_fields(wire, own, path))
            is_answering = False
    losses.check()
    return {**({"systemInstruction": {"parts": system}} if system else {}), "contents": contents}


def _parts(message: Message, losses: Losses, path: str) -> list[dict[str, Any]]:
    parts = []
    for place, segment in enumerate(message.segments):
        # What other formats keep with an empty text is no reason to send one.
        parts += [part for part in parts_of(segment, losses, f"{path}segments[{place}].") if part != _NOTHING]
    return parts


def _answer(
    message: Message, own: dict[str, Any], names: CallNames, losses: Losses, path: str
) -> dict[str, Any]:
    response = losses.with_fields(function_response(message, names, losses, path), own, path)
    return losses.with_fields({"functionResponse": response}, {"fields": own.get("part", {})}, path)


def messages_from_gemini(data: Any) -> tuple[Message, ...]:
    """Return the messages of a request (``systemInstruction`` and ``contents``).

    ``systemInstruction`` is the first of them; each result of a tool is a message of its own.

    Raises:
        InvalidProtocolValueError: E50, with every mistake.
    """
    reading = Reading("request of the Gemini API", OWNER)
    body = reading.whole(data, dict)
    names = CallNames()
    messages: list[Message | None] = []
    system = reading.field(body, "systemInstruction", dict, "")
    if system is not None:
        messages.append(_said("system", _blocks(system, reading, "systemInstruction."), system, reading, ""))
    items = reading.needed(body, "contents", list, "") or []
    for path, item in reading.objects(items, "contents"):
        for message in _messages(item, names, reading, path):
            messages.append(message)
            if message is not None:
                names.note(message)
    reading.check()
    return tuple(message for message in messages if message is not None)


def _blocks(item: dict[str, Any], reading: Reading, path: str) -> list[tuple[str, dict[str, Any]]]:
    return reading.objects(reading.needed(item, "parts", list, path) or [], f"{path}parts")


def _messages(
    item: dict[str, Any], names: CallNames, reading: Reading, path: str
) -> Iterable[Message | None]:
    roles = {"user": "user", "model": "assistant", "function": "user", None: "user"}
    role = item.get("role")
    if not isinstance(role, (str, type(None))) or role not in roles:
        reading.add(f"{path}role", f"must be user or model, not {role!r}"[:200])
        return
    group: list[tuple[str, dict[str, Any]]] = []
    blocks = _blocks(item, reading, path)
    # Where there are results alone, the first of them keeps what is said of the content.
    is_answers = all("functionResponse" in part for _, part in blocks)
    of_content = unknown(item, "role", "parts") if is_answers else {}
    for where, part in blocks:
        if "functionResponse" in part and roles[role] == "user":
            if group:
                yield _said("user", group, item, reading, path)
                group = []
            yield message_of(part, of_content, names, reading, where)
            of_content = {}
        else:
            group.append((where, part))
    if group or not blocks:
        yield _said(roles[role], group, item, reading, path)


def _said(
    role: Any,
    blocks: list[tuple[str, dict[str, Any]]],
    item: dict[str, Any],
    reading: Reading,
    path: str,
) -> Message | None:
    segments, left = reading.gathered(blocks, lambda part, where: segment_of(part, reading, where))
    fields = unknown(item, "role", "parts") if role != "system" else {}
    return reading.message(role, segments, path, extra=reading.kept(fields=fields, before=left))
