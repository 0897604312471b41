"""Decides about one call, and aborts slow checks."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from kantan_agents.errors import KantanAgentsError
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
from kantan_agents.tool_rules.decide import received_arguments
from kantan_agents.tool_rules.worker import LIFETIME_SECONDS, decision_of, task_of, worker_command
from kantan_agents.traces.capture import RecordedDecision

Arguments: TypeAlias = "str | Mapping[str, Any]"
"""The model's JSON, or the rules' view of a call of another kind."""


class CheckFailedError(Exception):
    """A check took too long, or its process could not be started."""


def depends_on_arguments(layers: RuleLayers, tool: ToolFacts) -> bool:
    """Return whether arguments influence the decision."""
    return any(
        decide_tool(rules, tool).allowed and needs_arguments(rules, tool) for rules in layers.rule_sets
    )


def decide(layers: RuleLayers, tool: ToolFacts, asked: Sequence[Arguments]) -> RecordedDecision:
    """Return the decision of layers and limits about each of ``asked``; the first denial counts."""
    decision = Decision(allowed=True)
    for arguments in asked:
        decision = _decide_by_layers(layers, tool, arguments)
        if not decision.allowed:
            break
    return RecordedDecision(
        is_allowed=decision.allowed,
        rule=None if decision.key is None else decision.rule,
        layers=layers.deciding(decision),
        code=None if decision.error is None else decision.error.code,
    )


def _decide_by_layers(layers: RuleLayers, tool: ToolFacts, arguments: Arguments) -> Decision:
    decision = _decide_by(layers.rules, tool, arguments)
    for name, rules in layers.limits if decision.allowed else ():
        narrowed = _decide_by(rules, tool, arguments)
        if not narrowed.allowed:
            return attrs.evolve(narrowed, limit=name)
    return decision


def _decide_by(rules: ToolRules, tool: ToolFacts, arguments: Arguments) -> Decision:
    decision = decide_tool(rules, tool)
    if not decision.allowed or not needs_arguments(rules, tool):
        return decision
    try:
        read = parse_arguments(tool.name, arguments) if isinstance(arguments, str) else arguments
        received = received_arguments(rules, tool, read)
        if all(is_quick(rules, tool, one) for one in (read, *received)):
            return decide_call(rules, tool, read)
        return _decide_elsewhere(rules, tool, read, received)
    except KantanAgentsError as error:
        return Decision(allowed=False, key="params", entry=tool.name, error=error)


def _decide_elsewhere(
    rules: ToolRules, tool: ToolFacts, read: Mapping[str, Any], received: Sequence[Mapping[str, Any]]
) -> Decision:
    """A match cannot be interrupted in this process."""
    decision = _ask_worker(task_of(rules, tool, read), tool)
    for one in received if decision.allowed else ():
        refusal = _ask_worker(task_of(rules, tool, one, written=read), tool)
        if not refusal.allowed:
            return refusal
    return decision


def _ask_worker(task: dict[str, Any], tool: ToolFacts) -> Decision:
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter and a program of this library
            worker_command(),
            input=json.dumps(task).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=LIFETIME_SECONDS,
            check=True,
        )
        return decision_of(json.loads(done.stdout), tool)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise CheckFailedError(f"it could not be checked ({type(error).__name__})") from error
