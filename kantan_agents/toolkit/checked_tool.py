"""A tool with arguments checked by its own JSON Schema."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import jsonschema_rs
from agents import FunctionTool

from kantan_agents.errors import KantanAgentsError, ToolInputError
from kantan_agents.tool_rules import parse_arguments
from kantan_agents.tools.facts import rule_parameter

Work = Callable[[Any, dict[str, Any]], Awaitable[str]]
"""Takes the SDK's tool context and the arguments."""

_LONGEST_REASON = 300


def checked_tool(
    name: str,
    description: str,
    properties: dict[str, Any],
    required: list[str],
    work: Work,
    *,
    returned: tuple[type[KantanAgentsError], ...] = (),
    approval: bool = False,
    parameter: str | None = None,
) -> FunctionTool:
    """Return a function tool.

    ``required`` names parameters that must be present; null omits any other. The model gets ``returned``
    errors as results. ``Tool(param pattern)`` rules match ``parameter``.
    """
    schema = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    validator = jsonschema_rs.Draft202012Validator(schema)

    async def invoke(wrapper: Any, arguments: str) -> str:
        try:
            return await work(wrapper, read_arguments(name, validator, required, arguments))
        except ToolInputError as error:
            return f"{error} that matches the schema of {name}: {error.reason}"
        except returned as error:
            return str(error)

    tool = FunctionTool(
        name=name,
        description=description,
        params_json_schema=schema,
        on_invoke_tool=invoke,
        strict_json_schema=False,  # strict schemas have no optional parameters
        needs_approval=approval,
    )
    return tool if parameter is None else rule_parameter(parameter)(tool)


def read_arguments(
    name: str, validator: jsonschema_rs.Draft202012Validator, required: list[str], arguments: str
) -> dict[str, Any]:
    """Return the arguments of a call; raise E10."""
    given = {
        key: value
        for key, value in parse_arguments(name, arguments).items()
        if value is not None or key in required
    }
    wrong = next(validator.iter_errors(given), None)
    if wrong is not None:
        where = ".".join(map(str, wrong.instance_path))
        raise bad_input(name, f"{where}: {wrong.message}" if where else wrong.message)
    return given


def bad_input(name: str, reason: str) -> ToolInputError:
    """Return E10 with a shortened reason."""
    reason = reason if len(reason) <= _LONGEST_REASON else f"{reason[: _LONGEST_REASON - 3]}..."
    return ToolInputError(tool_name=name, reason=reason)
