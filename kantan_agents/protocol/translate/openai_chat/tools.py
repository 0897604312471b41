"""Tools in chat completions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from kantan_agents.protocol.json_data import plain
from kantan_agents.protocol.provider import ToolSpec
from kantan_agents.protocol.translate.losses import Losses
from kantan_agents.protocol.translate.reading import Reading, unknown

FORMAT: Final = "OpenAI chat completions"
OWNER: Final = "openai"
NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def tools_to_openai_chat(tools: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """Return tools as the ``tools`` of a request.

    Raises:
        UntranslatableError: E52, a name or a field the format has no place for.
    """
    losses = Losses(FORMAT, OWNER)
    written = []
    for place, tool in enumerate(tools):
        path = f"tools[{place}]."
        function: dict[str, Any] = {"name": losses.name(tool.name, NAME, f"{path}name")}
        if tool.description:
            function["description"] = tool.description
        function["parameters"] = plain(tool.parameters)
        own = losses.own(tool.extra, path, "fields")
        written.append({"type": "function", "function": losses.with_fields(function, own, path)})
    losses.check()
    return written


def tools_from_openai_chat(data: Any) -> tuple[ToolSpec, ...]:
    """Return the tools of a request.

    Raises:
        InvalidProtocolValueError: E50, it is no such list.
    """
    reading = Reading("list of tools of chat completions", OWNER)
    tools = [_tool(item, reading, path) for path, item in reading.objects(reading.whole(data, list), "tools")]
    reading.check()
    return tuple(tool for tool in tools if tool is not None)


def _tool(item: dict[str, Any], reading: Reading, path: str) -> ToolSpec | None:
    function = reading.needed(item, "function", dict, path)
    if function is None:
        return None
    inside = f"{path}function."
    name = reading.needed(function, "name", str, inside)
    description = reading.field(function, "description", str, inside) or ""
    schema = reading.field(function, "parameters", dict, inside)
    given = {} if schema is None else {"parameters": schema}
    extra = reading.kept(fields=unknown(function, "name", "description", "parameters"))
    if name is None:
        return None
    return reading.value(lambda: ToolSpec(name, description, **given, extra=extra), inside)
