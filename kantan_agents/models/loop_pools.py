"""``PoolPerLoop``: separates event loops in a connection pool."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncGenerator, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any
from weakref import ref

from kantan_agents.models.connections import PerLoop, start_on


class PoolPerLoop:
    """Mixin for a pool: an event loop's requests use only connections of that loop.

    The HTTP library would use another loop's idle connection and fail to read the answer. OpenAI's client
    repeats the request, and the user pays twice.

    The pool serves its first loop, and copies with its settings the others.
    """

    _connections: list[Any]
    _requests: list[Any]
    _others: PerLoop[Any] | None = None  # None in a copy

    def split_by_loop(self) -> None:
        """Start to separate the loops."""
        # Weak: the factory must not keep the pool alive.
        self._others = PerLoop(partial(_copy_for_loop, _empty_copy(self), ref(self)), _close)
        if self._connections:
            # Opened on an unknown loop. Its requests end as usual.
            self.__dict__["_home"] = _unknown

    def handle_async_request(self, request: Any) -> Coroutine[Any, Any, Any]:
        """Send a request on the running loop's connections."""
        loop = asyncio._get_running_loop()  # None under trio
        home = self.__dict__.get("_home")
        if loop is None or (home is not None and home() is loop):
            return self._send(request)
        pool: PoolPerLoop = self._pool_for(loop)
        return pool._send(request)

    async def aclose(self) -> None:
        """Close each loop's connections on it."""
        loop = asyncio._get_running_loop()
        home = self.__dict__.get("_home", _unknown)()
        if self._others is not None and loop is not None:
            copied = self._others.pop()
            self._others.on_each_loop(_close)
            if copied is not None:
                await copied.aclose()
        if home is None or home is loop:
            await super().aclose()  # type: ignore[misc]
        elif home.is_closed():
            self.forget_connections()
        else:
            start_on(home, super().aclose)  # type: ignore[misc]

    @property
    def is_over(self) -> bool:
        """Whether the pool's own loop is closed."""
        home = self.__dict__.get("_home", _unknown)()
        return home is not None and home.is_closed()

    async def close_idle(self) -> None:
        """Close the own idle connections."""

    def forget_connections(self) -> None:
        """Drop a closed loop's connections and requests."""
        self._connections = []
        self._requests = []

    def on_copy(self, copied: Any) -> None:
        """Called with each new copy."""

    def _send(self, request: Any) -> Coroutine[Any, Any, Any]:
        sending: Coroutine[Any, Any, Any] = super().handle_async_request(request)  # type: ignore[misc]
        return sending

    def _pool_for(self, loop: asyncio.AbstractEventLoop) -> Any:
        # Atomic between threads. No lock: a signal handler may interrupt its holder and run an agent.
        home = self.__dict__.setdefault("_home", ref(loop))()
        if home is loop:
            self._closing = close_at_loop_end(self, loop)
            return self
        if home is not None and home.is_closed() and self._connections:
            self.forget_connections()
        return self._others.get() if self._others is not None else self


def _unknown() -> None:
    return None


def _empty_copy(pool: Any) -> Any:
    copied = copy.copy(pool)
    for name in ("_home", "_others", "_closing"):
        copied.__dict__.pop(name, None)
    copied._connections = []
    copied._requests = []
    return copied


def _copy_for_loop(template: Any, original: ref[Any]) -> Any:
    copied = _empty_copy(template)
    loop = asyncio.get_running_loop()
    copied._home = ref(loop)
    copied._closing = close_at_loop_end(copied, loop)
    pool = original()
    if pool is not None:
        pool.on_copy(copied)
    return copied


def close_at_loop_end(pool: Any, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None, None] | None:
    """Close a pool's idle connections when its loop ends; hold the result meanwhile.

    ``asyncio.run`` closes its async generators. Otherwise the garbage collector closes the connections, with
    a warning.
    """
    # Private. A generator started after the end causes a warning.
    if getattr(loop, "_asyncgens_shutdown_called", False):
        return None
    generator = _closing_at_end(ref(pool))
    with suppress(StopIteration):  # it is suspended at its yield
        generator.asend(None).send(None)
    return generator


async def _closing_at_end(pool: ref[Any]) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        if (ending := pool()) is not None:
            await ending.close_idle()


async def _close(pool: Any) -> None:
    await pool.aclose()
