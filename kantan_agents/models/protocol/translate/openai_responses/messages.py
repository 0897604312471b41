"""The input items of a request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kantan_agents.errors import InvalidProtocolValueError
from kantan_agents.models.protocol.provider import Message, Role
from kantan_agents.models.protocol.translate.call_names import CallNames
from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.openai_responses.assistant_items import AssistantItems
from kantan_agents.models.protocol.translate.openai_responses.parts import (
    invalid_item,
    parts_of,
    segments_of_content,
)
from kantan_agents.models.protocol.translate.openai_responses.tools import (
    FORMAT,
    OWNER,
    fields_extra,
    listed_items,
)
from kantan_agents.models.protocol.translate.openai_responses.wire_items import wire_items
from kantan_agents.models.protocol.translate.reader import WireReader, unknown_fields
from kantan_agents.models.protocol.types import ContentSegment

_ROLES: Mapping[str, Role] = {"user": "user", "system": "system", "developer": "system"}


def messages_from_openai_responses(items: str | Iterable[Any]) -> tuple[Message, ...]:
    """Return input items as messages; successive items of the assistant become one message.

    ``extra["openai_responses"]`` stores fields that the protocol does not define, and items that record
    OpenAI's own steps, such as reasoning and searches.

    Raises:
        UntranslatableError: E52, an item has no counterpart, such as a reference to an item.
        InvalidProtocolValueError: E50, ``items`` is not a list of JSON data.
    """
    if isinstance(items, str):
        return tuple(read_messages(items, keep_unknown=True))
    listed = listed_items(items)
    read = [_as_mapping(item) for item in listed] if isinstance(listed, list) else listed
    reader = WireReader("input of OpenAI Responses", OWNER)
    return tuple(read_messages(reader.expect(read, list, "input"), keep_unknown=True))


def read_messages(items: str | Iterable[Any], *, keep_unknown: bool) -> list[Message]:
    """Return input items, or the user's only message, as messages.

    ``keep_unknown``: whether ``extra`` stores unknown fields, which only OpenAI can use.
    """
    if isinstance(items, str):
        return [Message("user", [ContentSegment.of_text(items)])]
    losses = Losses(FORMAT, OWNER)
    messages: list[Message] = []
    assistant = AssistantItems(losses, keep_unknown=keep_unknown)
    names: dict[str, str] = {}
    for index, item in enumerate(items):
        path = f"input[{index}]"
        data = _as_mapping(item)
        found = assistant.add(data, path)
        if found is not None:
            names.update({call.id: call.name for part in found if (call := part.tool_call) is not None})
            continue
        message = _other_message(data, path, names, losses, keep_unknown=keep_unknown)
        if message is not None:
            messages += assistant.message()
            messages.append(message)
    losses.check()
    return messages + assistant.message()


def _as_mapping(item: Any) -> Mapping[str, Any]:
    if isinstance(item, Mapping):
        return item
    dump = getattr(item, "model_dump", None)
    return dump(exclude_unset=True) if callable(dump) else {"type": type(item).__name__}


def _other_message(
    item: Mapping[str, Any], path: str, names: Mapping[str, str], losses: Losses, *, keep_unknown: bool
) -> Message | None:
    kind, role = item.get("type"), item.get("role")
    if kind == "function_call_output" and isinstance(item.get("call_id"), str):
        output = item.get("output")
        segments = segments_of_content(output, f"{path}.output", losses, keep_unknown=keep_unknown)
        call_id = item["call_id"]
        extra = fields_extra(unknown_fields(item, "type", "call_id", "output")) if keep_unknown else {}
        return _message(path, "tool", segments, call_id, names.get(call_id), extra=extra)
    if isinstance(role, str) and role in _ROLES and kind in (None, "message"):
        content = item.get("content")
        segments = segments_of_content(content, f"{path}.content", losses, keep_unknown=keep_unknown)
        extra = fields_extra(unknown_fields(item, "type", "role", "content")) if keep_unknown else {}
        if keep_unknown and role == "developer":
            extra = {OWNER: {**extra.get(OWNER, {}), "role": role}}
        return _message(path, _ROLES[role], segments, extra=extra)
    losses.add(path, f"an item of the type {kind!r}" + (f" and the role {role!r}" if role else ""))
    return None


def _message(path: str, *fields: Any, extra: Mapping[str, Any]) -> Message:
    try:
        return Message(*fields, extra=extra)
    except InvalidProtocolValueError as error:
        raise invalid_item(error, path) from None


def messages_to_openai_responses(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return messages as input items.

    Raises:
        UntranslatableError: E52, with everything that would be lost: media of a user without a media type,
            media and ``ui`` of an assistant, unknown fields.
    """
    losses = Losses(FORMAT, OWNER)
    names = CallNames()
    items: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        items += _items_of(message, names, losses, f"messages[{index}].")
        names.add(message)
    losses.check()
    return items


def _items_of(message: Message, names: CallNames, losses: Losses, path: str) -> list[dict[str, Any]]:
    where = f"{path}segments"
    if message.role == "assistant":
        own = losses.format_extra(message.extra, path, "before")
        return [*losses.blocks(own, "before", path), *wire_items(message.segments, losses, path)]
    if message.role == "tool":
        own = losses.format_extra(message.extra, path, "fields")
        parts = parts_of(message.segments, where, losses, has_audio=False)
        is_text = len(parts) == 1 and parts[0].keys() == {"type", "text"}
        output = parts[0]["text"] if is_text else parts
        if message.tool_name not in (None, names.get(message.tool_call_id)):
            losses.add(f"{path}toolName", "is not that of the call, and the format sends only the call's id")
        item = {"type": "function_call_output", "call_id": message.tool_call_id, "output": output}
        return [losses.with_fields(item, own, path)]
    own = losses.format_extra(message.extra, path, "fields", "role")
    role = "developer" if message.role == "system" and own.get("role") == "developer" else message.role
    if own.get("role", role) != role:
        losses.add(f"{path}extra.{OWNER}.role", f"is not the role {role}")
    item = {"type": "message", "role": role, "content": parts_of(message.segments, where, losses)}
    return [losses.with_fields(item, own, path)]
