"""User rules, which are independent of the model's tool rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import attrs

from kantan_agents.middleware.slash_commands.user_rules import USER_RULES, read_user_rules
from kantan_agents.tool_rules import EXPLICIT, USER, RuleLayers, ToolRules, merge
from kantan_agents.tools.guards.guard import ToolGuard

_NO_ALIASES: Mapping[str, str] = MappingProxyType({})


def user_layers(
    rules: ToolRules, context: Any, standing: RuleLayers, aliases: Mapping[str, str] = _NO_ALIASES
) -> RuleLayers:
    """Return the rule layers for the commands of one run.

    The providers' ``deny`` and parameter rules apply below the user rules. Their ``allow`` is written for
    models, so it applies only if no user rules have one. The limits of a subagent file always apply.
    """
    explicit = context.get(USER_RULES) if isinstance(context, dict) else None
    own = [(USER, rules)]
    if explicit is not None:
        own.append((EXPLICIT, read_user_rules(explicit)))
    limits = standing.limits
    if aliases:
        refused = _refused_by_alias(merge(*(layer for _, layer in own)), aliases)
        limits = (*limits, *((USER, layer) for layer in refused))
        own = [(name, layer.merge(_allowed_by_alias(layer, aliases))) for name, layer in own]
    beneath = standing.layers
    if any(layer.allow is not None for _, layer in own):
        beneath = tuple((name, attrs.evolve(layer, allow=None)) for name, layer in beneath)
    return RuleLayers((*beneath, *own), limits)


def _allowed_by_alias(rules: ToolRules, aliases: Mapping[str, str]) -> ToolRules:
    """Return the ``allow`` entries that name an alias, for its tool.

    Patterns are ignored: ``allow=["read*"]`` must not allow a tool because it has an alias ``reads``.
    """
    if not isinstance(rules.allow, tuple):
        return ToolRules()
    names = [
        renamed
        for alias, tool in aliases.items()
        for entry, renamed in _renamed(rules.about((alias,))["allow"], tool)
        if entry.partition("(")[0].strip() == alias
    ]
    return ToolRules.parse({"allow": names})


def _refused_by_alias(rules: ToolRules, aliases: Mapping[str, str]) -> Iterator[ToolRules]:
    """Yield the ``deny`` and parameter rules that match an alias, for its tool.

    Patterns count here. Each rule is a separate layer: merged, rules about one parameter would replace each
    other.
    """
    if not rules.deny and not rules.params:
        return
    for alias, tool in aliases.items():
        matching = rules.about((alias,))
        denied = [renamed for _, renamed in _renamed(matching["deny"], tool)]
        if denied:
            yield ToolRules.parse({"deny": denied})
        for rule in matching["params"].values():
            yield ToolRules.parse({"params": {tool: rule}})


def _renamed(entries: Any, tool: str) -> Iterator[tuple[str, str]]:
    """``rm(a:*)`` becomes ``delete(a:*)``."""
    for entry in entries if isinstance(entries, list) else ():
        _, bracket, call = entry.partition("(")
        yield entry, f"{tool}{bracket}{call}"


@attrs.frozen(eq=False)
class UserGuard(ToolGuard):
    """Checks the calls of one tool; for its fields, see ``user_layers``."""

    rules: ToolRules
    standing: RuleLayers
    aliases: Mapping[str, str] = _NO_ALIASES

    def layers(self, context: Any) -> RuleLayers:
        """Return the layers for a context."""
        return user_layers(self.rules, context, self.standing, self.aliases)
