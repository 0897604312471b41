"""Who delegates: the agent whose model has called the tool, and the run it does so in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import agents
import attrs

from kantan_agents.agent import Agent
from kantan_agents.bridge import SDKAgent, unobserved
from kantan_agents.pipeline import Run, current_run
from kantan_agents.tool_rules import RuleLayers
from kantan_agents.tools import NO_LAYERS, rules_of_run

# What belongs to a run and not to the agent at work in it: hand-off targets obey the agent that was run.
_OF_THE_RUN = ("on_rule_violation", "pipeline", "runner")


@attrs.frozen(eq=False)
class Parent:
    """An agent that delegates.

    Attributes:
        name: Its name.
        agent: The SDK's agent at work.
        options: Options that an agent which works for it takes over; its tools among them.
        standing: The rules beneath the explicit ones.
        run: The run it is in; None if the SDK's runner was called directly.
        context: The context of that run.
    """

    name: str
    agent: Any
    options: Mapping[str, Any]
    standing: RuleLayers
    run: Run | None
    context: Any

    def rules(self) -> RuleLayers:
        """Return the rules in force for it at this moment."""
        return rules_of_run(self.run, self.context, self.standing)


def parent_of(wrapper: Any, agent: Any = None) -> Parent:
    """Return who delegates.

    Args:
        wrapper: The SDK's context of the tool call, or of the turn.
        agent: The SDK agent at work, if the context does not say.
    """
    run = current_run.get()
    at_work = getattr(wrapper, "agent", None) or agent
    if at_work is None:
        at_work = run.agent.sdk_agent if run is not None else agents.Agent(name="agent")
    around: Agent[Any] | None = run.agent if run is not None else None
    owner = at_work.owner if isinstance(at_work, SDKAgent) else None
    options = {**_inherited(owner or around), **_own(at_work, owner)}
    if around is not None and owner is not around:
        options |= {name: around.inherited[name] for name in _OF_THE_RUN}
        options["middleware"] = _united(around, owner)
    book = owner or around
    standing = book.standing_rules if book is not None else NO_LAYERS
    return Parent(at_work.name, at_work, options, standing, run, wrapper.context)


def _inherited(agent: Any) -> Mapping[str, Any]:
    return agent.inherited if agent is not None else {}


def _own(at_work: agents.Agent[Any], owner: Any) -> dict[str, Any]:
    """Return what the SDK's agent itself says; a copy of one of ours may have been changed."""
    own: dict[str, Any] = {"mcp_servers": list(at_work.mcp_servers)}
    own["tools"] = at_work.given_tools if isinstance(at_work, SDKAgent) else list(at_work.tools)
    if owner is None or at_work is not owner.sdk_agent:
        own["model"] = unobserved(at_work.model)
        own["model_settings"] = at_work.model_settings
        own["mcp_config"] = at_work.mcp_config
    return own


def _united(around: Agent[Any], owner: Any) -> list[Any]:
    """Return the middleware of the run, and inside it that of the agent at work."""
    middleware = list(around.inherited["middleware"])
    inner = owner.inherited["middleware"] if owner is not None else ()
    return middleware + [one for one in inner if not any(one is known for known in middleware)]
