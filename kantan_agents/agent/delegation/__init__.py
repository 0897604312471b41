"""Delegation to agents from subagent files."""

from kantan_agents.agent.delegation.task import task_tool

__all__ = ["task_tool"]
