"""``UserRules``: an object that only code can create."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from kantan_agents.core.context import PERMISSIONS
from kantan_agents.errors import ToolRulesTypeError
from kantan_agents.tool_rules import ToolRules, ToolRulesMode, rules_of

USER_RULES = PERMISSIONS[1]
"""Context key; these rules take precedence over ``SlashCommands``."""


@attrs.frozen(init=False, repr=False)
class UserRules:
    """The commands that users may run, for ``context["user_rules"]``.

    It is an object and not a dict, because a dict in a context may come from JSON, from a subagent file or
    from a model. Create it in your code, from data that the user cannot choose.

    Args:
        rules: A ``ToolRulesMode``, or rules of the same form as ``tool_rules``, which are copied.

    Attributes:
        rules: The rules, parsed.

    Raises:
        UnknownToolRulesModeError, ToolRulesTypeError, InvalidToolRulesError: E9, E18, E20, the rules are
            invalid.
    """

    rules: ToolRules

    def __init__(self, rules: ToolRulesMode | Mapping[str, Any]) -> None:
        self.__attrs_init__(ToolRules.parse(rules_of(rules)))

    def to_dict(self) -> dict[str, Any]:
        """Return the rules as a new dict of the form of ``tool_rules``."""
        return self.rules.to_dict()

    def __repr__(self) -> str:
        return f"UserRules({self.to_dict()!r})"


def read_user_rules(value: object) -> ToolRules:
    """E18 for another type: a file or a model may have written it."""
    if isinstance(value, UserRules):
        return value.rules
    if isinstance(value, ToolRulesMode):
        return ToolRules.parse(rules_of(value))
    got = type(value).__name__
    raise ToolRulesTypeError(
        got=f"{got} as {USER_RULES}",
        detail=f" that your code wraps in UserRules(...): context[{USER_RULES!r}] is a plain {got}, which a "
        "file or a model could have written",
    )
