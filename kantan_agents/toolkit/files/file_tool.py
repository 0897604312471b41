"""Creates a tool whose rules match paths."""

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
"""The SDK's context and the tool's name of the current call; also in its thread."""


def file_tool(
    function: Any,
    name: str,
    root: Root,
    *,
    parameter: str = "path",
    needs_approval: bool | Callable[[Any, dict[str, Any], str], Awaitable[bool]] = False,
) -> FunctionTool:
    """Return a tool described by the docstring of ``function``."""
    # Not strict: in a strict schema, the model must fill in every parameter.
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
