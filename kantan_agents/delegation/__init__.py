"""Delegation: a tool by which an agent has another one, kept as a file, do a part of the work."""

from kantan_agents.delegation.task import task_tool

__all__ = ["task_tool"]
