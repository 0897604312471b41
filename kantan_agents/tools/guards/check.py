"""Checks one call without blocking the event loop for long."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from typing import Any

import anyio.lowlevel
import anyio.to_thread
import attrs

from kantan_agents.errors import KantanAgentsError, ToolInputError
from kantan_agents.tool_rules import (
    Decision,
    RuleLayers,
    ToolFacts,
    ToolRules,
    decide_tool,
    is_quick,
    needs_arguments,
    parse_arguments,
)
from kantan_agents.tool_rules.decide import decide_received, decide_written, received_arguments
from kantan_agents.tool_rules.worker import PROGRAM, decision_of, task_of
from kantan_agents.tools.guards.worker_process import run_worker

_DENSE_LENGTH = 10_000
_DENSE_VALUES = 2_000


async def check_layers(layers: RuleLayers, tool: ToolFacts, arguments: str | Mapping[str, Any]) -> Decision:
    """Return the first denial, or the layers' decision."""
    decision = await check_call(layers.rules, tool, arguments)
    awaited = decision.awaited
    for name, rules in layers.limits if decision.allowed else ():
        narrowed = await check_call(rules, tool, arguments)
        awaited = awaited or narrowed.awaited
        if not narrowed.allowed:
            return attrs.evolve(narrowed, limit=name, awaited=awaited)
    return attrs.evolve(decision, awaited=awaited) if awaited else decision


async def check_call(rules: ToolRules, tool: ToolFacts, arguments: str | Mapping[str, Any]) -> Decision:
    """Like ``decide_call``, without blocking; invalid arguments are a denial (E10)."""
    decision = decide_tool(rules, tool)
    if not decision.allowed or not needs_arguments(rules, tool):
        return decision
    try:
        return await _decided(rules, tool, arguments)
    except KantanAgentsError as error:
        return Decision(allowed=False, key="params", entry=tool.name, error=error)


async def denies(rules: ToolRules, tool: ToolFacts, arguments: str) -> bool:
    """Return whether rules deny a call; unreadable arguments may be any."""
    if not rules.denied_calls(tool.names):
        return rules.denying(tool.names) is not None
    if not (await check_call(rules, tool, arguments)).allowed:
        return True
    moved = _moved_to(arguments) if tool.parameter == "path" else None
    return moved is not None and not (await check_call(rules, tool, {"path": moved})).allowed


def _moved_to(arguments: str) -> str | None:
    moved = json.loads(arguments).get("move_to") if '"move_to"' in arguments else None
    return moved if isinstance(moved, str) else None


async def _decided(rules: ToolRules, tool: ToolFacts, arguments: str | Mapping[str, Any]) -> Decision:
    if not isinstance(arguments, str):
        return await _decide_both(rules, tool, arguments, arguments)
    if not _is_dense(arguments):
        return await _decide_both(rules, tool, parse_arguments(tool.name, arguments), arguments)
    if not _needs_arguments_here(rules, tool):
        return await _decide_in_subprocess(rules, tool, arguments)
    await anyio.lowlevel.checkpoint()
    parsed = await anyio.to_thread.run_sync(parse_arguments, tool.name, arguments)
    decision = await _decide_both(rules, tool, parsed, arguments, is_dense=True)
    return attrs.evolve(decision, awaited=True)


async def _decide_both(
    rules: ToolRules,
    tool: ToolFacts,
    parsed: Mapping[str, Any],
    written: str | Mapping[str, Any],
    *,
    is_dense: bool = False,
) -> Decision:
    if not is_dense and is_quick(rules, tool, parsed):
        decision = decide_written(rules, tool, parsed)
    else:
        decision = await _decide_in_subprocess(rules, tool, parsed if _compares_here(tool) else written)
    if not decision.allowed:
        return decision
    if is_dense:
        readings = await anyio.to_thread.run_sync(received_arguments, rules, tool, parsed)
    else:
        readings = received_arguments(rules, tool, parsed)
    for received in readings:
        if not is_dense and is_quick(rules, tool, received):
            refusal = decide_received(rules, tool, received, parsed)
        else:
            away = await _decide_in_subprocess(rules, tool, received, written=parsed)
            refusal, decision = None if away.allowed else away, attrs.evolve(decision, awaited=True)
        if refusal is not None:
            return attrs.evolve(refusal, awaited=decision.awaited)
    return decision


def _needs_arguments_here(rules: ToolRules, tool: ToolFacts) -> bool:
    """Return whether the tool's functions need the arguments; another process cannot call them."""
    return _compares_here(tool) or (tool.received is not None and rules.checks(tool.names) is not None)


def _compares_here(tool: ToolFacts) -> bool:
    return tool.fold is not None or tool.canonical is not None


def _is_dense(text: str) -> bool:
    return len(text) > _DENSE_LENGTH and text.count(",") + text.count("{") > _DENSE_VALUES


async def _decide_in_subprocess(
    rules: ToolRules,
    tool: ToolFacts,
    arguments: str | Mapping[str, Any],
    *,
    written: Mapping[str, Any] | None = None,
) -> Decision:
    """Decide in another process.

    The validator holds the interpreter lock, so a thread would block the event loop. Starting Python takes a
    tenth of a second, but this is rare: a long string and a large pattern, for example.
    """
    task = task_of(rules, tool, arguments, written=written)
    await anyio.lowlevel.checkpoint()  # the code before has used up the time of this step
    try:
        return decision_of(json.loads(await run_worker(PROGRAM, json.dumps(task).encode())), tool)
    except (OSError, ValueError, subprocess.SubprocessError, TimeoutError) as error:
        # A call that cannot be checked is denied.
        reason = f"they could not be checked ({type(error).__name__})"
        raise ToolInputError(tool_name=tool.name, reason=reason) from error
