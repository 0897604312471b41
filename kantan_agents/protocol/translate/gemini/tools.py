"""Tools in the Gemini API."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, Literal

from kantan_agents.protocol.json_data import plain
from kantan_agents.protocol.provider import ToolSpec
from kantan_agents.protocol.translate.gemini.schema import converted, schema_from_gemini
from kantan_agents.protocol.translate.losses import Losses
from kantan_agents.protocol.translate.reading import Reading, unknown

FORMAT: Final = "Gemini"
OWNER: Final = "gemini"
NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")

SchemaField = Literal["parametersJsonSchema", "parameters"]
"""Where the schema of a tool goes: as JSON Schema, or as the API's own subset of OpenAPI's schemas."""


def tools_to_gemini(
    tools: Iterable[ToolSpec], *, schema_field: SchemaField = "parametersJsonSchema"
) -> list[dict[str, Any]]:
    """Return tools as the ``tools`` of a request: one object with all the ``functionDeclarations``.

    Args:
        tools: The tools.
        schema_field: ``"parametersJsonSchema"`` sends each schema as it is. ``"parameters"`` is for servers
            that do not know that field, and for what ``schema_to_gemini`` can express.

    Raises:
        UntranslatableError: E52, a name, a schema or a field the format has no place for.
    """
    losses = Losses(FORMAT, OWNER)
    written = []
    for place, tool in enumerate(tools):
        path = f"tools[{place}]."
        wire: dict[str, Any] = {"name": losses.name(tool.name, NAME, f"{path}name")}
        if tool.description:
            wire["description"] = tool.description
        is_subset = schema_field == "parameters"
        parameters = f"{path}parameters."
        wire[schema_field] = (
            converted(tool.parameters, losses, parameters) if is_subset else plain(tool.parameters)
        )
        written.append(losses.with_fields(wire, losses.own(tool.extra, path, "fields"), path))
    losses.check()
    return [{"functionDeclarations": written}] if written else []


def tools_from_gemini(data: Any) -> tuple[ToolSpec, ...]:
    """Return the tools of a request; one that the API itself runs is a mistake.

    Raises:
        InvalidProtocolValueError: E50, with every mistake.
    """
    reading = Reading("list of Gemini's tools", OWNER)
    tools: list[ToolSpec | None] = []
    for path, item in reading.objects(reading.whole(data, list), "tools"):
        for name in unknown(item, "functionDeclarations"):
            reading.add(f"{path}{name}", "is a tool that the API runs itself")
        declarations = reading.field(item, "functionDeclarations", list, path) or []
        found = reading.objects(declarations, f"{path}functionDeclarations")
        tools += [_tool(declaration, reading, where) for where, declaration in found]
    reading.check()
    return tuple(tool for tool in tools if tool is not None)


def _tool(item: dict[str, Any], reading: Reading, path: str) -> ToolSpec | None:
    name = reading.needed(item, "name", str, path)
    description = reading.field(item, "description", str, path) or ""
    schema = reading.field(item, "parametersJsonSchema", dict, path)
    if schema is None:
        subset = reading.field(item, "parameters", dict, path)
        schema = None if subset is None else schema_from_gemini(subset)
    given = {} if schema is None else {"parameters": schema}
    fields = unknown(item, "name", "description", "parameters", "parametersJsonSchema")
    if name is None:
        return None
    return reading.value(
        lambda: ToolSpec(name, description, **given, extra=reading.kept(fields=fields)), path
    )
