"""Checks commands, and lists the permitted ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio.lowlevel
from agents import FunctionTool, RunContextWrapper, Tool

from kantan_agents.agent.bridge import SDKAgent
from kantan_agents.core.interception import ToolCall, emit_refusal
from kantan_agents.core.pipeline import Run
from kantan_agents.errors import KantanAgentsError, ToolNotAllowedError
from kantan_agents.middleware.slash_commands.files import facts_of_file
from kantan_agents.middleware.slash_commands.prompts import ServerPrompt
from kantan_agents.middleware.slash_commands.rules import UserGuard
from kantan_agents.middleware.slash_commands.tools import is_enabled
from kantan_agents.tool_rules import Decision, RuleLayers, ToolFacts
from kantan_agents.tools.commands import (
    HELP,
    HELP_COMMAND,
    Command,
    CommandLine,
    CommandRegistry,
    explanation,
    overview,
    unknown_command,
)
from kantan_agents.tools.facts import facts_of
from kantan_agents.tools.rules_in_force import NO_LAYERS
from kantan_agents.tools.skills import CommandFile

_AT_ONCE = 50


def facts_of_command(target: Any) -> ToolFacts:
    """Return the facts for the user rules."""
    if isinstance(target, CommandFile):
        return facts_of_file(target)
    return target.facts if isinstance(target, ServerPrompt) else facts_of(target)


async def visible_commands(
    registry: CommandRegistry,
    layers: RuleLayers,
    of_files: RuleLayers,
    wrapper: RunContextWrapper[Any],
    agent: SDKAgent,
) -> dict[str, Command]:
    """Return the permitted commands by name."""
    visible: dict[str, Command] = {}
    for number, command in enumerate(registry):
        if number % _AT_ONCE == _AT_ONCE - 1:
            await anyio.lowlevel.checkpoint()  # there may be thousands of tools
        target = command.target
        if not isinstance(target, (FunctionTool, ServerPrompt, CommandFile)):
            continue
        decided_by = of_files if isinstance(target, CommandFile) else layers
        if not decided_by.decide_tool(facts_of_command(target)).allowed:
            continue
        if isinstance(target, (ServerPrompt, CommandFile)) or await is_enabled(target, wrapper, agent):
            visible[command.name] = command
    return visible


async def check_command(
    run: Run,
    target: Tool | ServerPrompt | CommandFile,
    guard: UserGuard,
    layers: RuleLayers,
    wrapper: RunContextWrapper[Any],
) -> None:
    """Deny a command that the user may never run, before errors in its arguments are reported."""
    tool = None if isinstance(target, (ServerPrompt, CommandFile)) else target
    try:
        if not layers.decide_tool(guard.facts).allowed:
            await guard.require(wrapper, "")
        if tool is not None and not await is_enabled(tool, wrapper, run.agent.sdk_agent):
            off = ToolNotAllowedError(tool_name=guard.facts.name)
            decision = Decision(allowed=False, key="is_enabled", error=off)
            await guard.refuse(decision, NO_LAYERS, wrapper, "", policy="raise")
    except KantanAgentsError as error:
        call = ToolCall(run, run.agent.name, tool, guard.facts.name, "", "", wrapper)
        await emit_refusal(call, error)
        raise


async def check_call(run: Run, guard: UserGuard, wrapper: RunContextWrapper[Any], arguments: str) -> None:
    """Check the arguments."""
    call = ToolCall(run, run.agent.name, None, guard.facts.name, arguments, "", wrapper)
    try:
        await guard.require(wrapper, arguments)
    except KantanAgentsError as error:
        await emit_refusal(call, error)
        raise


def help_text(
    line: CommandLine, registry: CommandRegistry, visible: Mapping[str, Command], prefix: str
) -> str:
    """Return the output of ``/help``, or E54 for an unknown command."""
    if line.name != HELP:
        registry.require(line.name, lambda command: command.name in visible)
    wanted = HELP_COMMAND.read(line.rest, prefix).get("command", "").removeprefix(prefix)
    if wanted in ("", HELP):
        return overview(visible.values(), prefix)
    found = registry.find(wanted)
    if found is None or found.name not in visible:  # commands that the user may not run are not described
        nearest = registry.nearest(wanted, lambda command: command.name in visible)
        raise unknown_command(wanted, nearest, prefix)
    return explanation(found, registry.names_of(found), prefix)
