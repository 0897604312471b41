"""The upper limit on what a delegated run may do: the rules of every agent above it, as they are now."""

from __future__ import annotations

from typing import Any

from kantan_agents.agent.delegation.parent import Parent
from kantan_agents.tool_rules import DELEGATION, RuleLayers, ToolRules


class DelegationCeiling:
    """Adds the limits from above to the rules of a delegated run.

    Args:
        parent: The agent that delegates.
        call: The rules of the delegation tool itself.
    """

    def __init__(self, parent: Parent, call: ToolRules) -> None:
        self._parent = parent
        self._call = call
        self._last: tuple[RuleLayers, RuleLayers, RuleLayers] | None = None

    def over(self, layers: RuleLayers) -> RuleLayers:
        """Return ``layers`` with all limits from above.

        Raises:
            ToolRulesTypeError, InvalidToolRulesError: E18, E20, the rules of the parent run were changed
                during the run and cannot be read any more.
        """
        above = self._parent.rules()
        last = self._last
        if last is not None and last[0] is layers and last[1] is above:
            return last[2]
        narrowed = layers.with_limits((DELEGATION, self._call), *above.as_limits(self._parent.name))
        self._last = (layers, above, narrowed)
        return narrowed

    @property
    def agents_above(self) -> tuple[Any, ...]:
        """The SDK agents above the delegated run: the names in inherited middleware may be of their tools."""
        parent, run = self._parent, self._parent.run
        if run is None:
            return (parent.agent,)
        above = getattr(run.delegation, "ceiling", None)
        return (parent.agent, run.agent.sdk_agent, *(above.agents_above if above is not None else ()))
