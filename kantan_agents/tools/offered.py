"""A tool that the program offers, whatever the rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from agents import FunctionTool, Tool

from kantan_agents.core.interception import current_tool_call
from kantan_agents.core.pipeline import Run

_OFFER: Final = object()


def offer_tool(run: Run, tool_now: Callable[[], FunctionTool | None]) -> None:
    """Offer a tool to a run's agents, but not to those that one of its tools runs.

    A ``tool_call`` middleware must answer its calls, because the rules may not permit it. Each turn,
    ``tool_now`` returns the tool, which replaces another of its name, or None.
    """
    run.state[_OFFER] = tool_now


def with_offered(run: Run | None, tools: list[Tool]) -> list[Tool]:
    """Add the offered tool."""
    tool_now = None if run is None else run.state.get(_OFFER)
    tool = None if tool_now is None or current_tool_call.get() is not None else tool_now()
    return tools if tool is None else [*(one for one in tools if one.name != tool.name), tool]
