"""Checks one call against the rules in force without blocking the event loop for long."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import anyio
import anyio.lowlevel
import attrs

from kantan_agents.errors import (
    PARAMETER_ERRORS,
    KantanAgentsError,
    ToolInputError,
    ToolNotAllowedError,
)
from kantan_agents.tool_rules import (
    Decision,
    RuleLayers,
    ToolFacts,
    ToolRules,
    decide_call,
    decide_tool,
    is_quick,
    needs_arguments,
    parse_arguments,
)

_TIMEOUT_SECONDS = 20
_PROCESSES_AT_ONCE = 2
_limiters: anyio.lowlevel.RunVar[anyio.CapacityLimiter] = anyio.lowlevel.RunVar("kantan_agents_checks")
_DENSE_LENGTH = 10_000
_DENSE_VALUES = 2_000
# The child process has the same `sys.path`, without the working directory.
_WORKER = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from kantan_agents.tool_rules.worker import main; main()"
)


async def check_layers(layers: RuleLayers, tool: ToolFacts, arguments: str | Mapping[str, Any]) -> Decision:
    """Decide about a call by layers and limits: the first refusal, or the decision of the layers."""
    decision = await check_call(layers.rules, tool, arguments)
    awaited = decision.awaited
    for name, rules in layers.limits if decision.allowed else ():
        narrowed = await check_call(rules, tool, arguments)
        awaited = awaited or narrowed.awaited
        if not narrowed.allowed:
            return attrs.evolve(narrowed, limit=name, awaited=awaited)
    return attrs.evolve(decision, awaited=awaited) if awaited else decision


async def check_call(rules: ToolRules, tool: ToolFacts, arguments: str | Mapping[str, Any]) -> Decision:
    """Decide about a call as ``decide_call`` does, without blocking the event loop.

    Args:
        rules: The rules in force.
        tool: The tool that is called.
        arguments: The model's JSON text, or the parsed arguments.

    Returns:
        The decision. Invalid arguments are a refusal with E10, they do not raise.
    """
    decision = decide_tool(rules, tool)
    if not decision.allowed or not needs_arguments(rules, tool):
        return decision
    try:
        if isinstance(arguments, str):
            if _is_dense(arguments):
                return await _decide_in_subprocess(rules, tool, arguments)
            text, arguments = arguments, parse_arguments(tool.name, arguments)
        else:
            text = None
        if is_quick(rules, tool, arguments):
            return decide_call(rules, tool, arguments)
        return await _decide_in_subprocess(rules, tool, text if text is not None else json.dumps(arguments))
    except KantanAgentsError as error:
        return Decision(allowed=False, key="params", entry=tool.name, error=error)


def _is_dense(text: str) -> bool:
    """Return whether parsing a JSON text takes long: it has many values, not only long ones."""
    return len(text) > _DENSE_LENGTH and text.count(",") + text.count("{") > _DENSE_VALUES


def _limiter() -> anyio.CapacityLimiter:
    """Return the limiter for the number of processes that one event loop starts at the same time."""
    try:
        return _limiters.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(_PROCESSES_AT_ONCE)
        _limiters.set(limiter)
        return limiter


async def _decide_in_subprocess(rules: ToolRules, tool: ToolFacts, arguments: str) -> Decision:
    """Decide in a separate process, for decisions that may take milliseconds or seconds.

    A thread would block the event loop, because the validator holds the interpreter lock. This is rare, for
    example a long text and a large pattern. Starting Python takes a tenth of a second, but does not block.
    """
    task = {
        "rules": rules.about(tool.names),
        "names": tool.names,
        "parameter": tool.parameter,
        "schema": tool.schema,
        "arguments": arguments,
    }
    command = [sys.executable or "", "-I", "-c", _WORKER, json.dumps([str(place) for place in sys.path])]
    await anyio.lowlevel.checkpoint()  # the code before has used up the time of this step
    try:
        async with _limiter():
            with anyio.fail_after(_TIMEOUT_SECONDS):
                done = await anyio.run_process(
                    command, input=json.dumps(task).encode(), stderr=subprocess.DEVNULL
                )
        found = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError, TimeoutError) as error:
        # A call that cannot be checked is refused.
        reason = f"they could not be checked ({type(error).__name__})"
        raise ToolInputError(tool_name=tool.name, reason=reason) from error
    refusal = _error_of(found, tool)
    return Decision(found["allowed"], found["key"], found["entry"], refusal, awaited=True)


def _error_of(found: dict[str, Any], tool: ToolFacts) -> KantanAgentsError | None:
    if found["allowed"]:
        return None
    if "reason" in found:
        return ToolInputError(tool_name=tool.name, reason=found["reason"])
    if "keyword" not in found:
        return ToolNotAllowedError(tool_name=tool.name)
    kind = PARAMETER_ERRORS[found["keyword"]]
    return kind(tool_name=tool.name, param_name=found["param_name"], limit=found["limit"])
