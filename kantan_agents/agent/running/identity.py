"""The id of the next run, if it is not a new one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import attrs


@attrs.frozen
class Identity:
    """The identity of a run that resumes in another process, or runs again.

    ``elapsed`` is in seconds; ``is_nested``: it started inside another run or span.
    """

    run_id: str | None = None
    elapsed: float = 0.0
    is_nested: bool = False


@attrs.define
class InnerIdentities:
    """The identities of consecutive runs in a call; ``id_of`` takes numbers from 1."""

    id_of: Callable[[int], str]
    begun: int = 0

    def take(self) -> Identity:
        """Return the next identity."""
        self.begun += 1
        return Identity(self.id_of(self.begun))


next_identity: ContextVar[Identity | InnerIdentities | None] = ContextVar(
    "kantan_agents_next_identity", default=None
)

_NEW = Identity()


def take_identity() -> Identity:
    """Return the identity of a run that starts."""
    given = next_identity.get()
    if given is None:
        return _NEW
    if isinstance(given, InnerIdentities):
        return given.take()
    next_identity.set(None)  # later runs are new ones
    return given


@contextmanager
def begun_inside() -> Iterator[None]:
    """Let the next run count as nested: its input is not a command."""
    token = next_identity.set(Identity(is_nested=True))
    try:
        yield
    finally:
        next_identity.reset(token)
