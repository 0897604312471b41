"""The task that owns a connection made by the library."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from kantan_agents.support.log import get_logger
from kantan_agents.tools.mcp.loops import is_gone
from kantan_agents.tools.mcp.twins import twin_of

T = TypeVar("T")

_CLEANUP_SECONDS = 10.0
_STARTING_SECONDS = 1.0
_log = get_logger("kantan_agents.mcp")


def start_task(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Return a task with a separate context: it outlives its run."""
    return contextvars.Context().run(asyncio.create_task, work)


class ConnectionKeeper:
    """Connects a server object, or its ``twin``, in a task that also closes it."""

    def __init__(self, server: Any) -> None:
        self.twin: Any = None
        self.loop = asyncio.get_running_loop()
        self._ready = asyncio.Event()
        self._closing = asyncio.Event()
        self._error: BaseException | None = None
        self._is_connecting = True
        self._server = server
        self._task = start_task(self._keep(twin_of(server)))

    @property
    def is_over(self) -> bool:
        """Whether the task has ended."""
        return self._task.done()

    async def connected(self, seconds: float) -> Any:
        """Call once, in the task's event loop; TimeoutError after ``seconds``."""
        waiting = asyncio.ensure_future(self._ready.wait())
        try:
            await asyncio.wait({waiting, self._task}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            # Cancellation does not close a starting process: it connects first.
            self._closing.set()
            raise
        finally:
            waiting.cancel()
        if self.twin is not None:
            return self.twin
        if self._error is not None:
            raise self._error
        if self._task.done():
            raise ConnectionError("the connection ended while it was made")
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=_CLEANUP_SECONDS)
        note = getattr(self._server, "kantan_note", "")
        raise TimeoutError(f"it did not accept the connection within {seconds:.3g} seconds{note}")

    async def close(self) -> None:
        """Close the connection and wait for the task's end, from any event loop."""
        if self._task.done():
            return
        if self.loop is asyncio.get_running_loop():
            self._closing.set()
            if self._is_connecting:
                # It connects, and then closes. One that never does must not block the caller.
                await asyncio.wait({self._task}, timeout=_STARTING_SECONDS)
                if self._is_connecting:
                    self._task.cancel()
            await asyncio.wait({self._task}, timeout=_CLEANUP_SECONDS)
        elif self.loop.is_running() and not is_gone(self.loop):
            elsewhere = asyncio.run_coroutine_threadsafe(self.close(), self.loop)
            await asyncio.wait({asyncio.wrap_future(elsewhere)}, timeout=_CLEANUP_SECONDS)

    def close_soon(self) -> None:
        """Close the connection without waiting, from any thread."""
        with suppress(RuntimeError):  # the event loop is closed, and the connection with it
            self.loop.call_soon_threadsafe(self._closing.set)

    async def _keep(self, twin: Any) -> None:
        try:
            await twin.connect()
        except Exception as error:  # noqa: BLE001 - raised where the connection is awaited
            self._error = error
            return
        finally:
            self._is_connecting = False
        self.twin = twin
        self._ready.set()
        try:
            await self._closing.wait()
        finally:
            self.twin = None
            try:
                await twin.cleanup()
            except Exception as error:  # noqa: BLE001 - no one waits for it, and the connection is over
                _log.debug("mcp_server_cleanup_failed", error=repr(error))
