"""The thread that writes: collects for a moment, writes a batch, tries again where that can help."""

from __future__ import annotations

import math
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kantan_agents.errors import KantanAgentsError, SpanNotRecordedError, TracesNotWrittenError
from kantan_agents.log import get_logger
from kantan_agents.tracing.recorder.database import (
    Database,
    is_locked,
    is_the_files_fault,
    may_be_the_files_fault,
)
from kantan_agents.tracing.recorder.marker import Marker
from kantan_agents.tracing.recorder.masking import limit_from_environment
from kantan_agents.tracing.recorder.repair import storable, storable_usage
from kantan_agents.tracing.recorder.rows import SpanRow, span_row, trace_row
from kantan_agents.tracing.recorder.snapshot import SpanSnapshot, TraceSnapshot
from kantan_agents.tracing.recorder.span_queue import Item, SpanQueue

_log = get_logger("kantan_agents.tracing")

BATCH = 1_000
IDLE_SECONDS = 10.0
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
LOCKED_SECONDS = 2.0

_JOIN_SECONDS = 0.05

# After so many rows the event loop gets a chance to run, which it would otherwise have after 5 ms.
_ROWS_IN_A_ROW = 20


class Writer:
    """Writes what stands in a queue to a database, on a thread that lives while there is work.

    Attributes:
        written: Spans written so far.
        failed: Spans given up so far.
        thread: The thread, or None.
        is_stopping: Whether the thread is about to end, however much there is to do.
    """

    def __init__(self, path: Path, queue: SpanQueue, interval: float) -> None:
        self.written = 0
        self.failed = 0
        self.thread: threading.Thread | None = None
        self.is_stopping = False
        self._ending: threading.Thread | None = None
        self._path = path
        self._queue = queue
        self._interval = interval
        self._database = Database(path)
        self._starting = threading.RLock()  # a signal handler may start it while it is being started
        self._busy_with_it: set[int] = set()
        self._is_held = False
        self._is_starting = False
        self._is_writing_here = False
        self._trouble: str | None = None
        self._failing_since = math.inf
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
                while self._queue.take(BATCH) and self._try_to_write():
                    continue
                self._database.close()
            finally:
                self._is_writing_here = False

    def abandon(self) -> sqlite3.Connection | None:
        """Return the connection, which a forked child has no right to."""
        return self._database.abandon()

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
        self._database.close()
        self._ending = self.thread
        self.thread = None

    def _work(self) -> None:
        while not self.is_stopping and self.owns_this_thread() and self._has_work():
            if not self._try_to_write():
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

    def _try_to_write(self) -> bool:
        """Write what is in hand; return False, with all of it back in the queue, if it has to wait."""
        rows = self._rows()
        try:
            try:
                self._write(rows)
            except Exception as error:
                if is_the_files_fault(error):
                    raise
                self._write_singly(rows)
        except Exception as error:  # noqa: BLE001 - of the file's, see above
            self._failed_to_write(error)
            return False
        markers = [item for item in self._queue.in_hand if isinstance(item, Marker)]
        self._queue.done()
        self._recovered()
        for marker in markers:
            marker.pass_by(written=True)
        return True

    def _rows(self) -> list[tuple[Item, Any]]:
        """Return what is in hand with its rows; what has none is given up."""
        limited = limit_from_environment()
        rows: list[tuple[Item, Any]] = []
        for number, item in enumerate([*self._queue.in_hand]):
            if number % _ROWS_IN_A_ROW == _ROWS_IN_A_ROW - 1:
                time.sleep(0)
            try:
                if isinstance(item, TraceSnapshot):
                    rows.append((item, trace_row(item)))
                elif isinstance(item, SpanSnapshot):
                    rows.append((item, span_row(item, limited=limited)))
            except Exception as error:  # noqa: BLE001 - one span must not cost all others
                self._give_up(item, error)
        return rows

    def _write(self, rows: list[tuple[Item, Any]]) -> None:
        """Write ``rows`` in one transaction, and count them.

        Raises:
            Exception: What SQLite said.
        """
        traces = [row for item, row in rows if isinstance(item, TraceSnapshot)]
        spans = [row for item, row in rows if isinstance(item, SpanSnapshot)]
        self._database.write(traces, spans)
        with self._queue.moving():
            self.written += len(spans)
            written = {id(item) for item, _ in rows}
            self._queue.in_hand = [item for item in self._queue.in_hand if id(item) not in written]

    def _write_singly(self, rows: list[tuple[Item, Any]]) -> None:
        """Write row by row, so that only those are lost that SQLite cannot store.

        Raises:
            Exception: The file's fault.
        """
        refused: list[tuple[Item, Exception]] = []
        for item, row in rows:
            if isinstance(row, SpanRow):
                repaired: Any = SpanRow(storable(row.values), storable_usage(row.usage))
            else:
                repaired = storable(row)
            try:
                self._write([(item, repaired)])
            except Exception as error:
                if is_the_files_fault(error):
                    raise
                refused.append((item, error))
        if len(refused) == len(rows) and all(may_be_the_files_fault(reason) for _, reason in refused):
            raise refused[0][1]
        for item, reason in refused:
            self._give_up(item, reason)

    def _give_up(self, item: Item, error: Exception) -> None:
        with self._queue.moving():
            self.failed += isinstance(item, SpanSnapshot)
            self._queue.in_hand = [other for other in self._queue.in_hand if other is not item]
        span_id = "" if isinstance(item, Marker) else item.id
        _tell(SpanNotRecordedError(span_id=span_id, reason=_reason(error)))

    def _failed_to_write(self, error: Exception) -> None:
        self._database.close()
        self._queue.put_back()
        reason = _reason(error)
        now = time.monotonic()
        self._failing_since = min(self._failing_since, now)
        # That another process writes now and then is no trouble yet.
        is_trouble = not is_locked(error) or now - self._failing_since >= LOCKED_SECONDS
        if is_trouble and reason != self._trouble:
            queued = sum(isinstance(item, SpanSnapshot) for item in self._queue.unwritten())
            _tell(TracesNotWrittenError(path=str(self._path), reason=reason, queued=queued))
            self._trouble = reason
        if not is_locked(error):
            # Nobody need wait until the disk has room again.
            for marker in self._queue.markers():
                marker.pass_by(written=False)

    def _recovered(self) -> None:
        self._seconds = FIRST_PAUSE
        self._failing_since = math.inf
        if self._trouble is not None:
            self._trouble = None
            _log.info("traces are written again", path=str(self._path), written=self.written)

    def _pause(self) -> None:
        """Wait before the next try: longer each time, but only for a moment while somebody waits."""
        queue = self._queue
        now = time.monotonic()
        soon, deadline = now + FIRST_PAUSE, now + self._seconds
        self._seconds = min(2 * self._seconds, LONGEST_PAUSE)
        while not self.is_stopping and time.monotonic() < (soon if queue.markers() else deadline):
            queue.wake.wait((soon if queue.markers() else deadline) - time.monotonic())


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _tell(error: KantanAgentsError) -> None:
    _log.error(str(error), code=error.code, **error.data)
