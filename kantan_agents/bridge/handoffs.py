"""Hand-offs between agents of ours, SDK agents and ``agents.handoff(...)`` objects, cycles included."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import agents
from agents import Handoff

from kantan_agents.bridge.guarded_agent import guard_agent, guard_handoff
from kantan_agents.bridge.sdk_agent import SDKAgent
from kantan_agents.errors import InvalidOptionError


class Linkable(Protocol):
    """An Agent of ours as far as hand-offs are concerned."""

    handoffs: list[Any]
    handoff_links: HandoffLinks
    _sdk_agent: SDKAgent


class HandoffLinks:
    """Keeps one agent's SDK hand-offs equal to its public ``handoffs`` list.

    The list may be changed after the agent was made, which is how a cycle comes about; what the SDK
    sees is made anew only when it was.

    Attributes:
        linked: The targets as they were linked last.
        reached: Every agent of ours that could be reached then, this one included, with its targets.
    """

    __slots__ = ("linked", "reached")

    def __init__(self) -> None:
        self.linked: list[Any] = []
        self.reached: tuple[tuple[Linkable, list[Any]], ...] = ()

    def update(self, agent: Linkable, sdk_agent: SDKAgent) -> Iterable[Linkable]:
        """Bring ``sdk_agent.handoffs`` up to date and return the agents of ours among the targets."""
        targets = list(agent.handoffs)
        if targets != self.linked:
            sdk_agent.handoffs = [_sdk_handoff(target) for target in targets]
            self.linked = targets
        return [target for target in targets if _bare_sdk_agent(target) is not None]


def link_handoffs(start: Linkable) -> None:
    """Bring the hand-offs of ``start`` and of every agent of ours reachable from it up to date."""
    links = start.handoff_links
    if not start.handoffs and not links.linked:
        return  # the usual case
    # Another agent's run may have linked one of them anew since: then there is more to be looked at.
    if links.reached and all(
        agent.handoff_links.linked is targets and agent.handoffs == targets
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


def _sdk_handoff(target: Any) -> agents.Agent[Any] | Handoff[Any, Any]:
    if isinstance(target, Handoff):
        guard_handoff(target)
        known = getattr(target, "_agent_ref", None)
        guard_agent(known() if known is not None else None)
        return target
    if isinstance(target, agents.Agent):
        guard_agent(target)
        return target
    sdk_agent = _bare_sdk_agent(target)
    if sdk_agent is not None:
        return agents.handoff(sdk_agent)
    raise InvalidOptionError(
        option="handoffs",
        reason=f"must hold Agents, SDK agents or agents.handoff(...) objects, not {target!r}",
    )


def _bare_sdk_agent(target: Any) -> SDKAgent | None:
    # Not the public property: that one links hand-offs, which is what is being done.
    sdk_agent = getattr(target, "_sdk_agent", None)
    return sdk_agent if isinstance(sdk_agent, SDKAgent) else None
