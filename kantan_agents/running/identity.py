"""``Identity``: the id of the next run, if it is not a new one."""

from __future__ import annotations

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


next_identity: ContextVar[Identity | None] = ContextVar("kantan_agents_next_identity", default=None)
"""What the next run in this context is, if it was begun before."""


def take_identity() -> Identity | None:
    """Return what the run is that begins now, if it was begun before. Later runs are new ones."""
    given = next_identity.get()
    if given is not None:
        next_identity.set(None)
    return given
