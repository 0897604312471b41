"""Deferred work that a run need not wait for."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

INTERVAL = 0.1
_MOST = 10_000

Task = tuple[Callable[..., None], tuple[Any, ...]]


class Later:
    """Calls functions in order, in a dedicated thread, ``interval`` seconds later.

    The queue is bounded: a thread that adds too much calls the oldest functions itself.
    """

    def __init__(self, report: Callable[[Exception], None], interval: float = INTERVAL) -> None:
        self._report = report
        self._interval = interval
        self.start_anew()

    def start_anew(self) -> None:
        """Start empty, also in a forked child."""
        self._tasks: deque[Task] = deque()
        # Reentrant: a signal handler may interrupt its thread and need the work done.
        self._doing = threading.RLock()
        self._has_tasks = threading.Event()
        self._is_over = False
        self._thread: threading.Thread | None = None

    def add(self, function: Callable[..., None], *arguments: Any) -> None:
        """Call a function later."""
        self._tasks.append((function, arguments))
        if not self._has_tasks.is_set():
            self._has_tasks.set()
            if self._thread is None:
                self._start()
        elif len(self._tasks) > _MOST:
            self.do_now()

    def do_now(self) -> None:
        """Call all waiting functions in this thread."""
        self._has_tasks.clear()
        with self._doing:
            self._do(lambda: None)

    def end(self) -> None:
        """Let the thread end when it is idle."""
        self._is_over = True
        self._has_tasks.set()

    def _start(self) -> None:
        thread = threading.Thread(target=self._work, name="kantan-agents-otel-spans", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter is shutting down
            self.do_now()
        else:
            self._thread = thread

    def _work(self) -> None:
        has_tasks, doing = self._has_tasks, self._doing
        while not self._is_over:
            has_tasks.wait()
            time.sleep(self._interval)
            has_tasks.clear()
            with doing:
                # The event loop then waits for the GIL for one task, not for all.
                self._do(lambda: time.sleep(0))

    def _do(self, between: Callable[[], None]) -> None:
        tasks = self._tasks
        while tasks:
            try:
                function, arguments = tasks.popleft()
            except IndexError:  # a signal handler has done it
                return
            self._call(function, arguments)
            between()

    def _call(self, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        try:
            function(*arguments)
        except Exception as error:  # noqa: BLE001 - the next one is not affected
            self._report(error)
