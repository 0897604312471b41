"""``Agent``: its constructor, its options, and its creation from an agent definition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kantan_agents.support.package_names import lazy_names

if TYPE_CHECKING:
    from kantan_agents.agent.agent import Agent
    from kantan_agents.agent.represented_agent import agent_of

__all__ = [
    "Agent",
    "agent_of",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kantan_agents.agent.agent": ("Agent",),
        "kantan_agents.agent.represented_agent": ("agent_of",),
    },
)
