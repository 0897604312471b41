"""The chain of agents that wait for each other: limits its length and forbids cycles."""

from __future__ import annotations

from threading import Lock
from typing import Any

import attrs

from kantan_agents.core.pipeline import Run
from kantan_agents.errors import DelegationCycleError, DelegationLimitError
from kantan_agents.subagent_files import name_key


class Counter:
    """Counts the delegations of one outermost run; thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._count = 0

    def take(self, most: int) -> bool:
        """Count one more delegation and return True; return False if there are ``most`` already."""
        with self._lock:
            if self._count >= most:
                return False
            self._count += 1
            return True


@attrs.frozen(eq=False)
class Link:
    """The position of a run in its chain.

    Attributes:
        names: The agents of the chain, the outermost first.
        depth: Number of delegations above this run.
        counter: Counts the delegations of the whole tree.
    """

    names: tuple[str, ...]
    depth: int = 0
    counter: Counter = attrs.field(factory=Counter)

    def names_with(self, agent: str) -> tuple[str, ...]:
        """Return the names plus ``agent``, if the last run was handed off to it."""
        return self.names if agent == self.names[-1] else (*self.names, agent)

    def next(self, agent: str, *, by: str, max_depth: int, max_delegations: int) -> Link:
        """Return the position of a run delegated from here.

        Args:
            agent: The agent to run.
            by: The agent that delegates.
            max_depth: Maximum number of delegations above a run.
            max_delegations: Maximum number of delegations in the whole tree.

        Raises:
            DelegationCycleError: E34, the agent is already in the chain.
            DelegationLimitError: E33, a maximum is exceeded.
        """
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


@attrs.frozen(eq=False)
class Delegation:
    """A run's part in the delegation tree: ``run.delegation``.

    Attributes:
        link: Its position in the chain.
        ceiling: Its `DelegationCeiling`; None for a run that was not delegated.
        is_streamed: Whether models stream, as in the parent run.
    """

    link: Link
    ceiling: Any = None
    is_streamed: bool = False


def link_of(run: Run | None, name: str) -> Link:
    """Return the position of a run in its chain; a run that was not delegated starts a new chain."""
    if run is None:
        return Link((name,))
    if run.delegation is None:
        run.delegation = Delegation(Link((run.agent.name,)))
    link: Link = run.delegation.link
    return link
