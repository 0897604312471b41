"""Handoffs to Agents, plain SDK agents and ``agents.handoff(...)`` objects, cycles included."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import is_
from typing import Any, Protocol

import agents
from agents import Handoff

from kantan_agents.agent.bridge.guarded_agent import guard_agent, guard_handoff
from kantan_agents.agent.bridge.sdk_agent import SDKAgent
from kantan_agents.errors import InvalidOptionError


class Linkable(Protocol):
    """The part of an ``Agent`` that linking needs."""

    handoffs: list[Any]
    handoff_links: HandoffLinks
    _sdk_agent: SDKAgent


class HandoffLinks:
    """Updates an SDK agent's handoffs after changes of the public list, as cycles need.

    Attributes:
        linked: The targets that were linked last.
        reached: Every Agent reachable then, itself included, with its targets.
    """

    def __init__(self) -> None:
        self.linked: list[Any] = []
        self.reached: tuple[tuple[Linkable, list[Any]], ...] = ()

    def update(self, agent: Linkable, sdk_agent: SDKAgent) -> Iterable[Linkable]:
        """Update ``sdk_agent.handoffs``; return the Agents among the targets."""
        targets = list(agent.handoffs)
        if not _are_same(targets, self.linked):
            sdk_agent.handoffs = [_sdk_handoff(target) for target in targets]
            self.linked = targets
        return [target for target in targets if _bare_sdk_agent(target) is not None]


def link_handoffs(start: Linkable) -> None:
    """Update the handoffs of all reachable Agents."""
    links = start.handoff_links
    # A run of another agent may have relinked one of them since.
    if links.reached and all(
        agent.handoff_links.linked is targets and _are_same(agent.handoffs, targets)
        for agent, targets in links.reached
    ):
        return
    reached: list[tuple[Linkable, list[Any]]] = []
    waiting: list[Linkable] = [start]
    seen = {id(start)}
    while waiting:
        agent = waiting.pop()
        for target in agent.handoff_links.update(agent, agent._sdk_agent):
            if id(target) not in seen:
                seen.add(id(target))
                waiting.append(target)
        reached.append((agent, agent.handoff_links.linked))
    links.reached = tuple(reached)


def _are_same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    # The SDK's agents are dataclasses, whose `==` never ends on a cycle.
    return len(some) == len(others) and all(map(is_, some, others))


def _sdk_handoff(target: Any) -> agents.Agent[Any] | Handoff[Any, Any]:
    if isinstance(target, Handoff):
        guard_handoff(target)
        known = getattr(target, "_agent_ref", None)
        guard_agent(known() if known is not None else None)
        return target
    sdk_agent = _bare_sdk_agent(target)  # first: an Agent passes for an SDK agent
    if sdk_agent is not None:
        return agents.handoff(sdk_agent)
    if isinstance(target, agents.Agent):
        guard_agent(target)
        return target
    raise InvalidOptionError(
        option="handoffs",
        reason=f"must hold Agents, SDK agents or agents.handoff(...) objects, not {target!r}",
    )


def _bare_sdk_agent(target: Any) -> SDKAgent | None:
    # Not the public property `sdk_agent`: it would link handoffs again.
    sdk_agent = getattr(target, "_sdk_agent", None)
    return sdk_agent if isinstance(sdk_agent, SDKAgent) else None
