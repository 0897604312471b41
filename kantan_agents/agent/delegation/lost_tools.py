"""Warns of a subagent whose tools are not in a file above."""

from __future__ import annotations

from weakref import WeakSet

from kantan_agents.agent import Agent
from kantan_agents.agent.delegation.chain import Delegation
from kantan_agents.subagent_files import AgentDefinition
from kantan_agents.subagent_files.grants import TASK_NAMES
from kantan_agents.subagent_files.unknown_tools import UnknownTool, listed
from kantan_agents.support.log import get_logger
from kantan_agents.tool_rules import DELEGATION
from kantan_agents.tools.facts import facts_of_listed

_log = get_logger("kantan_agents.delegation")
_OF_RULES = f"{DELEGATION}: rules of "
_checked: WeakSet[Agent] = WeakSet()


def warn_of_lost_tools(child: Agent, definition: AgentDefinition, delegation: Delegation) -> None:
    """Log the tools that only the subagent's file lists, once for each agent.

    Denials by rules are intended, so they are not reported.
    """
    if child in _checked or delegation.ceiling is None:
        return
    _checked.add(child)
    layers = delegation.ceiling.over(child.standing_rules)
    lost: dict[str, list[UnknownTool]] = {}
    has_tools = False
    for tool in child.unguarded_tools:
        facts = facts_of_listed(tool)
        decision = layers.decide_tool(facts)
        limit = decision.limit or ""
        if not decision.allowed and limit.startswith(f"{DELEGATION}: ") and not limit.startswith(_OF_RULES):
            lost.setdefault(limit, []).append(UnknownTool(facts.name))
        has_tools = has_tools or (decision.allowed and TASK_NAMES[0] not in facts.names)
    if has_tools and not isinstance(definition.tools, tuple):
        return
    for limit, tools in lost.items():
        problem = f"agent {child.name!r} works without {listed(tools)}: denied by the limit {limit!r}"
        _log.warning(problem, agent=child.name, path=str(definition.path))
