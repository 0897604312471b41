"""The queue of a recorder, its thread and its counters."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic

import anyio.to_thread
import attrs
from agents.tracing import TracingProcessor

from kantan_agents.errors import SpansDroppedError, TracesNotWrittenError
from kantan_agents.support.log import get_logger
from kantan_agents.traces.database_url import Place, path_of
from kantan_agents.traces.recorder import bound, lifecycle
from kantan_agents.traces.recorder.database import Database
from kantan_agents.traces.recorder.sections import Sections
from kantan_agents.traces.recorder.span_queue import SPANS, Snapshot, SpanQueue
from kantan_agents.traces.recorder.waking import FlushMarker, WriterWake
from kantan_agents.traces.recorder.writer import Writer

_log = get_logger("kantan_agents.tracing")

FLUSH_SECONDS = 5.0
_STATS_ATTEMPTS = 100


@attrs.frozen
class RecorderStats:
    """The spans that a recorder has handled so far in this process.

    Each ended span is counted in exactly one of ``written``, ``queued``, ``dropped`` and ``failed``.

    Attributes:
        written: Spans in the database.
        queued: Spans that wait to be written.
        dropped: Spans lost because the queue was full (E63).
        failed: Spans that could not be recorded (E65).
        oldest_unwritten: Age of the oldest queued span in seconds; 0.0 if the queue is empty.
        replaced: How often the open file was found moved, replaced, truncated or deleted.
    """

    written: int
    queued: int
    dropped: int
    failed: int
    oldest_unwritten: float
    replaced: int = 0


class BackgroundRecorder(TracingProcessor):
    """Writes the queue that a subclass fills, on a dedicated thread.

    ``SQLiteRecorder`` documents the options.
    """

    def __init__(
        self,
        path: Place,
        *,
        max_queue: int,
        max_queue_bytes: int,
        max_wait: float,
        flush_interval: float,
        new_database: Callable[[], Database],
    ) -> None:
        self._path = path
        self._max_queue = max_queue
        self._max_queue_bytes = max_queue_bytes
        self._max_wait = max_wait
        self._interval = flush_interval
        self._new_database = new_database
        self._reset()

    def _reset(self) -> None:
        self._failed = 0
        self._sections = Sections()
        self._queue = SpanQueue(
            limit=self._max_queue,
            max_bytes=self._max_queue_bytes,
            max_wait=self._max_wait,
            waking=WriterWake(self._interval),
            may_wait=self._may_wait,
            is_served=lambda: self._writer.is_running,
            on_drop=self._on_drop,
            sections=self._sections,
        )
        self._writer = Writer(self._path, self._new_database(), self._queue, self._sections)

    def __repr__(self) -> str:
        stats = self.stats()
        return f"{type(self).__name__}({str(self._path)!r}, written={stats.written}, queued={stats.queued})"

    @property
    def path(self) -> Path:
        """The database file."""
        return path_of(self._path)

    def stats(self) -> RecorderStats:
        """Return the numbers of written, waiting and lost spans."""
        # Without the lock if possible: a signal handler that interrupts this may wait for the writer, and the
        # writer for the lock.
        for _ in range(_STATS_ATTEMPTS):
            version = self._queue.version
            stats = self._stats()
            if version == self._queue.version and version % 2 == 0:
                return stats
            time.sleep(0)
        with self._sections.entered(), self._queue.lock:
            return self._stats()

    def _stats(self) -> RecorderStats:
        waiting = [item for item in self._queue.unwritten() if isinstance(item, SPANS)]
        oldest = min((item.queued_at for item in waiting), default=None)
        return RecorderStats(
            written=self._writer.batches.written,
            queued=len(waiting),
            dropped=self._queue.dropped,
            failed=self._writer.batches.failed + self._failed,
            oldest_unwritten=0.0 if oldest is None else monotonic() - oldest,
            replaced=self._writer.batches.replaced,
        )

    def force_flush(self, timeout: float = FLUSH_SECONDS) -> bool:  # type: ignore[override]
        """Wait until all spans that have ended so far are written.

        Args:
            timeout: Maximum wait in seconds.

        Returns:
            Whether all of them are in the database. Returns False immediately if the database cannot be
            written. While it is locked, the recorder retries until the timeout.
        """
        return self.start_flush()(timeout)

    def start_flush(self) -> Callable[[float], bool]:
        """Start to do the same as ``force_flush``, without waiting.

        Returns:
            A function that waits for at most the given seconds and returns whether everything is written.
        """
        if self._writer.owns_this_thread():
            return lambda _: False
        if not self._queue.unwritten():
            return lambda _: True
        marker = self._queue.put_marker()
        if not self._start_writer():
            return lambda _: not self._queue.unwritten()
        return marker.wait

    def prepare_read(self, timeout: float) -> None:
        """Flush before this process reads the file, or if it was replaced."""
        if not self._queue.unwritten() and self._writer.batches.is_file_replaced():
            self._queue.put_marker()
        self.force_flush(timeout)

    async def force_flush_async(
        self,
        timeout: float = FLUSH_SECONDS,  # noqa: ASYNC109 - the same signature as force_flush
    ) -> bool:
        """Do the same as ``force_flush`` without blocking the event loop."""
        return await anyio.to_thread.run_sync(self.force_flush, timeout, abandon_on_cancel=True)

    def shutdown(self, timeout: float = FLUSH_SECONDS) -> None:
        """Write all waiting spans, stop the thread and close the file; the next span opens it again.

        Args:
            timeout: Maximum wait in seconds. Up to five seconds count towards the limit that all exit steps
                of the process share, because the SDK passes five at exit, when earlier steps may have waited
                in vain.
        """
        is_shared = timeout <= FLUSH_SECONDS
        allowed = min(timeout, bound.remaining(is_ending=False)) if is_shared else timeout
        deadline = monotonic() + allowed
        if self.force_flush(allowed) and is_shared:
            bound.renew()
        self._writer.stop(max(0.1, deadline - monotonic()))
        if self._queue.unwritten():  # new or still unwritten items
            self._start_writer()

    @property
    def is_failing(self) -> bool:
        """Whether the last attempt to write failed."""
        return self._writer.batches.is_failing

    def log_unwritten(self) -> None:
        """Log the spans that will be lost: a silent server raises no error."""
        waiting = [item for item in self._queue.unwritten() if not isinstance(item, FlushMarker)]
        if not waiting:
            return
        queued = sum(isinstance(item, SPANS) for item in waiting)
        reason = "the process ends before they are written"
        error = TracesNotWrittenError(path=str(self._path), reason=reason, queued=queued)
        _log.error(str(error), code=error.code, **error.data)

    def holds_this_thread(self) -> bool:
        """Return whether this thread holds a lock of the recorder, as in a signal handler."""
        return self._sections.hold_this_thread()

    def defer(self, action: Callable[[], None]) -> bool:
        """Call ``action`` when this thread leaves the lock; return False if it holds none."""
        return self._sections.defer(action)

    def before_fork(self) -> None:
        """Stop the thread and close the file; a child can use neither."""
        self._writer.pause(lifecycle.FORK_SECONDS)

    def after_fork_in_parent(self) -> None:
        """Continue writing."""
        self._writer.resume()

    def after_fork_in_child(self) -> None:
        """Start empty; the parent writes the waiting spans."""
        connection = self._writer.abandon()
        if connection is not None:
            lifecycle.abandoned_connections.append(connection)
        self._reset()

    def _put(self, snapshot: Snapshot) -> None:
        self._queue.put(snapshot)
        writer = self._writer
        if writer.thread is None or writer.is_stopping:
            self._start_writer()
        # Unlike the public function, it does not raise without a loop.
        if asyncio._get_running_loop() is not lifecycle.Watched.latest:
            lifecycle.flush_at_loop_end()

    def _may_wait(self) -> bool:
        if not self._writer.can_be_waited_for():
            return False
        if self._writer.thread is None or self._writer.is_stopping:
            return self._start_writer()
        return True

    def _start_writer(self) -> bool:
        """At interpreter exit, write in this thread and return False."""
        if lifecycle.has_exited():
            self._writer.stop(FLUSH_SECONDS)
        else:
            lifecycle.watch_worker()
            with suppress(RuntimeError):  # no new threads at interpreter shutdown
                self._writer.start()
                return True
        self._writer.write_in_this_thread()
        return False

    def _on_drop(self) -> None:
        limit = f"{self._max_queue} spans, {self._max_queue_bytes} bytes"
        error = SpansDroppedError(path=str(self._path), limit=limit)
        _log.error(str(error), code=error.code, **error.data)
