"""What a delegated run may do at the most: what everybody above it may do at this moment, and no more."""

from __future__ import annotations

from kantan_agents.delegation.parent import Parent
from kantan_agents.tool_rules import RuleLayers, ToolRules

DELEGATION = "delegation"
"""Name of the limit that the delegation itself sets; those from further above begin with it."""


class DelegationCeiling:
    """Lies over the rules of a delegated run.

    Args:
        parent: Who has delegated.
        call: What the delegation itself allows.
    """

    def __init__(self, parent: Parent, call: ToolRules) -> None:
        self._parent = parent
        self._call = call
        self._last: tuple[RuleLayers, RuleLayers, RuleLayers] | None = None

    def over(self, layers: RuleLayers) -> RuleLayers:
        """Return ``layers`` with what limits them from above.

        Raises:
            ToolRulesTypeError, InvalidToolRulesError: E18, E20, somebody has made the rules of the run above
                unreadable meanwhile.
        """
        above = self._parent.rules()
        last = self._last
        if last is not None and last[0] is layers and last[1] is above:
            return last[2]
        narrowed = layers.with_limits((DELEGATION, self._call), *self._from_above(above))
        self._last = (layers, above, narrowed)
        return narrowed

    def _from_above(self, above: RuleLayers) -> list[tuple[str, ToolRules]]:
        name = self._parent.name
        limits = [(f"{DELEGATION}: rules of {name}", above.rules)]
        for limit, rules in above.limits:
            known = limit.startswith(f"{DELEGATION}: ")
            limits.append((limit if known else f"{DELEGATION}: {limit} of {name}", rules))
        return limits
