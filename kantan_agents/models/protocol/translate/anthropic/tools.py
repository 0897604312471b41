"""Tools in Anthropic's Messages API."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from kantan_agents.models.protocol.json_data import plain
from kantan_agents.models.protocol.provider import ToolSpec
from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.reader import WireReader, unknown_fields

FORMAT: Final = "Anthropic Messages"
OWNER: Final = "anthropic"
NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")


def tools_to_anthropic(tools: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """Return tools as the ``tools`` of a request.

    Raises:
        UntranslatableError: E52, the format does not allow a tool's name or fields, or a schema is not of
            type ``object``.
    """
    losses = Losses(FORMAT, OWNER)
    written = []
    for index, tool in enumerate(tools):
        path = f"tools[{index}]."
        wire: dict[str, Any] = {"name": losses.name(tool.name, NAME, f"{path}name")}
        if tool.description:
            wire["description"] = tool.description
        wire["input_schema"] = plain(tool.parameters)
        if tool.parameters.get("type") != "object":
            losses.add(
                f"{path}parameters.type", f"must be 'object', not {tool.parameters.get('type')!r}"[:200]
            )
        for keyword in ("oneOf", "allOf", "anyOf"):
            if keyword in tool.parameters:
                losses.add(
                    f"{path}parameters.{keyword}", "is not allowed at the top level of a tool's schema"
                )
        written.append(losses.with_fields(wire, losses.format_extra(tool.extra, path, "fields"), path))
    losses.check()
    return written


def tools_from_anthropic(data: Any) -> tuple[ToolSpec, ...]:
    """Return the ``tools`` of a request; a tool that the API runs itself is a problem.

    Raises:
        InvalidProtocolValueError: E50, with every problem.
    """
    reader = WireReader("list of Anthropic's tools", OWNER)
    tools = [_tool(item, reader, path) for path, item in reader.objects(reader.expect(data, list), "tools")]
    reader.check()
    return tuple(tool for tool in tools if tool is not None)


def _tool(item: dict[str, Any], reader: WireReader, path: str) -> ToolSpec | None:
    if item.get("type") not in (None, "custom"):
        reader.add(f"{path}type", f"is {item['type']!r}, a tool that the API runs itself"[:200])
        return None
    name = reader.required(item, "name", str, path)
    schema = reader.required(item, "input_schema", dict, path)
    description = reader.field(item, "description", str, path) or ""
    extra = reader.extra(fields=unknown_fields(item, "name", "description", "input_schema"))
    if name is None or schema is None:
        return None
    return reader.build(lambda: ToolSpec(name, description, schema, extra=extra), path)
