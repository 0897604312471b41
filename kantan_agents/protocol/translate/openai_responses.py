"""OpenAI's Responses format, which is also that of the SDK's items, to the protocol and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kantan_agents.errors import InvalidProtocolValueError, UntranslatableError
from kantan_agents.protocol.json_data import plain
from kantan_agents.protocol.provider import Message, Role, ToolSpec
from kantan_agents.protocol.translate.call_names import CallNames
from kantan_agents.protocol.translate.losses import Losses
from kantan_agents.protocol.translate.metadata import Known
from kantan_agents.protocol.translate.reading import unknown
from kantan_agents.protocol.translate.responses_parts import (
    OWNER,
    Problems,
    own_extra,
    parts_of,
    segments_of_content,
)
from kantan_agents.protocol.translate.responses_said import Said
from kantan_agents.protocol.translate.responses_wire import wire_items
from kantan_agents.protocol.translate.usage import read_usage, write_usage
from kantan_agents.protocol.types import ContentSegment, ProviderResponse

FORMAT: Final = "OpenAI Responses"
USAGE: Final[Mapping[str, tuple[str, ...]]] = {
    "input_tokens": ("input_tokens",),
    "output_tokens": ("output_tokens",),
    "total_tokens": ("total_tokens",),
    "cached_tokens": ("input_tokens_details", "cached_tokens"),
    "reasoning_tokens": ("output_tokens_details", "reasoning_tokens"),
}
_ROLES: Mapping[str, Role] = {"user": "user", "system": "system", "developer": "system"}
_TEXTS: Mapping[str, str] = {"id": "id", "model": "model", "finish_reason": "status"}
_STRICT: Mapping[str, Any] = {"strict": False}


def tools_to_openai_responses(tools: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """Return tools as the ``tools`` of a request.

    Raises:
        UntranslatableError: E52, a tool has unknown fields.
    """
    losses = Losses(FORMAT, OWNER)
    written = []
    for place, tool in enumerate(tools):
        path = f"tools[{place}]."
        own = losses.own(tool.extra, path, "fields")
        function = {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": plain(tool.parameters),
        }
        written.append({**_STRICT, **losses.with_fields(function, own, path)})
    losses.check()
    return written


def tools_from_openai_responses(tools: Iterable[Mapping[str, Any]]) -> list[ToolSpec]:
    """Return the ``tools`` of a request as the protocol's.

    Raises:
        UntranslatableError: E52, one of them is no function, but something OpenAI runs.
        InvalidProtocolValueError: E50, a function lacks what a tool needs.
    """
    listed = _list(tools, "list of tools of OpenAI Responses")
    problems = Problems()
    for place, tool in enumerate(listed):
        if not isinstance(tool, Mapping):
            problems.add(f"tools[{place}]", f"must be an object, not {type(tool).__name__}")
        elif tool.get("type") != "function":
            problems.add(f"tools[{place}]", f"is of the type {tool.get('type')!r}, which OpenAI runs")
    _raise(problems)
    return [
        ToolSpec(
            tool.get("name", ""),
            tool.get("description") or "",
            tool.get("parameters") or {},
            extra=own_extra(_fields_of_tool(tool)),
        )
        for tool in listed
    ]


def _fields_of_tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    # Without a word the API is strict.
    fields = {"strict": None, **unknown(tool, "type", "name", "description", "parameters")}
    return unknown(fields, "strict") if fields["strict"] is False else fields


def response_from_openai_responses(response: Mapping[str, Any]) -> ProviderResponse:
    """Return a response object of the API as the protocol's.

    ``metadata`` has ``id``, ``model``, ``finish_reason`` (the API's ``status``) and ``usage``; what else the
    API says is in ``extra["openai_responses"]``.

    Raises:
        UntranslatableError: E52, it has output items that the protocol has no segment for.
        InvalidProtocolValueError: E50, it is no such object.
    """
    if not isinstance(response, Mapping):
        problem = f"must be an object, not {type(response).__name__}"
        raise InvalidProtocolValueError(value="response of OpenAI Responses", problems=[problem])
    problems = Problems()
    said = Said(problems, keeps=True)
    for place, item in enumerate(_list(response.get("output") or [], "output of OpenAI Responses")):
        path = f"output[{place}]"
        if not isinstance(item, Mapping):
            problems.add(path, f"must be an object, not {type(item).__name__}")
        elif said.add(item, path) is None:
            problems.add(path, f"an item of the type {item.get('type')!r}")
    _raise(problems)
    segments, blocks = said.take()
    texts = {name: response[wire] for name, wire in _TEXTS.items() if isinstance(response.get(wire), str)}
    usage = response.get("usage")
    counts, rest = read_usage(usage, USAGE) if isinstance(usage, Mapping) else ({}, {})
    read = {"output", *(_TEXTS[name] for name in texts), *(("usage",) if isinstance(usage, Mapping) else ())}
    fields = unknown(response, *read)
    if fields.get("object") == "response":
        del fields["object"]
    kept = {name: part for name, part in (("fields", fields), ("usage", rest), ("before", blocks)) if part}
    metadata = Known(**texts, usage=counts).as_metadata()
    return ProviderResponse(segments, metadata, extra={OWNER: kept} if kept else {})


def response_to_openai_responses(response: ProviderResponse) -> dict[str, Any]:
    """Return an answer as a response object of the API.

    Raises:
        UntranslatableError: E52, with all that would be lost: images and ``ui``, unknown fields.
    """
    losses = Losses(FORMAT, OWNER)
    own = losses.own(response.extra, "", "fields", "usage", "before")
    known = Known.of(response.metadata, losses)
    body: dict[str, Any] = {"object": "response", **known.fields(**_TEXTS)}
    body["output"] = [*losses.blocks(own, "before", ""), *wire_items(response.segments, losses, "")]
    usage = write_usage(known.usage, own.get("usage", {}), USAGE, losses, f"extra.{OWNER}.usage")
    if usage:
        body["usage"] = usage
    body = losses.with_fields(body, own, "")
    losses.check()
    return body


def messages_from_openai_responses(items: str | Iterable[Any]) -> list[Message]:
    """Return input items as messages; successive items of the assistant are one message.

    What an item says beyond the protocol, and the items by which OpenAI keeps account of its own reasoning
    and searching, are in ``extra["openai_responses"]``.

    Raises:
        UntranslatableError: E52, an item has no counterpart, such as a file or a reference to an item.
    """
    return read_messages(items, keeps=True)


def read_messages(items: str | Iterable[Any], *, keeps: bool) -> list[Message]:
    """Return input items as messages; ``keeps`` is whether ``extra`` has what only OpenAI can use."""
    if isinstance(items, str):
        return [Message("user", [ContentSegment.of_text(items)])]
    problems = Problems()
    messages: list[Message] = []
    said = Said(problems, keeps=keeps)
    names: dict[str, str] = {}
    for place, item in enumerate(items):
        path = f"input[{place}]"
        data = _as_mapping(item)
        found = said.add(data, path)
        if found is not None:
            names.update({call.id: call.name for part in found if (call := part.tool_call) is not None})
            continue
        message = _other_message(data, path, names, problems, keeps=keeps)
        if message is not None:
            messages += said.message()
            messages.append(message)
    _raise(problems)
    return messages + said.message()


def _as_mapping(item: Any) -> Mapping[str, Any]:
    if isinstance(item, Mapping):
        return item
    dump = getattr(item, "model_dump", None)
    return dump(exclude_unset=True) if callable(dump) else {"type": type(item).__name__}


def _other_message(
    item: Mapping[str, Any], path: str, names: Mapping[str, str], problems: Problems, *, keeps: bool
) -> Message | None:
    kind, role = item.get("type"), item.get("role")
    if kind == "function_call_output" and isinstance(item.get("call_id"), str):
        segments = segments_of_content(item.get("output"), f"{path}.output", problems, keeps=keeps)
        call_id = item["call_id"]
        extra = own_extra(unknown(item, "type", "call_id", "output")) if keeps else {}
        return Message("tool", segments, call_id, names.get(call_id), extra=extra)
    if isinstance(role, str) and role in _ROLES and kind in (None, "message"):
        segments = segments_of_content(item.get("content"), f"{path}.content", problems, keeps=keeps)
        extra = own_extra(unknown(item, "type", "role", "content")) if keeps else {}
        if keeps and role == "developer":
            extra = {OWNER: {**extra.get(OWNER, {}), "role": role}}
        return Message(_ROLES[role], segments, extra=extra)
    problems.add(path, f"an item of the type {kind!r}" + (f" and the role {role!r}" if role else ""))
    return None


def messages_to_openai_responses(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Return messages as input items.

    Raises:
        UntranslatableError: E52, with all that would be lost: media of a user without a media type, media and
            ``ui`` of an assistant, unknown fields.
    """
    losses = Losses(FORMAT, OWNER)
    names = CallNames()
    items: list[dict[str, Any]] = []
    for place, message in enumerate(messages):
        items += _items_of(message, names, losses, f"messages[{place}].")
        names.note(message)
    losses.check()
    return items


def _items_of(message: Message, names: CallNames, losses: Losses, path: str) -> list[dict[str, Any]]:
    where = f"{path}segments"
    if message.role == "assistant":
        own = losses.own(message.extra, path, "before")
        return [*losses.blocks(own, "before", path), *wire_items(message.segments, losses, path)]
    if message.role == "tool":
        own = losses.own(message.extra, path, "fields")
        parts = parts_of(message.segments, where, losses, has_audio=False)
        is_text = len(parts) == 1 and parts[0].keys() == {"type", "text"}
        output = parts[0]["text"] if is_text else parts
        if message.tool_name not in (None, names.get(message.tool_call_id)):
            losses.add(f"{path}toolName", "is not that of the call, and the format sends only the call's id")
        item = {"type": "function_call_output", "call_id": message.tool_call_id, "output": output}
        return [losses.with_fields(item, own, path)]
    own = losses.own(message.extra, path, "fields", "role")
    role = "developer" if message.role == "system" and own.get("role") == "developer" else message.role
    if own.get("role", role) != role:
        losses.add(f"{path}extra.{OWNER}.role", f"is not the role {role}")
    item = {"type": "message", "role": role, "content": parts_of(message.segments, where, losses)}
    return [losses.with_fields(item, own, path)]


def _list(given: Any, value: str) -> list[Any]:
    if isinstance(given, Iterable) and not isinstance(given, (str, Mapping)):
        return list(given)
    problem = f"must be a list, not {type(given).__name__}"
    raise InvalidProtocolValueError(value=value, problems=[problem])


def _raise(problems: Problems) -> None:
    if problems.found:
        raise UntranslatableError(format=FORMAT, problems=problems.found)
