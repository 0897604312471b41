"""``Agent``: its constructor, its options, and its creation from an agent definition."""

from kantan_agents.agent.agent import Agent
from kantan_agents.agent.agent_of import agent_of

__all__ = ["Agent", "agent_of"]
