"""Ready-made rule sets (spec 8.4)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from enum import Enum
from typing import Any

from kantan_agents.errors import ToolRulesTypeError, UnknownToolRulesModeError
from kantan_agents.tool_rules.rules import ToolRules


class ToolRulesMode(Enum):
    """Names of the three most common rule sets.

    Attributes:
        ALLOW_ALL: Every tool may be used, unless a provider's rules deny it.
        DENY_ALL: No tool may be used.
        RECOMMENDED: The rules recommended by the tools' providers, with no addition.
    """

    ALLOW_ALL = "allow_all"
    DENY_ALL = "deny_all"
    RECOMMENDED = "recommended"


_RULES: dict[ToolRulesMode, dict[str, Any]] = {
    ToolRulesMode.ALLOW_ALL: {"allow": "*", "deny": [], "params": {}},
    ToolRulesMode.DENY_ALL: {"allow": [], "deny": "*", "params": {}},
    ToolRulesMode.RECOMMENDED: {"allow": None, "deny": None, "params": {}},
}


def rules_of(mode_or_rules: object) -> dict[str, Any]:
    """Return a mode's rules, or a validated copy of a mapping as plain dicts and lists.

    Raises E9, E18 or E20, like ``get_context_with_tool_rules``.
    """
    if isinstance(mode_or_rules, ToolRulesMode):
        return copy.deepcopy(_RULES[mode_or_rules])
    if isinstance(mode_or_rules, Mapping):
        rules = ToolRules.parse(mode_or_rules).to_dict()
        return {key: rules[key] for key in mode_or_rules}
    if isinstance(mode_or_rules, Enum):
        raise UnknownToolRulesModeError(mode=mode_or_rules)
    raise ToolRulesTypeError(got=type(mode_or_rules).__name__)


def get_context_with_tool_rules(mode_or_rules: ToolRulesMode | Mapping[str, Any]) -> dict[str, Any]:
    """Return a new context with tool rules (spec 8.4).

    Args:
        mode_or_rules: A ``ToolRulesMode``, or rules of the shape
            ``{"allow": ..., "deny": ..., "params": {...}}``, which are copied.

    Raises:
        UnknownToolRulesModeError: E9, the value is an enum member, but not a mode.
        ToolRulesTypeError: E18, the value is neither a mode nor a mapping.
        InvalidToolRulesError: E20, with every mistake of the rules and its path.

    Returns:
        ``{"tool_rules": ..., "result": None}``.
    """
    return {"tool_rules": rules_of(mode_or_rules), "result": None}
