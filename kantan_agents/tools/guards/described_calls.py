"""Sends calls of other tools than function tools through the middleware.

The input is an SDK object; middleware and observers get JSON.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agents import Tool

from kantan_agents.core.interception import (
    ToolCall,
    ToolNext,
    checking_rules,
    end_run_with,
    run_tool_call,
    tool_call_notes,
)
from kantan_agents.core.pipeline import current_run
from kantan_agents.errors import MiddlewareResultError
from kantan_agents.tools.guards.repeated_failures import UnknownCall, end_call, record_failed_call

_COUNT = object()


async def describe_call(
    tool: Tool, wrapper: Any, arguments: Mapping[str, Any], call_id: str | None, invoke: ToolNext
) -> Any:
    """Send a call through its run's middleware; ``invoke`` applies the rules and runs the tool."""
    for note in tool_call_notes:
        note(call_id or "")
    run = current_run.get()
    if run is None:
        return await _described(tool, wrapper, arguments, call_id, invoke)
    context = UnknownCall(call_id or "", json.dumps(arguments, ensure_ascii=False, default=str))

    async def counted(call: ToolCall) -> Any:
        output = await invoke(call)
        if call.refusal is not None:
            record_failed_call(run, tool.name, context, reason=str(call.refusal))
        return output

    try:
        output = await _described(tool, wrapper, arguments, call_id, counted)
    except Exception as error:
        record_failed_call(run, tool.name, context, reason=str(error), error=error)
        raise
    return end_call(run, tool.name, context, output)


async def _described(
    tool: Tool, wrapper: Any, arguments: Mapping[str, Any], call_id: str | None, invoke: ToolNext
) -> Any:
    run = current_run.get()
    text = json.dumps(arguments, ensure_ascii=False, default=str)
    agent = getattr(getattr(wrapper, "agent", None), "name", None)
    if run is not None and run.is_watched:
        call = ToolCall(
            run,
            agent=agent or run.agent.name,
            tool=tool,
            name=tool.name,
            arguments=text,
            call_id=call_id or _generated_id(run.state, tool),
            tool_context=wrapper,
        )
        return await run_tool_call(run, call, invoke)
    return await invoke(ToolCall(run, agent or "", tool, tool.name, text, call_id or "", wrapper))  # type: ignore[arg-type]


def _generated_id(state: dict[Any, Any], tool: Tool) -> str:
    state[_COUNT] = state.get(_COUNT, 0) + 1
    return f"{tool.name}_{state[_COUNT]}"


async def apply_rules(call: ToolCall, question: Callable[[], Awaitable[Any]]) -> Any:
    """Await ``question``, and record a denial on the call."""
    with checking_rules(call):
        return await question()


def check_unchanged(call: ToolCall, arguments: Mapping[str, Any]) -> None:
    """Raise E80 if a middleware has changed the description, which has no effect."""
    if call.arguments != json.dumps(arguments, ensure_ascii=False, default=str):
        raise _refused(call, f"the arguments of a call of {call.name!r} cannot be replaced")


def input_of(call: ToolCall) -> str:
    """Return a custom tool's input; E80 unless it is ``{"input": str}``."""
    try:
        text = json.loads(call.arguments)["input"]
    except (ValueError, TypeError, KeyError):
        text = None
    if not isinstance(text, str):
        reason = f'the arguments of a call of {call.name!r} must be JSON such as {{"input": "..."}}'
        raise _refused(call, reason)
    return text


def _refused(call: ToolCall, reason: str) -> MiddlewareResultError:
    error = MiddlewareResultError(middleware="around a tool call", reason=reason)
    end_run_with(call.run, error)  # the SDK would report a failure of the tool to the model
    return error
