"""The recorder's thread."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kantan_agents.traces.database_url import Place
from kantan_agents.traces.recorder.batches import BatchWriter
from kantan_agents.traces.recorder.database import Database
from kantan_agents.traces.recorder.sections import Sections
from kantan_agents.traces.recorder.span_queue import SpanQueue

BATCH = 1_000
IDLE_SECONDS = 10.0
# How often an idle writer looks for its file, and for items without a timer.
CHECK_SECONDS = 0.5
# Wait of an idle writer before it catches up with more traces.
CATCH_UP_PAUSE = 0.05
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0

_JOIN_SECONDS = 0.05


class Writer:
    """Writes a queue to a database, on a thread that exists while there is work."""

    def __init__(self, path: Place, database: Database, queue: SpanQueue, sections: Sections) -> None:
        self.batches = BatchWriter(path, database, queue)
        self.thread: threading.Thread | None = None
        self.is_running = False
        self.is_stopping = False
        self._ending: threading.Thread | None = None
        self._queue = queue
        self._sections = sections
        self._lock = threading.RLock()  # reentrant: a destructor may run while it is held
        self._is_wanted = False
        self._is_paused = False
        self._is_retiring = False
        self._is_writing_in_caller = False
        self._retry_delay = FIRST_PAUSE

    def start(self) -> None:
        """Start the thread, or let a stopping one continue, unless paused.

        This never waits for another thread's lock: a destructor that ends a span may run while its thread
        holds a lock of ``threading`` that the other thread needs to start the writer. Instead, the other
        thread starts it.
        """
        if self._sections.defer(self._start_if_possible):
            return
        self._is_wanted = True
        with self._sections.entered():
            # The thread that holds the lock checks `_is_wanted` again after releasing it.
            while self._is_wanted and self._lock.acquire(blocking=False):
                try:
                    self._start_wanted()
                finally:
                    self._lock.release()

    def _start_wanted(self) -> None:
        self._is_wanted = False
        if self._is_paused:
            return
        self.is_stopping = False
        if self.thread is None:
            self._start_thread()

    def _start_if_possible(self) -> None:
        with suppress(RuntimeError):  # the interpreter starts no more threads; its exit function writes
            self.start()

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._run, name="kantan_agents recorder", daemon=True)
        self.thread = thread
        try:
            thread.start()
        except BaseException:
            # It is alive if only the wait for its start was interrupted.
            if not thread.is_alive():
                self.thread = None
            raise

    def stop(self, seconds: float) -> None:
        """Stop after the current batch; wait up to ``seconds``."""
        thread = self.thread or self._ending
        if thread is None or thread.ident == threading.get_ident():
            return
        self.is_stopping = True
        self._queue.waking.request_write()
        deadline = time.monotonic() + seconds
        # For new items, another thread may start it again.
        while self.is_stopping and thread.is_alive() and time.monotonic() < deadline:
            thread.join(_JOIN_SECONDS)

    def retire(self) -> None:
        """Let the thread end when everything is written; do not wait."""
        self._is_retiring = self.thread is not None
        self._queue.waking.request_write()

    def pause(self, seconds: float) -> None:
        """Stop the thread until ``resume``."""
        with self._locked():
            self._is_paused = True
        self.stop(seconds)

    def resume(self) -> None:
        """Allow the thread, and start it if items wait."""
        with self._locked():
            self._is_paused = False
        if self._queue.unwritten():
            self.start()

    def write_in_this_thread(self) -> None:
        """Write everything in this thread, for interpreter exit."""
        with self._locked():
            if self.thread is not None or self._is_writing_in_caller:
                return
            self._is_writing_in_caller = True
            try:
                while self._queue.take(BATCH) and self.batches.write():
                    continue
                self.batches.close()
            finally:
                self._is_writing_in_caller = False

    def abandon(self) -> sqlite3.Connection | None:
        """Return the connection unclosed, in a forked child."""
        return self.batches.abandon()

    def can_be_waited_for(self) -> bool:
        """Return whether waiting for the writer cannot deadlock.

        It can on the writer's own thread, or in a destructor while the thread holds a lock.
        """
        return not self.owns_this_thread() and not self._sections.hold_this_thread()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            with self._sections.entered(), self._lock:
                yield
        finally:
            if self._is_wanted:  # another thread could not start the writer meanwhile
                self._start_if_possible()

    def owns_this_thread(self) -> bool:
        """Return whether this is the writer's thread."""
        # By id, which is set first: a span may end before `current_thread()` works.
        return self.thread is not None and self.thread.ident == threading.get_ident()

    def _run(self) -> None:
        self.is_running = True
        try:
            while self.owns_this_thread():
                self._work()
                with self._locked():
                    # It continues if it was started again.
                    if self.owns_this_thread() and (self.is_stopping or not self._queue.unwritten()):
                        self._end()
        finally:
            if self.owns_this_thread():
                self._end()

    def _end(self) -> None:
        self.batches.close()
        self._ending = self.thread
        self.is_running = self._is_retiring = False
        self.thread = None

    def _work(self) -> None:
        while not self.is_stopping and self.owns_this_thread() and self._has_work():
            if self.batches.write():
                self._retry_delay = FIRST_PAUSE
            else:
                self._wait_before_retry()

    def _has_work(self) -> bool:
        queue = self._queue
        while not queue.take(BATCH):
            queue.waking.sleeping = True
            # Again: an item appended before `sleeping` was set did not wake this thread.
            woken = bool(len(queue)) or (not self._is_retiring and self._wait_idly())
            queue.waking.sleeping = False
            if self._is_retiring and not len(queue):
                woken = False
            if self.is_stopping or (not woken and self._may_end()):
                return False
            queue.waking.wait_for_more()
        return True

    def _wait_idly(self) -> bool:
        deadline = time.monotonic() + IDLE_SECONDS
        pause = CHECK_SECONDS
        while (remaining := deadline - time.monotonic()) > 0:
            if self._queue.waking.wait(min(remaining, pause)) or self._queue.waking.is_due():
                return True
            self.batches.leave_replaced_file()
            pause = CATCH_UP_PAUSE if self.batches.catch_up() else CHECK_SECONDS
        return len(self._queue) > 0  # still being collected

    def _may_end(self) -> bool:
        with self._locked():
            thread, is_retiring = self.thread, self._is_retiring
            self._end()
            # Last: a thread that appends an item now either sees no writer thread, or its item is seen here.
            if not len(self._queue):
                return True
            self.thread, self._is_retiring = thread, is_retiring
            self.is_running = True
            return False

    def _wait_before_retry(self) -> None:
        queue = self._queue
        now = time.monotonic()
        soon, deadline = now + FIRST_PAUSE, now + self._retry_delay
        self._retry_delay = min(2 * self._retry_delay, LONGEST_PAUSE)
        while not self.is_stopping and time.monotonic() < (soon if queue.markers() else deadline):
            queue.waking.wait((soon if queue.markers() else deadline) - time.monotonic())
