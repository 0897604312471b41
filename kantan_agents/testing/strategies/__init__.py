"""Hypothesis strategies for agents, tools and rules."""

from kantan_agents.support.extras import require_extra

require_extra("testing")

from kantan_agents.testing.strategies.calls import tool_calls
from kantan_agents.testing.strategies.contexts import contexts, prompts
from kantan_agents.testing.strategies.json_values import json_values
from kantan_agents.testing.strategies.rules import tool_rules

__all__ = ["contexts", "json_values", "prompts", "tool_calls", "tool_rules"]
