"""Delegation: a tool that lets an agent hand part of its work to another agent from a subagent file."""

from kantan_agents.agent.delegation.task import task_tool

__all__ = ["task_tool"]
