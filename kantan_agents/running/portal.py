"""The background event loop of the sync ``run``: one per process, started on first use."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Generic, TypeVar, cast

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

T = TypeVar("T")

# How long an interrupted caller waits for its run to clean up before the interrupt is raised again.
_CLEANUP_SECONDS = 5.0

_loop_waits: ContextVar[bool] = ContextVar("kantan_agents_loop_waits", default=False)


class BackgroundLoop:
    """One event loop on a daemon thread, started on first use.

    It runs until the process ends, so HTTP connections are reused from one sync run to the next. A forked
    child starts its own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._portal: BlockingPortal | None = None
        self._thread: threading.Thread | None = None

    def run(self, function: Callable[[], Awaitable[T]]) -> T:
        """Await ``function()`` on the background loop and return its result.

        ``function`` sees the caller's context variables, including the current trace. ``KeyboardInterrupt``
        cancels it, waits for its end and is raised again.
        """
        if _loop_waits.get() or threading.current_thread() is self._thread:
            # An async tool calls the sync `run`. The background loop waits for this call, so waiting for that
            # loop would never end. Runs started in here inherit the mark at any depth.
            token = _loop_waits.set(True)
            try:
                with start_blocking_portal() as portal:
                    return _Call(function).through(portal)
            finally:
                _loop_waits.reset(token)
        started = self._started()
        if started is None:
            return anyio.run(function)
        return _Call(function).through(started)

    def _started(self) -> BlockingPortal | None:
        """Return the portal, started if necessary; None if threads can no longer be started."""
        with self._lock:
            if self._portal is None or self._thread is None or not self._thread.is_alive():
                ready: Future[BlockingPortal] = Future()
                thread = threading.Thread(target=_serve, args=(ready,), name="kantan_agents", daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    # The interpreter is shutting down.
                    return None
                self._portal, self._thread = ready.result(), thread
                atexit.register(self.stop)
            return self._portal

    def stop(self) -> None:
        """Cancel the running calls and end the loop. The next run starts a new one."""
        with self._lock:
            portal, thread = self._portal, self._thread
            self._portal = self._thread = None
        if portal is None or thread is None:
            return
        atexit.unregister(self.stop)
        portal.start_task_soon(portal.stop, True)
        thread.join(_CLEANUP_SECONDS)

    def forget(self) -> None:
        """Reset the state in a forked child, where the thread does not exist."""
        self.__init__()  # type: ignore[misc]


def _serve(ready: Future[BlockingPortal]) -> None:
    is_stopped = False

    async def serve() -> None:
        nonlocal is_stopped
        async with BlockingPortal() as portal:
            ready.set_result(portal)
            await portal.sleep_until_stopped()
        is_stopped = True

    try:
        anyio.run(serve)
    except RuntimeError:
        # After a name resolution, the loop starts a thread to shut down its executor. From Python 3.12 on, no
        # thread can be started while the interpreter exits. The rest of the loop is closed by then.
        if not is_stopped:
            raise


class _Call(Generic[T]):
    """One call of an async function through a portal."""

    def __init__(self, function: Callable[[], Awaitable[T]]) -> None:
        self._function = function
        self._ended = threading.Event()
        self._error: BaseException | None = None

    async def _run(self) -> T | None:
        try:
            return await self._function()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
            # A BaseException such as SystemExit in a tool would end the portal for all callers.
            self._error = error
            return None
        finally:
            self._ended.set()

    def through(self, portal: BlockingPortal) -> T:
        """Run the function in ``portal`` and wait for its result; an interrupt cancels it first."""
        future = portal.start_task_soon(self._run)
        try:
            result = future.result()
        except BaseException:
            future.cancel()
            self._ended.wait(_CLEANUP_SECONDS)
            raise
        if self._error is not None:
            raise self._error
        return cast("T", result)


background_loop = BackgroundLoop()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=background_loop.forget)
