"""From an agent of the SDK back to the Agent that it represents."""

from __future__ import annotations

from typing import Any, cast

import agents

from kantan_agents.agent.agent import Agent
from kantan_agents.agent.bridge import SDKAgent


def agent_of(agent: agents.Agent[Any] | None) -> Agent[Any] | None:
    """Return the Agent that an agent of the SDK represents; None if this library did not create it.

    Results, hooks and tools name the agent of the SDK. The next turn of a conversation starts at the agent
    that gave the last answer:

        context = await triage.run_async("I want my money back", context)
        answered = agent_of(context["result"].last_agent) or triage
        context = await answered.run_async("When do I get it?", context)

    Args:
        agent: ``result.last_agent``, the agent that a hook receives, ``agent.sdk_agent``, or an Agent.
    """
    # Not by isinstance: an Agent is an instance of both.
    if issubclass(type(agent), Agent):
        return cast("Agent[Any]", agent)
    return cast("Agent[Any]", agent.owner) if isinstance(agent, SDKAgent) else None
