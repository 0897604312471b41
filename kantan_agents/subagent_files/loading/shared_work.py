"""Runs work in a thread for all callers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedWork(Generic[T]):
    """Runs a function in a thread and shares the result.

    A caller never gets the result of an execution that started before its request. However many callers
    request and cancel, at most one thread works and one waits. Instances with the same ``lock`` never work at
    the same time; ``on_done`` runs after its release.
    """

    def __init__(self, work: Callable[[], T], lock: threading.Lock, on_done: Callable[[T], object]) -> None:
        self._work = work
        self._lock = lock
        self._on_done = on_done
        self._pending: Future[T] | None = None
        # Protects `_pending`; never held during the work.
        self._pending_lock = threading.Lock()

    async def run_async(self) -> T:
        """Return the result of work that starts after this call."""
        import asyncio  # commands load agent files without an event loop

        return await asyncio.wrap_future(self._request())

    def run(self) -> T:
        """Return the result of work that starts after this call; blocks."""
        return self._request().result()

    def _request(self) -> Future[T]:
        with self._pending_lock:
            if self._pending is None:
                outcome: Future[T] = Future()
                # Marked as running, so that one caller cannot cancel it for the others.
                outcome.set_running_or_notify_cancel()
                # A new thread: the threads of a pool do not survive a fork.
                threading.Thread(target=copy_context().run, args=(self._run, outcome), daemon=True).start()
                self._pending = outcome
            return self._pending

    def _run(self, outcome: Future[T]) -> None:
        try:
            with self._lock:
                with self._pending_lock:
                    self._pending = None
                result = self._work()
            self._on_done(result)
        except BaseException as error:  # noqa: BLE001 - raised again in the callers that wait
            outcome.set_exception(error)
        else:
            outcome.set_result(result)
