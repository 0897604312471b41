"""Tool rules as a frozen value, parsed at the boundary (spec 8.2).

A mistake in a rule set is an error that names it, never a rule that silently allows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

import attrs

from kantan_agents.errors import InvalidToolRulesError

Names = frozenset[str] | Literal["*"] | None

_KEYS = ("allow", "deny", "params")


@attrs.frozen
class ToolRules:
    """Which tools may be used.

    Args:
        allow: Names that may be used, ``"*"`` for all, None when nothing is said (all are allowed).
        deny: Names that may not be used, ``"*"`` for all, None when nothing is said. Deny wins.
    """

    allow: Names = None
    deny: Names = None

    @classmethod
    def parse(cls, rules: Mapping[str, Any]) -> ToolRules:
        """Read the public dict shape ``{"allow": ..., "deny": ..., "params": {...}}``.

        Raises:
            InvalidToolRulesError: E20, with every mistake and its path. Parameter rules are refused
                as long as nothing enforces them.
        """
        problems = [
            f"{key}: unknown key, there are allow, deny and params" for key in rules if key not in _KEYS
        ]
        allow = _parse_names("allow", rules.get("allow"), problems)
        deny = _parse_names("deny", rules.get("deny"), problems)
        if rules.get("params"):
            problems.append("params: parameter rules are not enforced by this version")
        if problems:
            raise InvalidToolRulesError(problems=problems)
        return cls(allow, deny)

    def permits(self, tool_name: str) -> bool:
        """Return whether the tool may be used: allowed and not denied."""
        if self.deny == "*" or (self.deny is not None and tool_name in self.deny):
            return False
        return self.allow is None or self.allow == "*" or tool_name in self.allow

    @property
    def permits_all(self) -> bool:
        """Whether no tool at all is ruled out."""
        return not self.deny and (self.allow is None or self.allow == "*")


def _parse_names(key: str, value: object, problems: list[str]) -> Names:
    if value is None or value == "*":
        return cast("Names", value)
    if isinstance(value, str) or not isinstance(value, (list, tuple, set, frozenset)):
        problems.append(f'{key}: must be "*", a list of tool names or None, not {value!r}')
        return None
    wrong = [name for name in value if not isinstance(name, str) or not name]
    problems.extend(f"{key}: {name!r} is not a tool name" for name in wrong)
    names = frozenset(name for name in value if isinstance(name, str))
    return "*" if "*" in names else names
