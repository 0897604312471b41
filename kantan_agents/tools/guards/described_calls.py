"""Calls of tools that are no function tools, sent through the middleware and told like any other.

What such a tool is called with is an object of the SDK's. Middleware and observers get a description of
it: the arguments the rules see, as JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agents import Tool

from kantan_agents.errors import MiddlewareResultError
from kantan_agents.interception import ToolCall, ToolNext, asking_rules, end_run_with, tool_call_made
from kantan_agents.pipeline import current_run

_COUNT = object()


async def describe_call(
    tool: Tool, wrapper: Any, arguments: Mapping[str, Any], call_id: str | None, invoke: ToolNext
) -> Any:
    """Make a call, through the middleware of the run it belongs to.

    Args:
        tool: The user's tool.
        wrapper: The SDK's context of the call or of the run.
        arguments: What the rules see.
        call_id: The model's id for the call; None where the SDK does not say, and one is made up.
        invoke: Asks the rules and runs the tool.
    """
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
            call_id=call_id or _made_up_id(run.state, tool),
            tool_context=wrapper,
        )
        return await tool_call_made(run, call, invoke)
    return await invoke(ToolCall(run, agent or "", tool, tool.name, text, call_id or "", wrapper))  # type: ignore[arg-type]


def _made_up_id(state: dict[Any, Any], tool: Tool) -> str:
    state[_COUNT] = state.get(_COUNT, 0) + 1
    return f"{tool.name}_{state[_COUNT]}"


async def ask_rules(call: ToolCall, question: Callable[[], Awaitable[Any]]) -> Any:
    """Ask the rules about a call, with a refusal noted on it."""
    with asking_rules(call):
        return await question()


def check_unchanged(call: ToolCall, arguments: Mapping[str, Any]) -> None:
    """Refuse a description that a middleware has changed: the tool would not be run with it.

    Raises:
        MiddlewareResultError: E80, it has been changed.
    """
    if call.arguments != json.dumps(arguments, ensure_ascii=False, default=str):
        raise _refused(call, f"the arguments of a call of {call.name!r} cannot be replaced")


def input_of(call: ToolCall) -> str:
    """Return the input of a custom tool's call, which a middleware may have replaced.

    Raises:
        MiddlewareResultError: E80, what stands there is no JSON object with a text as ``input``.
    """
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
    end_run_with(call.run, error)  # the SDK would make a text of it, as of a failure of the tool's own
    return error
