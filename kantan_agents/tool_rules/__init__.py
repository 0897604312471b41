"""Tool rules as pure functions and values."""

from kantan_agents.tool_rules.arguments import MARKED_HALF, parse_arguments, read_json
from kantan_agents.tool_rules.decide import (
    Decision,
    ToolFacts,
    decide_call,
    decide_tool,
    is_quick,
    needs_arguments,
)
from kantan_agents.tool_rules.layers import (
    BASE,
    DEFINITION,
    DELEGATION,
    EXPLICIT,
    USER,
    RuleLayers,
    merge,
    provider_layer,
)
from kantan_agents.tool_rules.modes import ToolRulesMode, get_context_with_tool_rules, rules_of
from kantan_agents.tool_rules.origins import Origin
from kantan_agents.tool_rules.parameters import ParameterChecks
from kantan_agents.tool_rules.rules import NO_RULES, ToolRules

__all__ = [
    "BASE",
    "DEFINITION",
    "DELEGATION",
    "EXPLICIT",
    "MARKED_HALF",
    "NO_RULES",
    "USER",
    "Decision",
    "Origin",
    "ParameterChecks",
    "RuleLayers",
    "ToolFacts",
    "ToolRules",
    "ToolRulesMode",
    "decide_call",
    "decide_tool",
    "get_context_with_tool_rules",
    "is_quick",
    "merge",
    "needs_arguments",
    "parse_arguments",
    "provider_layer",
    "read_json",
    "rules_of",
]
