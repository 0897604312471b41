"""Polls the database for all waits of a process."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread
from typing import Any, Final, Literal

import attrs

from kantan_agents.durable import patience

Question = Literal["has ended", "has events", "goes on"]

Ask = Callable[[Mapping[str, int]], Mapping[str, int]]

_INTERVAL: Final = 0.1
_REST: Final = 20.0
"""Pause per look, so that waiting takes at most a twentieth of a core."""


@attrs.frozen(eq=False)
class _Waiter:
    run_id: str
    questions: tuple[Question, ...]
    after: int
    answer: asyncio.Future[Question]

    def resolve(self, answer: Question | Exception) -> None:
        def resolve() -> None:
            if self.answer.done():
                return
            if isinstance(answer, Exception):
                self.answer.set_exception(answer)
            else:
                self.answer.set_result(answer)

        with suppress(RuntimeError):  # its loop is closed
            self.answer.get_loop().call_soon_threadsafe(resolve)


class Poller:
    """Looks in intervals while a caller waits, with one query for each question."""

    def __init__(self, asks: Mapping[Question, Ask]) -> None:
        self._asks = asks
        self._waiters: set[_Waiter] = set()
        self._lock = Lock()
        self._looking = Lock()
        self._fresh = Event()
        self._unused = Event()
        self._thread: Thread | None = None
        self._process = os.getpid()

    async def wait(self, run_id: str, *questions: Question, after: int = 0) -> Question:
        """Return the first question about a run with an answer; raises E156.

        ``after`` is the known event.
        """
        waiter = _Waiter(run_id, questions, after, asyncio.get_running_loop().create_future())
        self._begin_anew_in_child()
        with self._lock:
            self._waiters.add(waiter)
            self._unused.clear()
            if self._thread is None:
                self._thread = Thread(
                    target=self._look_in_intervals, name="kantan-agents-poller", daemon=True
                )
                self._thread.start()
        self._fresh.set()
        try:
            return await waiter.answer
        finally:
            with self._lock:
                self._waiters.discard(waiter)
                if not self._waiters:  # the thread ends with the last one
                    self._unused.set()
                    self._fresh.set()

    @contextmanager
    def between_looks(self) -> Iterator[None]:
        """Inside the block, do not look: the database is closed."""
        self._begin_anew_in_child()
        thread = self._thread
        with self._looking:
            yield
        if thread is not None and self._unused.is_set():
            thread.join(10.0)

    def _begin_anew_in_child(self) -> None:
        if self._process != os.getpid():
            self._process, self._thread = os.getpid(), None
            self._waiters = set()
            # The thread of the parent may have held these, and does not release them here.
            self._lock, self._looking = Lock(), Lock()

    def _look_in_intervals(self) -> None:
        began_to_fail: float | None = None
        while True:
            with self._lock:
                waiters = [one for one in self._waiters if not one.answer.done()]
                if not waiters:
                    self._thread = None
                    return
            self._fresh.clear()
            start = time.monotonic()
            try:
                with self._looking:
                    self._look(waiters)
                began_to_fail = None
            except Exception as error:  # noqa: BLE001 - all who wait get it
                began_to_fail = began_to_fail or start
                if not getattr(error, "is_away", False) or start - began_to_fail >= patience.PATIENCE:
                    for one in waiters:
                        one.resolve(error)
            rest = min(_REST * (time.monotonic() - start), 10 * _INTERVAL)
            self._unused.wait(rest)
            self._fresh.wait(max(_INTERVAL - rest, 0.0))

    def _look(self, waiters: Iterable[_Waiter]) -> None:
        asked: dict[Question, dict[str, int]] = {}
        for one in waiters:
            for question in one.questions:
                runs = asked.setdefault(question, {})
                runs[one.run_id] = min(one.after, runs.get(one.run_id, one.after))
        found: dict[Question, Mapping[str, Any]] = {
            question: self._asks[question](runs) for question, runs in asked.items()
        }
        for one in waiters:
            for question in one.questions:
                if found[question].get(one.run_id, -1) > one.after or (
                    question != "has events" and one.run_id in found[question]
                ):
                    one.resolve(question)
                    break
