"""Tools that look different from turn to turn: one that delegates lists the agents there are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from agents import FunctionTool, Tool

from kantan_agents.tool_rules import RuleLayers

ShownNow = Callable[[FunctionTool, Any, Any, RuleLayers], Awaitable["FunctionTool | None"]]
"""Takes the guarded tool, the SDK's agent at work, its context and the rules in force; returns the tool as
the model is to see it in this turn, or None to keep it away."""

_MARK = "__kantan_shown_now__"


def show_each_turn(tool: FunctionTool, shown: ShownNow) -> None:
    """Have ``shown`` asked, each turn, how a tool looks."""
    setattr(tool, _MARK, shown)


def changes_each_turn(tool: FunctionTool) -> bool:
    """Whether somebody is asked, each turn, how a tool looks."""
    return hasattr(tool, _MARK)


async def as_shown_now(agent: Any, wrapper: Any, tools: list[Tool], layers: RuleLayers) -> list[Tool]:
    """Return the tools as they look in this turn."""
    if not any(hasattr(tool, _MARK) for tool in tools):  # the usual case
        return tools
    shown: list[Tool] = []
    for tool in tools:
        ask: ShownNow | None = getattr(tool, _MARK, None)
        now: Tool | None = tool
        if ask is not None and isinstance(tool, FunctionTool):
            now = await ask(tool, agent, wrapper, layers)
        if now is not None:
            shown.append(now)
    return shown
