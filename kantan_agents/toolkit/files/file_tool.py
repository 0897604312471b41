"""Makes a tool of a function whose rules are about paths."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import wraps
from typing import Any

import agents
from agents import FunctionTool, function_tool

from kantan_agents.toolkit.files.root import Root
from kantan_agents.tools.facts import declare_match
from kantan_agents.tools.guards.failures import answer_of_toolkit

current_call: ContextVar[tuple[agents.RunContextWrapper[Any], str] | None] = ContextVar(
    "kantan_agents_file_call", default=None
)
"""The SDK's context of the current call of a file tool, and the name of the tool; also in its thread."""


def file_tool(
    function: Any,
    name: str,
    root: Root,
    *,
    parameter: str = "path",
    needs_approval: bool | Callable[[Any, dict[str, Any], str], Awaitable[bool]] = False,
) -> FunctionTool:
    """Return a tool.

    Args:
        function: What it does. Its docstring is what the model reads.
        name: Its name.
        root: The root, relative to which rules name paths.
        parameter: The parameter with the path.
        needs_approval: Whether a call waits for an approval, as for the SDK.
    """
    # Not strict: a strict schema has no optional parameters, and the model would have to fill in all of them.
    tool = function_tool(
        _known(function, name),
        name_override=name,
        strict_mode=False,
        needs_approval=needs_approval,
        failure_error_function=answer_of_toolkit,
    )
    declare_match(tool, parameter, "path", root.relative, root.names)
    return tool


def _known(function: Any, name: str) -> Any:
    @wraps(function)
    async def call(_context: agents.RunContextWrapper[Any], *args: Any, **options: Any) -> Any:
        token = current_call.set((_context, name))
        try:
            return await function(_context, *args, **options)
        finally:
            current_call.reset(token)

    return call
