"""Layers of rule sets, and limits on them (spec 9.2, 9.3, 9.7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, reduce
from typing import Any

import attrs

from kantan_agents.tool_rules.decide import Decision, ToolFacts, decide_tool
from kantan_agents.tool_rules.names import EVERY
from kantan_agents.tool_rules.rules import NO_RULES, ToolRules

BASE = "base"
EXPLICIT = "explicit"
DEFINITION = "definition"
"""The limit from the tool lists of a subagent file."""


DELEGATION = "delegation"
"""The limit that a delegation sets; prefix of inherited limits."""
USER = "user"
"""The layer of the rules for users' slash commands."""


def merge(*layers: ToolRules) -> ToolRules:
    """Merge rule sets; a later one wins."""
    return reduce(ToolRules.merge, layers, NO_RULES)


def provider_layer(name: str) -> str:
    """Return the name of a provider's layer."""
    return f"provider {name}"


@attrs.frozen(slots=False, eq=False)
class RuleLayers:
    """Named rule sets that are merged in order, and limits, each of which must also permit a tool."""

    layers: tuple[tuple[str, ToolRules], ...] = ()
    limits: tuple[tuple[str, ToolRules], ...] = ()

    @cached_property
    def rules(self) -> ToolRules:
        """The merged layers, without the limits."""
        return merge(*(rules for _, rules in self.layers))

    @cached_property
    def rule_sets(self) -> tuple[ToolRules, ...]:
        """The merged layers, and each limit: all must permit a tool."""
        return (self.rules, *(rules for _, rules in self.limits))

    @cached_property
    def permits_all(self) -> bool:
        """Whether every tool, call and argument is permitted."""
        return all(rules.permits_all for rules in self.rule_sets)

    def with_layer(self, name: str, rules: ToolRules) -> RuleLayers:
        """Return these layers with one more on top."""
        return RuleLayers((*self.layers, (name, rules)), self.limits)

    def with_limits(self, *limits: tuple[str, ToolRules]) -> RuleLayers:
        """Return these layers with more limits."""
        narrowed = RuleLayers(self.layers, (*self.limits, *limits))
        narrowed.__dict__["rules"] = self.rules  # shares the merged and compiled rules
        return narrowed

    def as_limits(self, name: str) -> tuple[tuple[str, ToolRules], ...]:
        """Return these layers as limits for runs to which the agent ``name`` delegates."""
        limits = [(f"{DELEGATION}: rules of {name}", self.rules)]
        for limit, rules in self.limits:
            is_inherited = limit.startswith(f"{DELEGATION}: ")
            limits.append((limit if is_inherited else f"{DELEGATION}: {limit} of {name}", rules))
        return tuple(limits)

    def decide_tool(self, tool: ToolFacts) -> Decision:
        """Decide whether a tool may be used at all: the first denial, or the layers' decision."""
        decision = decide_tool(self.rules, tool)
        for name, rules in self.limits if decision.allowed else ():
            narrowed = decide_tool(rules, tool)
            if not narrowed.allowed:
                return attrs.evolve(narrowed, limit=name)
        return decision

    def deciding(self, decision: Decision) -> tuple[str, ...]:
        """Return the layers with the deciding entry, the winning layer last."""
        if decision.limit is not None:
            return (decision.limit,)
        if decision.key is None:
            return ()
        return tuple(name for name, rules in self.layers if _holds(rules, decision.key, decision.entry))

    def rules_behind(self, decision: Decision) -> ToolRules:
        """Return the deciding limit's rules, or the merged layers."""
        return next((rules for name, rules in self.limits if name == decision.limit), self.rules)

    def denials(self) -> Iterator[tuple[str, str]]:
        """Yield each layer and limit with each of its deny entries except ``"*"``."""
        for layer, rules in (*self.layers, *self.limits):
            for entry in rules.deny if isinstance(rules.deny, tuple) else ():
                yield layer, entry

    def about(self, names: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each layer and limit with its rules for a tool."""
        names = tuple(names)
        for layer, rules in (*self.layers, *self.limits):
            yield layer, rules.about(names)


def _holds(rules: ToolRules, key: str, entry: str | None) -> bool:
    if key == "params":
        return entry is not None and entry in rules.parameter_entries
    names = getattr(rules, key)
    if entry is None or names is None:
        return entry is None and names is not None
    return names == entry or (names != EVERY and entry in names)
