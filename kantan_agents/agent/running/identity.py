"""``Identity``: the id of the next run, if it is not a new one."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

import attrs


@attrs.frozen
class Identity:
    """What a run keeps that goes on in another process.

    Attributes:
        run_id: Its id, 32 hexadecimal digits.
        elapsed: Seconds since it was begun.
    """

    run_id: str
    elapsed: float = 0.0


@attrs.define
class InnerIdentities:
    """What the runs are that begin inside a call, one after the other.

    Attributes:
        id_of: Returns the id of the run of a number, from 1.
    """

    id_of: Callable[[int], str]
    _begun: int = 0

    def take(self) -> Identity:
        """Return what the next one is."""
        self._begun += 1
        return Identity(self.id_of(self._begun))


next_identity: ContextVar[Identity | InnerIdentities | None] = ContextVar(
    "kantan_agents_next_identity", default=None
)
"""What the next runs in this context are, if they were begun before."""


def take_identity() -> Identity | None:
    """Return what the run is that begins now, if it was begun before."""
    given = next_identity.get()
    if given is None:
        return None
    if isinstance(given, InnerIdentities):
        return given.take()
    next_identity.set(None)  # later runs are new ones
    return given
