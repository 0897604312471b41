"""HTTP connections belong to an event loop, and are closed to the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from kantan_agents.support.waiting import wait_for_end

T = TypeVar("T")


class PerLoop(Generic[T]):
    """One thing for each event loop, gone when the loop is closed.

    Args:
        make: Makes it; called on the loop that asks first.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()

    def get(self) -> T:
        """Return that of the running loop."""
        loop = asyncio.get_running_loop()
        found = self._made.get(loop)
        if found is None:
            self._drop_closed_loops()
            found = self._made[loop] = self._make()
        return found

    def pop(self) -> T | None:
        """Return that of the running loop, and forget it; None if there is none."""
        return self._made.pop(asyncio.get_running_loop(), None)

    def __len__(self) -> int:
        return len(self._made)

    def _drop_closed_loops(self) -> None:
        # An idle connection refers to its loop, so no weak reference alone lets go of either: a program
        # that begins many loops one after another would run out of sockets.
        for reference in self._made.keyrefs():
            loop = reference()
            if loop is not None and loop.is_closed():
                self._made.pop(loop, None)


async def shield_closing(response: Any) -> None:
    """Have a response closed to the end, also by whoever is cancelled meanwhile; a response hook of httpx.

    The HTTP library shields that from anyio's cancellation but not from asyncio's: a connection would stay
    in the pool as in use, for ever, whenever a client leaves in the moment in which the model's stream ends.
    """
    response.stream.aclose = partial(_to_the_end, response.stream.aclose)


async def _to_the_end(close: Callable[[], Awaitable[None]]) -> None:
    task = asyncio.ensure_future(close())
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await wait_for_end(task)
        raise
