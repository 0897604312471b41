"""Tools in chat completions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from kantan_agents.models.protocol.json_data import plain
from kantan_agents.models.protocol.provider import ToolSpec
from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.reader import WireReader, unknown_fields

FORMAT: Final = "OpenAI chat completions"
OWNER: Final = "openai"
NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def tools_to_openai_chat(tools: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """Return tools as the ``tools`` of a request.

    Raises:
        UntranslatableError: E52, a tool has a name or fields that the format does not allow.
    """
    losses = Losses(FORMAT, OWNER)
    written = []
    for index, tool in enumerate(tools):
        path = f"tools[{index}]."
        function: dict[str, Any] = {"name": losses.name(tool.name, NAME, f"{path}name")}
        if tool.description:
            function["description"] = tool.description
        function["parameters"] = plain(tool.parameters)
        own = losses.format_extra(tool.extra, path, "fields")
        written.append({"type": "function", "function": losses.with_fields(function, own, path)})
    losses.check()
    return written


def tools_from_openai_chat(data: Any) -> tuple[ToolSpec, ...]:
    """Return the ``tools`` of a request.

    Raises:
        InvalidProtocolValueError: E50, with every problem.
    """
    reader = WireReader("list of tools of chat completions", OWNER)
    tools = [_tool(item, reader, path) for path, item in reader.objects(reader.expect(data, list), "tools")]
    reader.check()
    return tuple(tool for tool in tools if tool is not None)


def _tool(item: dict[str, Any], reader: WireReader, path: str) -> ToolSpec | None:
    function = reader.required(item, "function", dict, path)
    if function is None:
        return None
    inside = f"{path}function."
    name = reader.required(function, "name", str, inside)
    description = reader.field(function, "description", str, inside) or ""
    schema = reader.field(function, "parameters", dict, inside)
    given = {} if schema is None else {"parameters": schema}
    extra = reader.extra(fields=unknown_fields(function, "name", "description", "parameters"))
    if name is None:
        return None
    return reader.build(lambda: ToolSpec(name, description, **given, extra=extra), inside)
