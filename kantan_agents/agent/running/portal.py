"""Event loops of the sync ``run``."""

from __future__ import annotations

import asyncio
import atexit
import gc
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any, TypeVar

from kantan_agents.agent.running.call import CLEANUP_SECONDS, Call
from kantan_agents.errors import InterpreterExitError, RunInCollectorError
from kantan_agents.support.log import get_logger
from kantan_agents.tools.mcp.loops import blocking

T = TypeVar("T")

_log = get_logger("kantan_agents.run")

# If something blocks the background loop longer, a call gets another loop.
_PATIENCE_SECONDS = 1.0

_loop_waits: ContextVar[bool] = ContextVar("kantan_agents_loop_waits", default=False)

_phases: dict[str, Any] = {}
"""The latest garbage collection's ``start`` and ``stop``, with their data, in order."""

_in_thread = threading.local()

# In C, as Python delivers signals in Python functions: in a callback, whose exceptions are ignored, Ctrl-C
# during a collection would be lost.
gc.callbacks.extend((_phases.pop, _phases.__setitem__, _in_thread.__setattr__))


def _check_exit(
    is_finalizing: Callable[[], bool] = sys.is_finalizing,
    error: InterpreterExitError = InterpreterExitError(),  # noqa: B008
) -> None:
    """Raise E26 if the interpreter is removing modules.

    A new thread would never start on Python 3.11 and older, and fail on newer ones. Modules may have lost
    their names, so this uses none.
    """
    if is_finalizing():
        raise error


class BackgroundLoop:
    """One event loop on a daemon thread, started on first use.

    It lives as long as the process, so sync runs reuse HTTP connections. A forked child starts its own.
    """

    check_exit = staticmethod(_check_exit)

    def __init__(self) -> None:
        # Reentrant: a signal handler may run an agent during the start.
        self._lock = threading.RLock()
        self._is_starting = False
        self._current: _LoopThread | None = None
        self._before_fork: _LoopThread | None = None

    def run(self, function: Callable[[], Awaitable[T]]) -> T:
        """Await ``function()`` on the background loop and return its result; raises E25 or E26.

        All its exceptions reach the caller, even ``SystemExit``. ``KeyboardInterrupt`` in the calling thread
        cancels it, waits for its end and is raised again.
        """
        self.check_exit()
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
                _run_in_place(call)
                return call.outcome()
            if served.call(call, _PATIENCE_SECONDS):
                return call.outcome(is_lost=served.is_stopping)
        # If an async tool calls the sync `run`, the background loop waits for this call, so it cannot be
        # used. Nested runs inherit the flag at any depth.
        token = _loop_waits.set(True)
        try:
            return _run_apart(function)
        finally:
            _loop_waits.reset(token)

    def _started(self) -> _LoopThread | None:
        with self._lock:
            if self._is_starting:
                return None  # a signal handler, and the start that it interrupts cannot continue
            self._is_starting = True
            try:
                if self._current is None or self._current.is_over:
                    starting = _LoopThread()
                    try:
                        starting.start()
                    except RuntimeError:
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
        """Cancel the calls and end the loop. The next run starts a new one."""
        with self._lock:
            current, self._current = self._current, None
        if current is not None:
            atexit.unregister(self.stop)
            current.stop()

    def forget(self) -> None:
        """Reset a forked child, which lacks the thread."""
        left = self._current or self._before_fork
        self.__init__()  # type: ignore[misc]
        # Closing the loop in here would break the parent's, as both share its selector.
        self._before_fork = left


def _is_collecting() -> bool:
    """Return whether this thread runs a finalizer or callback of the garbage collector."""
    # Another thread may collect between these lines, with other data.
    return list(_phases)[-1:] == ["start"] and _phases.get("start") is getattr(_in_thread, "start", _phases)


