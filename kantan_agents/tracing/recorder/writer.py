"""The thread that writes: it lives while there is work, collects for a moment, waits where that can help."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kantan_agents.tracing.recorder.batches import Batches
from kantan_agents.tracing.recorder.span_queue import SpanQueue

BATCH = 1_000
IDLE_SECONDS = 10.0
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0

_JOIN_SECONDS = 0.05


class Writer:
    """Writes what stands in a queue to a database, on a thread that lives while there is work.

    Attributes:
        batches: What writes; counts what it wrote and what it gave up.
        thread: The thread, or None.
        is_stopping: Whether the thread is about to end, however much there is to do.
    """

    def __init__(self, path: Path, queue: SpanQueue, interval: float) -> None:
        self.batches = Batches(path, queue)
        self.thread: threading.Thread | None = None
        self.is_stopping = False
        self._ending: threading.Thread | None = None
        self._queue = queue
        self._interval = interval
        self._starting = threading.RLock()  # a signal handler may start it while it is being started
        self._busy_with_it: set[int] = set()
        self._is_held = False
        self._is_starting = False
        self._is_writing_here = False
        self._seconds = FIRST_PAUSE

    def start(self) -> None:
        """Start the thread, or have it go on; nothing while it is held.

        Raises:
            RuntimeError: The interpreter ends and starts no more threads.
        """
        with self._deciding():
            if self._is_held or self._is_starting:
                return
            self.is_stopping = False
            if self.thread is None:
                # A destructor, called while the thread is being made, may end a span and come here again.
                self._is_starting = True
                try:
                    self._start_thread()
                finally:
                    self._is_starting = False

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._run, name="kantan_agents recorder", daemon=True)
        self.thread = thread
        try:
            thread.start()
        except BaseException:
            # Interrupted while it waited for the thread to begin, there is one all the same.
            if not thread.is_alive():
                self.thread = None
            raise

    def stop(self, seconds: float) -> None:
        """End the thread after the batch it has in hand; wait for that for at most ``seconds``."""
        thread = self.thread or self._ending
        if thread is None or thread.ident == threading.get_ident():
            return
        self.is_stopping = True
        self._queue.hurry()
        deadline = time.monotonic() + seconds
        # Somebody may start it again meanwhile, as there is something new to write: then it goes on.
        while self.is_stopping and thread.is_alive() and time.monotonic() < deadline:
            thread.join(_JOIN_SECONDS)

    def hold(self, seconds: float) -> None:
        """Stop, and let nobody start it before ``let_go``."""
        with self._deciding():
            self._is_held = True
        self.stop(seconds)

    def let_go(self) -> None:
        """Let it be started again, and start it if there is something to do."""
        with self._deciding():
            self._is_held = False
        if self._queue.unwritten():
            self.start()

    def write_here(self) -> None:
        """Write everything in the calling thread, once: at interpreter exit, when there is no other."""
        with self._deciding():
            if self.thread is not None or self._is_writing_here:
                return
            self._is_writing_here = True
            try:
                while self._queue.take(BATCH) and self.batches.write():
                    continue
                self.batches.close()
            finally:
                self._is_writing_here = False

    def abandon(self) -> sqlite3.Connection | None:
        """Return the connection, which a forked child has no right to."""
        return self.batches.abandon()

    def may_be_waited_for(self) -> bool:
        """Whether the calling thread may wait for the writer, which may itself wait for this thread.

        It does if a destructor asks, run by the writer's own thread or by one that is about to start it.
        """
        return not self.owns_this_thread() and threading.get_ident() not in self._busy_with_it

    @contextmanager
    def _deciding(self) -> Iterator[None]:
        """Hold the right to say whether there is a thread."""
        thread_id = threading.get_ident()
        is_outermost = thread_id not in self._busy_with_it
        self._busy_with_it.add(thread_id)  # before the lock: a destructor may run between any two lines
        try:
            with self._starting:
                yield
        finally:
            if is_outermost:
                self._busy_with_it.discard(thread_id)

    def owns_this_thread(self) -> bool:
        """Whether the calling thread is the writer's, which must not wait for itself."""
        # By its number, which a thread has first of all: it may end spans before it counts as current.
        return self.thread is not None and self.thread.ident == threading.get_ident()

    def _run(self) -> None:
        try:
            while self.owns_this_thread():
                self._work()
                with self._deciding():
                    # Started again while it was about to stop, it goes on.
                    if self.owns_this_thread() and (self.is_stopping or not self._queue.unwritten()):
                        self._end()
        finally:
            if self.owns_this_thread():
                self._end()

    def _end(self) -> None:
        self.batches.close()
        self._ending = self.thread
        self.thread = None

    def _work(self) -> None:
        while not self.is_stopping and self.owns_this_thread() and self._has_work():
            if self.batches.write():
                self._seconds = FIRST_PAUSE
            else:
                self._pause()

    def _has_work(self) -> bool:
        """Wait for something to write, then a little for more of it; False if nothing came for long."""
        queue = self._queue
        while not queue.take(BATCH):
            queue.sleeping = True
            # Looked at once more: what came before the flag was up, woke nobody.
            woken = bool(len(queue)) or queue.wake.wait(IDLE_SECONDS)
            queue.sleeping = False
            if self.is_stopping or (not woken and self._may_end()):
                return False
            self._wait_for_more()
        return True

    def _wait_for_more(self) -> None:
        queue = self._queue
        deadline = time.monotonic() + self._interval
        while not queue.urgent and queue.wake.wait(deadline - time.monotonic()):
            continue
        queue.urgent = False

    def _may_end(self) -> bool:
        with self._deciding():
            thread = self.thread
            self._end()
            # Asked last: who appends now either sees that there is no thread, or is seen here.
            if not len(self._queue):
                return True
            self.thread = thread
            return False

    def _pause(self) -> None:
        """Wait before the next try: longer each time, but only for a moment while somebody waits."""
        queue = self._queue
        now = time.monotonic()
        soon, deadline = now + FIRST_PAUSE, now + self._seconds
        self._seconds = min(2 * self._seconds, LONGEST_PAUSE)
        while not self.is_stopping and time.monotonic() < (soon if queue.markers() else deadline):
            queue.wake.wait((soon if queue.markers() else deadline) - time.monotonic())
