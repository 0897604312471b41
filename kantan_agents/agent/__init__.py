"""``Agent``: its constructor, its options, and how it is made from a definition."""

from kantan_agents.agent.agent import Agent

__all__ = ["Agent"]
