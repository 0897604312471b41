"""Tools in the Gemini API."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, Literal

from kantan_agents.models.protocol.json_data import plain
from kantan_agents.models.protocol.provider import ToolSpec
from kantan_agents.models.protocol.translate.gemini.schema import convert_schema, schema_from_gemini
from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.reader import WireReader, unknown_fields

FORMAT: Final = "Gemini"
OWNER: Final = "gemini"
NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")

SchemaField = Literal["parametersJsonSchema", "parameters"]
"""The field for a tool's schema: JSON Schema, or the API's subset of OpenAPI schemas."""


def tools_to_gemini(
    tools: Iterable[ToolSpec], *, schema_field: SchemaField = "parametersJsonSchema"
) -> list[dict[str, Any]]:
    """Return tools as the ``tools`` of a request: one object with all the ``functionDeclarations``.

    Args:
        tools: The tools.
        schema_field: ``"parametersJsonSchema"`` sends each schema unchanged. ``"parameters"`` is for servers
            that do not support that field; it is limited to what ``schema_to_gemini`` can express.

    Raises:
        UntranslatableError: E52, a tool has a name, a schema or fields that the format does not allow.
    """
    losses = Losses(FORMAT, OWNER)
    written = []
    for index, tool in enumerate(tools):
        path = f"tools[{index}]."
        wire: dict[str, Any] = {"name": losses.name(tool.name, NAME, f"{path}name")}
        if tool.description:
            wire["description"] = tool.description
        is_subset = schema_field == "parameters"
        parameters = f"{path}parameters."
        wire[schema_field] = (
            convert_schema(tool.parameters, losses, parameters) if is_subset else plain(tool.parameters)
        )
        written.append(losses.with_fields(wire, losses.format_extra(tool.extra, path, "fields"), path))
    losses.check()
    return [{"functionDeclarations": written}] if written else []


def tools_from_gemini(data: Any) -> tuple[ToolSpec, ...]:
    """Return the ``tools`` of a request; a tool that the API runs itself is a problem.

    Raises:
        InvalidProtocolValueError: E50, with every problem.
    """
    reader = WireReader("list of Gemini's tools", OWNER)
    tools: list[ToolSpec | None] = []
    for path, item in reader.objects(reader.expect(data, list), "tools"):
        for name in unknown_fields(item, "functionDeclarations"):
            reader.add(f"{path}{name}", "is a tool that the API runs itself")
        declarations = reader.field(item, "functionDeclarations", list, path) or []
        found = reader.objects(declarations, f"{path}functionDeclarations")
        tools += [_tool(declaration, reader, where) for where, declaration in found]
    reader.check()
    return tuple(tool for tool in tools if tool is not None)


def _tool(item: dict[str, Any], reader: WireReader, path: str) -> ToolSpec | None:
    name = reader.required(item, "name", str, path)
    description = reader.field(item, "description", str, path) or ""
    schema = reader.field(item, "parametersJsonSchema", dict, path)
    if schema is None:
        subset = reader.field(item, "parameters", dict, path)
        schema = None if subset is None else schema_from_gemini(subset)
    given = {} if schema is None else {"parameters": schema}
    fields = unknown_fields(item, "name", "description", "parameters", "parametersJsonSchema")
    if name is None:
        return None
    return reader.build(lambda: ToolSpec(name, description, **given, extra=reader.extra(fields=fields)), path)
