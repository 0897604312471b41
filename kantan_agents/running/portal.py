"""The background event loop behind the sync ``run``; one for the process, made when first needed."""

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

# How long an interrupted caller waits for its run to clean up before the interrupt is passed on.
_CLEANUP_SECONDS = 5.0

_loop_waits: ContextVar[bool] = ContextVar("kantan_agents_loop_waits", default=False)


class BackgroundLoop:
    """One event loop on a daemon thread, started on first use.

    It lives as long as the process, so HTTP connections are reused from one sync run to the next. A
    forked child makes its own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._portal: BlockingPortal | None = None
        self._thread: threading.Thread | None = None

    def run(self, function: Callable[[], Awaitable[T]]) -> T:
        """Await ``function()`` on the background loop and return its result.

        Context variables of the caller, the current trace among them, are seen by ``function``.
        ``KeyboardInterrupt`` cancels what runs, waits for it to end and is raised again.
        """
        if _loop_waits.get() or threading.current_thread() is self._thread:
            # An async tool that calls the sync `run`: waiting for a loop that waits for this call would
            # never end. What it starts inherits the mark, however deep it goes.
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
        """Return the portal, started if need be; None when threads can no longer be started."""
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
        """Cancel what still runs and end the loop; the next run starts a new one."""
        with self._lock:
            portal, thread = self._portal, self._thread
            self._portal = self._thread = None
        if portal is None or thread is None:
            return
        atexit.unregister(self.stop)
        portal.start_task_soon(portal.stop, True)
        thread.join(_CLEANUP_SECONDS)

    def forget(self) -> None:
        """Start anew in a forked child: the thread exists in the parent only."""
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
        # A loop that has resolved names starts a thread to end its executor, and from Python 3.12 on there
        # are no new ones once the interpreter ends; by then everything else of it is closed.
        if not is_stopped:
            raise


class _Call(Generic[T]):
    """One awaited function on its way through a portal, and how it ended."""

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
            # What is no Exception (SystemExit in a tool) would end the portal for everybody.
            self._error = error
            return None
        finally:
            self._ended.set()

    def through(self, portal: BlockingPortal) -> T:
        """Run in ``portal`` and wait for the result; an interrupt cancels the run first."""
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
