"""Tools in Anthropic's Messages API."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from kantan_agents.protocol.json_data import plain
from kantan_agents.protocol.provider import ToolSpec
from kantan_agents.protocol.translate.losses import Losses
from kantan_agents.protocol.translate.reading import Reading, unknown

FORMAT: Final = "Anthropic Messages"
OWNER: Final = "anthropic"
NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")


def tools_to_anthropic(tools: Iterable[ToolSpec]) -> list[dict[str, Any]]:
    """Return tools as the ``tools`` of a request.

    Raises:
        UntranslatableError: E52, a name, a schema that is not one of an object, or a field the format has
            no place for.
    """
    losses = Losses(FORMAT, OWNER)
    written = []
    for place, tool in enumerate(tools):
        path = f"tools[{place}]."
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
                losses.add(f"{path}parameters.{keyword}", "cannot stand at the top of a tool's schema")
        written.append(losses.with_fields(wire, losses.own(tool.extra, path, "fields"), path))
    losses.check()
    return written


def tools_from_anthropic(data: Any) -> tuple[ToolSpec, ...]:
    """Return the tools of a request; one that the API itself runs is a mistake.

    Raises:
        InvalidProtocolValueError: E50, with every mistake.
    """
    reading = Reading("list of Anthropic's tools", OWNER)
    tools = [_tool(item, reading, path) for path, item in reading.objects(reading.whole(data, list), "tools")]
    reading.check()
    return tuple(tool for tool in tools if tool is not None)


def _tool(item: dict[str, Any], reading: Reading, path: str) -> ToolSpec | None:
    if item.get("type") not in (None, "custom"):
        reading.add(f"{path}type", f"is {item['type']!r}, a tool that the API runs itself"[:200])
        return None
    name = reading.needed(item, "name", str, path)
    schema = reading.needed(item, "input_schema", dict, path)
    description = reading.field(item, "description", str, path) or ""
    extra = reading.kept(fields=unknown(item, "name", "description", "input_schema"))
    if name is None or schema is None:
        return None
    return reading.value(lambda: ToolSpec(name, description, schema, extra=extra), path)
