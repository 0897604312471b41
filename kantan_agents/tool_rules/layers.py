"""Rule sets on top of each other: base, provider, explicit (spec 9.2, 9.3, 9.7)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, reduce
from typing import Any

import attrs

from kantan_agents.tool_rules.decide import Decision
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

    Attributes:
        layers: Pairs of a name and its rules, the winning one last.
    """

    layers: tuple[tuple[str, ToolRules], ...] = ()

    @cached_property
    def rules(self) -> ToolRules:
        """The layers merged."""
        return merge(*(rules for _, rules in self.layers))

    def with_layer(self, name: str, rules: ToolRules) -> RuleLayers:
        """Return these layers with one more on top."""
        return RuleLayers((*self.layers, (name, rules)))

    def deciding(self, decision: Decision) -> tuple[str, ...]:
        """Return the layers whose entry made a decision; all that have it, the winning one last."""
        if decision.key is None:
            return ()
        return tuple(name for name, rules in self.layers if _holds(rules, decision.key, decision.entry))

    def about(self, names: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield, for each layer, what it says about a tool that goes by ``names``."""
        names = tuple(names)
        for layer, rules in self.layers:
            yield layer, rules.about(names)


def _holds(rules: ToolRules, key: str, entry: str | None) -> bool:
    if key == "params":
        return entry is not None and entry in rules.parameter_entries
    names = getattr(rules, key)
    if entry is None or names is None:
        return entry is None and names is not None
    return names == entry or (names != EVERY and entry in names)
