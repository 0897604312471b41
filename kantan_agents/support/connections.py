"""Keeps one HTTP client for each event loop, and closes responses completely even when cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from kantan_agents.support.waiting import wait_for_end

T = TypeVar("T")


class PerLoop(Generic[T]):
    """Holds one object per event loop and drops it when the loop is closed.

    Args:
        make: Creates the object. Called on the loop it is for, at the first ``get``.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()

    def get(self) -> T:
        """Return the object of the running loop; create it if needed."""
        loop = asyncio.get_running_loop()
        found = self._made.get(loop)
        if found is None:
            self._drop_closed_loops()
            found = self._made[loop] = self._make()
        return found

    def pop(self) -> T | None:
        """Remove and return the object of the running loop; None if it has no object."""
        return self._made.pop(asyncio.get_running_loop(), None)

    def __len__(self) -> int:
        return len(self._made)

    def _drop_closed_loops(self) -> None:
        # An idle connection refers to its loop and keeps the weak key alive. Without this step, a program
        # that starts many loops in a row would run out of sockets.
        for reference in self._made.keyrefs():
            loop = reference()
            if loop is not None and loop.is_closed():
                self._made.pop(loop, None)


async def shield_closing(response: Any) -> None:
    """Finish closing a response even if the task is cancelled meanwhile; an httpx response hook.

    The HTTP library shields the close from anyio's cancellation but not from asyncio's. If a client
    disconnects just as the model's stream ends, the connection would stay in the pool as in use forever.
    """
    response.stream.aclose = partial(_close_shielded, response.stream.aclose)


async def _close_shielded(close: Callable[[], Awaitable[None]]) -> None:
    task = asyncio.ensure_future(close())
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await wait_for_end(task)
        raise
