"""Calls that a thread sends to an event loop."""

from __future__ import annotations

import asyncio
from _thread import allocate_lock
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Generic, TypeVar, cast

from kantan_agents.errors import InterpreterExitError

try:
    from sniffio import current_async_library_cvar
except ImportError:  # anyio then recognizes the library without it
    current_async_library_cvar = None  # type: ignore[assignment]

T = TypeVar("T")

CLEANUP_SECONDS = 5.0
_PARTS = 4


class Call(Generic[T]):
    """One call, with the context variables of the thread that creates it.

    A signal handler may interrupt the waiting thread anywhere and make another call. So both locks are plain,
    taken and released in one step; the locks of a ``Future`` or ``Event``, which the event loop needs, could
    be held then.
    """

    def __init__(self, function: Callable[[], Awaitable[T]]) -> None:
        self._function = function
        self._context = copy_context()
        if current_async_library_cvar is not None:
            # The caller may be in another library.
            self._context.run(current_async_library_cvar.set, "asyncio")
        self._claim = allocate_lock()
        self._end = allocate_lock()
        self._end.acquire()
        self._task: asyncio.Task[None] | None = None
        self._is_over = False
        self._result: T | None = None
        self._error: BaseException | None = None

    def begin(self) -> None:
        """Start the call in the running loop, unless it has started or was withdrawn."""
        if self._claim.acquire(blocking=False):
            self._task = asyncio.get_running_loop().create_task(self._run())
            self._task.add_done_callback(self._over)

    def send(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the call in another thread's loop; RuntimeError if closed."""
        loop.call_soon_threadsafe(self.begin, context=self._context)

    def in_context(self, function: Callable[[], None]) -> None:
        """Call a function with the call's context variables."""
        self._context.run(function)

    def lose_if_begun(self) -> None:
        """End an active call whose event loop has ended."""
        if self._task is not None and not self._is_over:
            self._error = InterpreterExitError()
            self._is_over = True
            self._end.release()

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The call's task, once started."""
        return self._task

    async def _run(self) -> None:
        try:
            self._result = await self._function()
        except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
            self._error = error

    def _over(self, task: asyncio.Task[None]) -> None:
        if task.cancelled():  # before its first step
            self._error = asyncio.CancelledError()
        self._is_over = True
        self._end.release()

    def wait(self, patience: float) -> bool:
        """Return whether the call is over.

        False: the loop did not start it within ``patience`` seconds, and never will.
        """
        # In parts: if the machine suspends the process, only one part is lost.
        if not any(self._end.acquire(timeout=patience / _PARTS) for _ in range(_PARTS)):
            if self._claim.acquire(blocking=False):
                return False
            self._end.acquire()
        return True

    def cancel(self, loop: asyncio.AbstractEventLoop) -> None:
        """Withdraw the call, or cancel it and wait for its cleanup."""
        if self._is_over or self._claim.acquire(blocking=False):
            return
        try:
            loop.call_soon_threadsafe(self._cancel_task)
        except RuntimeError:
            return  # the loop is closed, so the call has ended
        self._end.acquire(timeout=CLEANUP_SECONDS)

    def _cancel_task(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def outcome(self, *, is_lost: bool = False) -> T:
        """Return the result or raise the error; ``is_lost``: its loop was stopped."""
        error, self._error = self._error, None
        if error is None:
            return cast("T", self._result)
        try:
            if is_lost and isinstance(error, asyncio.CancelledError):
                raise InterpreterExitError from error
            raise error
        finally:
            del error  # the traceback's reference to this frame would keep the error alive
