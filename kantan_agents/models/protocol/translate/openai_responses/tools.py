"""Tools in the Responses API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kantan_agents.models.protocol.json_data import plain
from kantan_agents.models.protocol.provider import ToolSpec
from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.reader import WireReader, unknown_fields

FORMAT: Final = "OpenAI Responses"
OWNER: Final = "openai_responses"
_STRICT: Mapping[str, Any] = {"strict": False}


def tools_to_openai_responses(tools: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """Return tools as the ``tools`` of a request.

    Raises:
        UntranslatableError: E52, a tool has fields that the format cannot hold.
    """
    losses = Losses(FORMAT, OWNER)
    written = []
    for index, tool in enumerate(tools):
        path = f"tools[{index}]."
        own = losses.format_extra(tool.extra, path, "fields")
        function = {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": plain(tool.parameters),
        }
        written.append({**_STRICT, **losses.with_fields(function, own, path)})
    losses.check()
    return written


def tools_from_openai_responses(tools: Iterable[Mapping[str, Any]]) -> tuple[ToolSpec, ...]:
    """Return the ``tools`` of a request as ``ToolSpec``s.

    Raises:
        UntranslatableError: E52, one of them is not a function, but a tool that OpenAI runs.
        InvalidProtocolValueError: E50, a function is not a valid tool.
    """
    reader = WireReader("list of tools of OpenAI Responses", OWNER)
    listed = reader.expect(listed_items(tools), list, "tools")
    losses = Losses(FORMAT, OWNER)
    for index, tool in enumerate(listed):
        if not isinstance(tool, Mapping):
            losses.add(f"tools[{index}]", f"must be an object, not {type(tool).__name__}")
        elif tool.get("type") != "function":
            losses.add(f"tools[{index}]", f"is of the type {tool.get('type')!r}, which OpenAI runs")
    losses.check()
    found = [_tool(tool, reader, f"tools[{index}].") for index, tool in enumerate(listed)]
    reader.check()
    return tuple(tool for tool in found if tool is not None)


def _tool(tool: dict[str, Any], reader: WireReader, path: str) -> ToolSpec | None:
    name = reader.required(tool, "name", str, path)
    description = reader.field(tool, "description", str, path) or ""
    parameters = reader.field(tool, "parameters", dict, path) or {}
    extra = fields_extra(_tool_fields(tool))
    if name is None:
        return None
    return reader.build(lambda: ToolSpec(name, description, parameters, extra=extra), path)


def _tool_fields(tool: Mapping[str, Any]) -> dict[str, Any]:
    # The API's default is strict, unlike the protocol's.
    fields = {"strict": None, **unknown_fields(tool, "type", "name", "description", "parameters")}
    return unknown_fields(fields, "strict") if fields["strict"] is False else fields


def fields_extra(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``extra`` with wire fields of the format."""
    return {OWNER: {"fields": dict(fields)}} if fields else {}


def listed_items(given: Any) -> Any:
    """Return an iterable of items as a list."""
    is_listed = isinstance(given, Iterable) and not isinstance(given, (str, bytes, Mapping))
    return list(given) if is_listed else given
