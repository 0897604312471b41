"""One HTTP client per event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary, finalize

from kantan_agents.support.log import get_logger
from kantan_agents.support.waiting import wait_for_end

T = TypeVar("T")
_log = get_logger("kantan_agents.connections")


class PerLoop(Generic[T]):
    """Holds one object per event loop and drops it when the loop is closed.

    ``make`` and ``close`` run on the object's loop. ``make`` must not refer to the owner: the cycle would
    delay the release.
    """

    def __init__(
        self, make: Callable[[], T], close: Callable[[T], Coroutine[Any, Any, None]] | None = None
    ) -> None:
        self._make = make
        self._made: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()
        if close is not None:
            # Not at interpreter exit: no loop would run the closing.
            finalize(self, _on_each_loop, self._made, close).atexit = False

    def get(self) -> T:
        """Return the running loop's object."""
        loop = asyncio.get_running_loop()
        found = self._made.get(loop)
        if found is None:
            self._drop_closed_loops()
            found = self._made[loop] = self._make()
        return found

    def pop(self) -> T | None:
        """Remove the running loop's object."""
        return self._made.pop(asyncio.get_running_loop(), None)

    def on_each_loop(self, do: Callable[[T], Coroutine[Any, Any, None]]) -> None:
        """Start ``do`` for each object on its loop."""
        _on_each_loop(self._made, do)

    def __len__(self) -> int:
        return len(self._made)

    def _drop_closed_loops(self) -> None:
        # An idle connection keeps the weak key alive. Many loops would use up the sockets.
        for reference in self._made.keyrefs():
            loop = reference()
            if loop is not None and loop.is_closed():
                self._made.pop(loop, None)


_started: set[asyncio.Task[None]] = set()
"""The loop refers to its tasks only weakly."""


def _on_each_loop(
    made: WeakKeyDictionary[asyncio.AbstractEventLoop, T], do: Callable[[T], Coroutine[Any, Any, None]]
) -> None:
    # `keyrefs` is a copy: another thread may add an object.
    for reference in made.keyrefs():
        loop = reference()
        item = made.get(loop) if loop is not None else None
        if loop is None or item is None:
            continue
        start_on(loop, partial(do, item))


def start_on(loop: asyncio.AbstractEventLoop, do: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Start ``do`` on a loop that is open, from any thread."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(_start, loop, do)


def _start(loop: asyncio.AbstractEventLoop, do: Callable[[], Coroutine[Any, Any, None]]) -> None:
    task = loop.create_task(do())
    _started.add(task)
    task.add_done_callback(_ended)


def _ended(task: asyncio.Task[None]) -> None:
    _started.discard(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.warning("connections_not_closed", error=f"{type(error).__name__}: {error}")


async def shield_closing(response: Any) -> None:
    """Close a response despite cancellations; an httpx response hook.

    The HTTP library does not shield this from asyncio: the connection would count as used forever.
    """
    response.stream.aclose = partial(_close_shielded, response.stream.aclose)


async def _close_shielded(close: Callable[[], Coroutine[Any, Any, None]]) -> None:
    await finish_closing(close())


async def finish_closing(closing: Coroutine[Any, Any, None]) -> None:
    """Await ``closing`` despite cancellations, then raise them."""
    task = asyncio.ensure_future(closing)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await wait_for_end(task)
        raise
