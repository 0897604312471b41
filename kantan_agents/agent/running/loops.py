"""Event loops for sync runs: one on a thread of its own, or one in the calling thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from kantan_agents.agent.running.call import CLEANUP_SECONDS, Call
from kantan_agents.support.log import get_logger

T = TypeVar("T")

_log = get_logger("kantan_agents.run")


class LoopThread:
    """An event loop on a daemon thread.

    Calls may be sent to it from the moment it is created. It survives what a call raises: asyncio ends a loop
    when a task raises ``SystemExit`` or ``KeyboardInterrupt``, and this one continues.

    Attributes:
        thread: Its thread.
        is_stopping: Whether it was asked to end.
        is_over: Whether it has ended, or is about to.
    """

    def __init__(self) -> None:
        self._loop = _new_loop()
        self._stopping = asyncio.Event()
        self._calls: set[Call[Any]] = set()
        self.is_stopping = False
        self.is_over = False
        self.thread = threading.Thread(target=self._serve, name="kantan_agents", daemon=True)

    def start(self) -> None:
        """Start the thread.

        Raises:
            RuntimeError: No thread can be started.
        """
        try:
            self.thread.start()
        except RuntimeError:
            self.is_over = True
            self._loop.close()
            raise

    def call(self, call: Call[T], patience: float) -> bool:
        """Make a call and wait for it; return whether it is over, False if the loop did not begin it.

        An interrupt of this thread cancels the call.

        Args:
            call: The call.
            patience: How many seconds the loop has to begin it.
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
            # Often while the call is being sent: the loop has begun it then, and this thread waits its turn.
            call.cancel(self._loop)
            raise
        finally:
            self._calls.discard(call)

    def stop(self) -> None:
        """Cancel the calls and end the loop."""
        if self.stop_soon():
            self.thread.join(CLEANUP_SECONDS)

    def stop_soon(self) -> bool:
        """End the loop without waiting; return False if it has ended."""
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


def run_in_place(call: Call[T]) -> None:
    """Make a call in this thread, with an event loop of its own.

    Where no thread can be started or waited for. This thread may be running another event loop, which
    makes no progress meanwhile.
    """
    loop, interrupted = _new_loop(), asyncio._get_running_loop()
    # Not in the documentation, but exported for event loops: without it, asyncio refuses to run a second one.
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

    While the interpreter exits, the standard library starts no more of them. Then the work is done at once.
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
    """Run a loop until ``work`` is done, whatever its other tasks raise."""
    # A task that runs until the end: anyio keeps its worker threads as long as such a task.
    task = loop.create_task(work)
    while not task.done():
        try:
            loop.run_until_complete(task)
        except BaseException as error:  # noqa: BLE001, PERF203 - the code that awaits the task gets it
            _log.debug("event loop continues", error_type=type(error).__name__)


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what is left in a loop, give it time to clean up, and close the loop."""
    try:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        if tasks:
            _complete(loop, asyncio.wait(tasks, timeout=CLEANUP_SECONDS))
        _complete(loop, loop.shutdown_asyncgens())
    finally:
        loop.close()  # its threads end when they are idle