def _run_apart(function: Callable[[], Awaitable[T]]) -> T:
    """Await ``function()`` on a separate loop, which nothing else can block."""
    call = Call(function)
    own = _LoopThread()
    try:
        own.start()
    except RuntimeError:  # no thread can be started while the interpreter is shutting down
        _run_in_place(call)
        return call.outcome()
    except BaseException:
        own.stop_soon()  # interrupted: the thread may have started
        raise
    try:
        own.call(call, float(threading.TIMEOUT_MAX))
    finally:
        own.stop()
    return call.outcome()


class _LoopThread:
    """An event loop on a daemon thread.

    It survives its calls' errors: asyncio ends a loop at ``SystemExit`` or ``KeyboardInterrupt``, and this
    one continues.
    """

    def __init__(self) -> None:
        self._loop = _new_loop()
        self._stopping = asyncio.Event()
        self._calls: set[Call[Any]] = set()
        self.is_stopping = False
        self.is_over = False
        self.thread = threading.Thread(target=self._serve, name="kantan_agents", daemon=True)

    def start(self) -> None:
        try:
            self.thread.start()
        except RuntimeError:
            self.is_over = True
            self._loop.close()
            raise

    def call(self, call: Call[T], patience: float) -> bool:
        """Send a call and wait; return False if it did not start in time.

        An interrupt of this thread cancels the call.
        """
        self._calls.add(call)
        try:
            call.send(self._loop)
            return call.wait(patience)
        except RuntimeError:
            if not self.is_over:
                raise
            return False
        except BaseException:
            # Often while sending: the loop has started the call then, and this thread waits its turn.
            call.cancel(self._loop)
            raise
        finally:
            self._calls.discard(call)

    def stop(self) -> None:
        if self.stop_soon():
            self.thread.join(CLEANUP_SECONDS)

    def stop_soon(self) -> bool:
        self.is_stopping = True
        try:
            self._loop.call_soon_threadsafe(self._stopping.set)
        except RuntimeError:
            return False
        return True

    def _serve(self) -> None:
        try:
            _complete(self._loop, self._stopping.wait())
        finally:
            self.is_over = True
            _close(self._loop)
            for call in tuple(self._calls):
                call.lose_if_begun()


def _run_in_place(call: Call[T]) -> None:
    """Run a call in this thread, on a separate event loop, if no other thread can.

    A loop that this thread is running makes no progress meanwhile.
    """
    loop, interrupted = _new_loop(), asyncio._get_running_loop()
    # Undocumented, but exported for event loops: without it, asyncio rejects a second one.
    asyncio._set_running_loop(None)
    try:
        # An interrupt of this thread, or an exit that a task raises, ends this; `_close` cancels the call.
        loop.run_until_complete(_make(call))
    finally:
        try:
            _close(loop)
        finally:
            asyncio._set_running_loop(interrupted)


async def _make(call: Call[Any]) -> None:
    call.in_context(call.begin)
    if call.task is not None:
        await asyncio.wait([call.task])


class _Executor(ThreadPoolExecutor):
    """The threads of a loop, for sync tools and host names.

    While the interpreter exits, none can start, and the work is done immediately.
    """

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        try:
            return super().submit(fn, *args, **kwargs)
        except RuntimeError:
            if threading.main_thread().is_alive():
                raise
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
            future.set_exception(error)
        return future


def _new_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.set_default_executor(_Executor(thread_name_prefix="kantan_agents"))
    return loop


def _complete(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any]) -> None:
    # A task that runs until the end, as anyio's worker threads last as long as one.
    task = loop.create_task(work)
    while not task.done():
        try:
            loop.run_until_complete(task)
        except BaseException as error:  # noqa: BLE001, PERF203 - the code that awaits the task gets it
            _log.debug("event loop continues", error_type=type(error).__name__)


def _close(loop: asyncio.AbstractEventLoop) -> None:
    try:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            _complete(loop, asyncio.wait(tasks, timeout=CLEANUP_SECONDS))
        _complete(loop, loop.shutdown_asyncgens())
    finally:
        loop.close()  # its threads end when they are idle


background_loop = BackgroundLoop()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=background_loop.forget)
