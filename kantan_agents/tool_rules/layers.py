"""Rule sets on top of each other: base, provider, explicit (spec 9.2, 9.3, 9.7)."""

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


def merge(*layers: ToolRules) -> ToolRules:
    """Return the layers as one rule set; a later one wins over an earlier one."""
    return reduce(ToolRules.merge, layers, NO_RULES)


def provider_layer(name: str) -> str:
    """Return the name of the layer that a provider's rules make."""
    return f"provider {name}"


@attrs.frozen(slots=False, eq=False)
class RuleLayers:
    """Named rule sets in the order they were put on each other, and what they come to.

    Layers add up: one may allow what another does not. Limits do not: each of them must permit as well,
    whatever the layers say.

    Attributes:
        layers: Pairs of a name and its rules, the winning one last.
        limits: Pairs of a name and rules that only narrow.
    """

    layers: tuple[tuple[str, ToolRules], ...] = ()
    limits: tuple[tuple[str, ToolRules], ...] = ()

    @cached_property
    def rules(self) -> ToolRules:
        """The layers merged, without the limits."""
        return merge(*(rules for _, rules in self.layers))

    @cached_property
    def rule_sets(self) -> tuple[ToolRules, ...]:
        """All that must permit: the layers merged, and each limit."""
        return (self.rules, *(rules for _, rules in self.limits))

    @cached_property
    def permits_all(self) -> bool:
        """Whether nothing is ruled out: no tool, no call and no argument."""
        return all(rules.permits_all for rules in self.rule_sets)

    def with_layer(self, name: str, rules: ToolRules) -> RuleLayers:
        """Return these layers with one more on top, beneath the same limits."""
        return RuleLayers((*self.layers, (name, rules)), self.limits)

    def with_limits(self, *limits: tuple[str, ToolRules]) -> RuleLayers:
        """Return these layers with more limits."""
        narrowed = RuleLayers(self.layers, (*self.limits, *limits))
        narrowed.__dict__["rules"] = self.rules  # merged once, with what has been compiled for it
        return narrowed

    def decide_tool(self, tool: ToolFacts) -> Decision:
        """Say whether a tool may be used at all: the first refusal, or what the layers decide."""
        decision = decide_tool(self.rules, tool)
        for name, rules in self.limits if decision.allowed else ():
            narrowed = decide_tool(rules, tool)
            if not narrowed.allowed:
                return attrs.evolve(narrowed, limit=name)
        return decision

    def deciding(self, decision: Decision) -> tuple[str, ...]:
        """Return the layers whose entry made a decision; all that have it, the winning one last."""
        if decision.limit is not None:
            return (decision.limit,)
        if decision.key is None:
            return ()
        return tuple(name for name, rules in self.layers if _holds(rules, decision.key, decision.entry))

    def rules_behind(self, decision: Decision) -> ToolRules:
        """Return the rule set that made a decision."""
        return next((rules for name, rules in self.limits if name == decision.limit), self.rules)

    def about(self, names: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield, for each layer and each limit, what it says about a tool that goes by ``names``."""
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
