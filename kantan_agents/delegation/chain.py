"""The chain of agents that wait for one another: how long it may be, and that nobody waits for himself."""

from __future__ import annotations

from threading import Lock
from typing import Any

import attrs

from kantan_agents.definitions import name_key
from kantan_agents.errors import DelegationCycleError, DelegationLimitError
from kantan_agents.pipeline import Run


class Counter:
    """How many delegations one outermost run has begun; they may begin at the same time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._count = 0

    def take(self, most: int) -> bool:
        """Count one more, unless there are ``most`` already."""
        with self._lock:
            if self._count >= most:
                return False
            self._count += 1
            return True


@attrs.frozen(eq=False)
class Link:
    """The place of a run in its chain.

    Attributes:
        names: The agents that wait or work, the outermost first.
        depth: How many delegations led here.
        counter: The delegations of all of them.
    """

    names: tuple[str, ...]
    depth: int = 0
    counter: Counter = attrs.field(factory=Counter)

    def names_with(self, agent: str) -> tuple[str, ...]:
        """Return the names, and that of an agent to which the last of these runs may have been handed."""
        return self.names if agent == self.names[-1] else (*self.names, agent)

    def next(self, agent: str, *, by: str, max_depth: int, max_delegations: int) -> Link:
        """Return the place of a run that is delegated from here.

        Args:
            agent: The agent that is to run.
            by: The agent that delegates.
            max_depth: How many delegations may lead to a run.
            max_delegations: How many there may be in all.

        Raises:
            DelegationCycleError: E34, the agent is in the chain already.
            DelegationLimitError: E33, the chain would be too long, or there have been too many.
        """
        chain = self.names_with(by)
        if any(name_key(agent) == name_key(name) for name in chain):
            raise DelegationCycleError(agent=agent, chain=chain)
        if self.depth >= max_depth:
            raise DelegationLimitError(agent=agent, limit=f"delegations go {max_depth} deep at the most")
        if not self.counter.take(max_delegations):
            limit = f"{max_delegations} delegations were begun, and no more are allowed"
            raise DelegationLimitError(agent=agent, limit=limit)
        return Link((*chain, agent), self.depth + 1, self.counter)


@attrs.frozen(eq=False)
class Delegation:
    """What a run is among others: ``run.delegation``.

    Attributes:
        link: Its place in the chain.
        ceiling: What it may do at the most; None for a run that nobody has delegated.
        is_streamed: Whether the models are to stream: as in the run above.
    """

    link: Link
    ceiling: Any = None
    is_streamed: bool = False


def link_of(run: Run | None, name: str) -> Link:
    """Return the place of a run in its chain; a run that nobody has delegated begins one."""
    if run is None:
        return Link((name,))
    if run.delegation is None:
        run.delegation = Delegation(Link((run.agent.name,)))
    link: Link = run.delegation.link
    return link
