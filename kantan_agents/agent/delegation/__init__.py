"""Delegation: a tool that gives a task to another agent, from a subagent file."""

from kantan_agents.agent.delegation.task import task_tool

__all__ = ["task_tool"]
