"""One piece of work for all who ask for it before it begins."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import Generic, TypeVar

T = TypeVar("T")


class SharedWork(Generic[T]):
    """Does its work in a thread; who asks while it waits for its turn shares it, who asks later does not.

    So nobody gets what was found out before they asked, and however many ask, and give up again, there is
    never more than one thread at work and one that waits.

    Args:
        work: What is to be done.
        turn: Held while the work is done; works with the same lock take turns.
        afterwards: Called with what the work gave, in its thread, when the lock is free again.
    """

    def __init__(
        self, work: Callable[[], T], turn: threading.Lock, afterwards: Callable[[T], object]
    ) -> None:
        self._work = work
        self._turn = turn
        self._afterwards = afterwards
        self._waiting: Future[T] | None = None
        # Held for a moment only, never while the work is done.
        self._guard = threading.Lock()

    async def soon(self) -> T:
        """Return what work gives that has not begun yet, where there is an event loop."""
        return await asyncio.wrap_future(self._asked())

    def now(self) -> T:
        """Return what work gives that has not begun yet, where there is no event loop."""
        return self._asked().result()

    def _asked(self) -> Future[T]:
        with self._guard:
            if self._waiting is None:
                outcome: Future[T] = Future()
                # One of those who wait may give up; that must not cancel it for the others.
                outcome.set_running_or_notify_cancel()
                # A thread of its own and no pool's: those do not live on in a process that is forked.
                threading.Thread(target=copy_context().run, args=(self._do, outcome), daemon=True).start()
                self._waiting = outcome
            return self._waiting

    def _do(self, outcome: Future[T]) -> None:
        try:
            with self._turn:
                with self._guard:
                    self._waiting = None
                found = self._work()
            self._afterwards(found)
        except BaseException as error:  # noqa: BLE001 - it is raised where the outcome is waited for
            outcome.set_exception(error)
        else:
            outcome.set_result(found)
