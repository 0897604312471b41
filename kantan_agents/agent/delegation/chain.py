"""The chain of delegating agents."""

from __future__ import annotations

from threading import Lock
from typing import Any

import attrs

from kantan_agents.agent.delegation.parent import Parent
from kantan_agents.core.pipeline import Run
from kantan_agents.errors import DelegationCycleError, DelegationLimitError
from kantan_agents.subagent_files import name_key
from kantan_agents.tool_rules import DELEGATION, RuleLayers, ToolRules


class Counter:
    """Counts the delegations of one outermost run; thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._count = 0

    def take(self, most: int) -> bool:
        """Count one more delegation; return False at ``most``."""
        with self._lock:
            if self._count >= most:
                return False
            self._count += 1
            return True


@attrs.frozen(eq=False)
class Link:
    """The position of a run in its chain; ``names`` starts with the outermost agent."""

    names: tuple[str, ...]
    depth: int = 0
    counter: Counter = attrs.field(factory=Counter)

    def names_with(self, agent: str) -> tuple[str, ...]:
        """Return the names plus ``agent``, which may have the run by a handoff."""
        return self.names if agent == self.names[-1] else (*self.names, agent)

    def next(self, agent: str, *, by: str, max_depth: int, max_delegations: int) -> Link:
        """Return the position of a run that ``by`` delegates to ``agent``; raises E33 or E34."""
        chain = self.names_with(by)
        if any(name_key(agent) == name_key(name) for name in chain):
            raise DelegationCycleError(agent=agent, chain=chain)
        if self.depth >= max_depth:
            limit = f"at most {max_depth} levels of delegation are allowed"
            raise DelegationLimitError(agent=agent, limit=limit)
        if not self.counter.take(max_delegations):
            limit = f"all {max_delegations} allowed delegations have been used"
            raise DelegationLimitError(agent=agent, limit=limit)
        return Link((*chain, agent), self.depth + 1, self.counter)


class DelegationCeiling:
    """Limits a run to the current permissions of all agents above it, and of the tool."""

    def __init__(self, parent: Parent, call: ToolRules) -> None:
        self._parent = parent
        self._call = call
        self._last: tuple[RuleLayers, RuleLayers, RuleLayers] | None = None

    def over(self, layers: RuleLayers) -> RuleLayers:
        """Return ``layers`` with all limits from above; E18, E20 if a parent made its rules invalid."""
        above = self._parent.rules()
        last = self._last
        if last is not None and last[0] is layers and last[1] is above:
            return last[2]
        narrowed = layers.with_limits((DELEGATION, self._call), *above.as_limits(self._parent.name))
        self._last = (layers, above, narrowed)
        return narrowed

    @property
    def agents_above(self) -> tuple[Any, ...]:
        """The SDK agents above, whose tools inherited middleware may name."""
        parent, run = self._parent, self._parent.run
        if run is None:
            return (parent.agent,)
        above = getattr(run.delegation, "ceiling", None)
        return (parent.agent, run.agent.sdk_agent, *(above.agents_above if above is not None else ()))


@attrs.frozen(eq=False)
class Delegation:
    """A run's part in the delegation tree: ``run.delegation``."""

    link: Link
    ceiling: DelegationCeiling | None = None
    is_streamed: bool = False


def link_of(run: Run | None, name: str) -> Link:
    """Return a run's position; the outermost run starts a chain."""
    if run is None:
        return Link((name,))
    if run.delegation is None:
        run.delegation = Delegation(Link((run.agent.name,)))
    link: Link = run.delegation.link
    return link
