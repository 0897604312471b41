"""The background event loop of the sync ``run``: one per process, started on first use."""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any, TypeVar

from kantan_agents.agent.running.call import Call
from kantan_agents.agent.running.loops import LoopThread, run_in_place
from kantan_agents.errors import RunInCollectorError
from kantan_agents.tools.mcp.blocked_loops import blocking

T = TypeVar("T")

# How long the background loop has to begin a call. If something blocks it, the call gets another loop.
_PATIENCE_SECONDS = 1.0

_loop_waits: ContextVar[bool] = ContextVar("kantan_agents_loop_waits", default=False)

_phases: dict[str, Any] = {}
"""The phases of the latest garbage collection, ``start`` and ``stop``, with their data, in order."""

_in_thread = threading.local()
"""The same, by thread."""

# Functions in C: Python delivers a signal in the next function that is not. If that were a callback of the
# collector, Ctrl-C during a collection would be lost, since what a callback raises is ignored.
gc.callbacks.extend((_phases.pop, _phases.__setitem__, _in_thread.__setattr__))


class BackgroundLoop:
    """One event loop on a daemon thread, started on first use.

    It runs until the process ends, so HTTP connections are reused from one sync run to the next. A forked
    child starts its own.
    """

    def __init__(self) -> None:
        # Reentrant: a signal handler may run an agent while its own thread is starting the loop.
        self._lock = threading.RLock()
        self._is_starting = False
        self._current: LoopThread | None = None
        self._before_fork: LoopThread | None = None

    def run(self, function: Callable[[], Awaitable[T]]) -> T:
        """Await ``function()`` on the background loop and return its result.

        ``function`` sees the caller's context variables, including the current trace. What it raises reaches
        the caller, also ``SystemExit`` and ``KeyboardInterrupt``; the loop continues. ``KeyboardInterrupt``
        in the calling thread cancels it, waits for its end and is raised again.

        Raises:
            RunInCollectorError: E25, the garbage collector is running in this thread.
            InterpreterExitError: E26, the interpreter exits before ``function`` is done.
        """
        if _is_collecting():
            raise RunInCollectorError
        blocked = asyncio._get_running_loop()  # None instead of an exception in the usual case
        if blocked is None:
            return self._run(function)
        with blocking(blocked):
            return self._run(function)

    def _run(self, function: Callable[[], Awaitable[T]]) -> T:
        current = self._current
        is_waiting = current is not None and threading.current_thread() is current.thread
        if not is_waiting and not _loop_waits.get():
            call = Call(function)
            served = self._started()
            if served is None:
                run_in_place(call)
                return call.outcome()
            if served.call(call, _PATIENCE_SECONDS):
                return call.outcome(is_lost=served.is_stopping)
        # An async tool calls the sync `run`. The background loop waits for this call, so waiting for that
        # loop would never end. Runs started in here inherit the mark at any depth.
        token = _loop_waits.set(True)
        try:
            return _run_apart(function)
        finally:
            _loop_waits.reset(token)

    def _started(self) -> LoopThread | None:
        """Return the thread of the loop, started if necessary; None if this thread cannot start it now."""
        with self._lock:
            if self._is_starting:
                return None  # this is a signal handler, and the start that it interrupts cannot go on
            self._is_starting = True
            try:
                if self._current is None or self._current.is_over:
                    starting = LoopThread()
                    try:
                        starting.start()
                    except RuntimeError:
                        # The interpreter is shutting down.
                        return None
                    except BaseException:
                        starting.stop_soon()  # interrupted: the thread may have started
                        raise
                    self._current = starting
                    atexit.register(self.stop)
                return self._current
            finally:
                self._is_starting = False

    def stop(self) -> None:
        """Cancel the running calls and end the loop. The next run starts a new one."""
        with self._lock:
            current, self._current = self._current, None
        if current is not None:
            atexit.unregister(self.stop)
            current.stop()

    def forget(self) -> None:
        """Reset the state in a forked child, where the thread does not exist."""
        left = self._current or self._before_fork
        self.__init__()  # type: ignore[misc]
        # Closing the loop in here would take the parent's away, as both share what the loop waits with.
        self._before_fork = left


def _is_collecting() -> bool:
    """Return whether the current thread runs a finalizer or a callback for the garbage collector."""
    # Another thread may collect between these lines. Then its data is not that of this thread.
    return list(_phases)[-1:] == ["start"] and _phases.get("start") is getattr(_in_thread, "start", _phases)


def _run_apart(function: Callable[[], Awaitable[T]]) -> T:
    """Await ``function()`` on a loop of its own, which nothing else can block."""
    call = Call(function)
    own = LoopThread()
    try:
        own.start()
    except RuntimeError:  # no thread can be started while the interpreter is shutting down
        run_in_place(call)
        return call.outcome()
    except BaseException:
        own.stop_soon()  # interrupted: the thread may have started
        raise
    try:
        own.call(call, float(threading.TIMEOUT_MAX))
    finally:
        own.stop()
    return call.outcome()


background_loop = BackgroundLoop()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=background_loop.forget)
