"""``Agent``: its constructor, its options, and its creation from an agent definition."""

from kantan_agents.agent.agent import Agent

__all__ = ["Agent"]
