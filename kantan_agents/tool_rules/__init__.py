"""The rules that say which tools a run may use; pure functions and values."""

from kantan_agents.tool_rules.rules import ToolRules

__all__ = ["ToolRules"]
