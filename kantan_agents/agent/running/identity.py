"""``Identity``: the id of the next run, if it is not a new one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import attrs


@attrs.frozen
class Identity:
    """What a run keeps that goes on in another process, or is made again.

    Attributes:
        run_id: Its id, 32 hexadecimal digits; None for a new one.
        elapsed: Seconds since it was begun.
        is_nested: Whether it was begun inside another run or span.
    """

    run_id: str | None = None
    elapsed: float = 0.0
    is_nested: bool = False


@attrs.define
class InnerIdentities:
    """What the runs are that begin inside a call, one after the other.

    Attributes:
        id_of: Returns the id of the run of a number, from 1.
        begun: How many have begun.
    """

    id_of: Callable[[int], str]
    begun: int = 0

    def take(self) -> Identity:
        """Return what the next one is."""
        self.begun += 1
        return Identity(self.id_of(self.begun))


next_identity: ContextVar[Identity | InnerIdentities | None] = ContextVar(
    "kantan_agents_next_identity", default=None
)
"""What the next runs in this context are, if they were begun before."""


_NEW = Identity()


def take_identity() -> Identity:
    """Return what the run is that begins now."""
    given = next_identity.get()
    if given is None:
        return _NEW
    if isinstance(given, InnerIdentities):
        return given.take()
    next_identity.set(None)  # later runs are new ones
    return given


@contextmanager
def begun_inside() -> Iterator[None]:
    """Let the next run count as begun inside another run or span: its input is not a command."""
    token = next_identity.set(Identity(is_nested=True))
    try:
        yield
    finally:
        next_identity.reset(token)
