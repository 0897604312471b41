"""What a user may run: rules of their own, which have nothing to do with those of the model."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs

from kantan_agents.errors import ToolRulesTypeError
from kantan_agents.middleware.slash_commands.aliases import allowed_by_alias, refused_by_alias
from kantan_agents.tool_rules import EXPLICIT, RuleLayers, ToolRules, merge, rules_of
from kantan_agents.tools import Guard

USER_RULES = "user_rules"
"""Key of a run's context whose rules lie on top of those of ``SlashCommands``."""

USER = "user"
_NO_ALIASES: Mapping[str, str] = MappingProxyType({})


def user_layers(
    rules: ToolRules, context: Any, standing: RuleLayers, aliases: Mapping[str, str] = _NO_ALIASES
) -> RuleLayers:
    """Return the layers that hold for the commands of one run.

    What the tool providers deny is denied, and their parameter rules lie beneath. What they allow counts only
    where nobody says what users may run: it was written for models. The limits of an agent file hold as well.

    Args:
        rules: The rules of ``SlashCommands``.
        context: The context of the run.
        standing: The rules beneath: an agent's base and provider rules, and its limits.
        aliases: More names of commands, each with the tool's name; what users' rules say of one they say of
            the tool.

    Raises:
        ToolRulesTypeError: E18, ``context["user_rules"]`` is neither a mapping, a ``ToolRulesMode`` nor None.
        InvalidToolRulesError, UnknownToolRulesModeError: E20, E9, it has mistakes.
    """
    explicit = context.get(USER_RULES) if isinstance(context, dict) else None
    own = [(USER, rules)]
    if explicit is not None:
        own.append((EXPLICIT, _parsed(explicit)))
    limits = standing.limits
    if aliases:
        refused = refused_by_alias(merge(*(said for _, said in own)), aliases)
        limits = (*limits, *((USER, said) for said in refused))
        own = [(name, said.merge(allowed_by_alias(said, aliases))) for name, said in own]
    beneath = standing.layers
    if any(said.allow is not None for _, said in own):
        beneath = tuple((name, attrs.evolve(said, allow=None)) for name, said in beneath)
    return RuleLayers((*beneath, *own), limits)


def _parsed(rules: Any) -> ToolRules:
    try:
        return ToolRules.parse(rules_of(rules))
    except ToolRulesTypeError:
        raise ToolRulesTypeError(got=f"{type(rules).__name__} as {USER_RULES}") from None


@attrs.frozen(eq=False)
class UserGuard(Guard):
    """Asks the rules for users about the calls of one tool.

    Attributes:
        rules: The rules of ``SlashCommands``.
        standing: The rules beneath.
        aliases: More names of commands, each with the tool's name.
    """

    rules: ToolRules
    standing: RuleLayers
    aliases: Mapping[str, str] = _NO_ALIASES

    def layers(self, context: Any) -> RuleLayers:
        """Return the rules that hold for a run with this context."""
        return user_layers(self.rules, context, self.standing, self.aliases)
