"""``SQLiteRecorder``: a trace processor that costs the run next to nothing and loses nothing."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio.to_thread
from agents.tracing import TracingProcessor

from kantan_agents.errors import (
    InvalidOptionError,
    KantanAgentsError,
    RedactionError,
    SpanNotRecordedError,
    SpansDroppedError,
)
from kantan_agents.support.log import get_logger
from kantan_agents.support.numbers import checked_int, checked_number
from kantan_agents.tracing import registry
from kantan_agents.tracing.recorder import process_end
from kantan_agents.tracing.recorder.arguments import checked_path
from kantan_agents.tracing.recorder.loop_end import flush_at_loop_end
from kantan_agents.tracing.recorder.snapshot import (
    Redact,
    SpanSnapshot,
    TraceSnapshot,
    snapshot_span,
    snapshot_trace,
    withheld_span,
    withheld_trace,
)
from kantan_agents.tracing.recorder.span_queue import SpanQueue
from kantan_agents.tracing.recorder.stats import RecorderStats
from kantan_agents.tracing.recorder.writer import Writer

_log = get_logger("kantan_agents.tracing")

FLUSH_SECONDS = 5.0
_OPEN_TRACES = 10_000
_TOLD = 100
_LOOKS = 100


class SQLiteRecorder(TracingProcessor):
    """Records traces in a kantan-llm database, off the event loop.

    Give it to ``set_trace_processors``, of the SDK or of kantan-llm, or call ``record_traces``. The thread
    that ends a span copies it and goes on; a thread of the recorder's own writes, many spans in one
    transaction. kantan-llm's ``SQLiteTracer`` and ``TraceStore`` read the file, while it is written too.

    It never ends a run: what goes wrong is logged on ``kantan_agents.tracing`` with its code (E62 to E65)
    and counted in ``stats()``.

    Args:
        path: The database file; made if it is not there. Its directory must exist.
        max_queue: How many spans and traces may wait to be written.
        max_queue_bytes: How many bytes those may have that wait because the file cannot be written.
        max_wait: Seconds that a thread which ends a span waits for room in a full queue. Then, or at once
            with 0, the oldest span is dropped. On an event loop, waiting keeps all its tasks waiting.
        flush_interval: Seconds that spans are collected before they are written together; what is lost if
            the process is killed.
        redact: Called with each span and trace as a dict of JSON data (what its ``export()`` returns, and
            for ``response`` spans input, output and model), in the thread that ends it and before anything
            is stored. Returns what is recorded, or None to leave the content out. If it raises, the content
            is left out as well.
        flush_on_sigterm: Whether to see to it that a SIGTERM loses nothing. A handler that is there is called
            as before; made in another thread than the main one, the recorder leaves the signal alone.

    Raises:
        TraceDatabaseError: E60, the path is a directory or its directory does not exist.
        InvalidOptionError: E75, for a bad option.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_queue: int = 20_000,
        max_queue_bytes: int = 256 * 1024 * 1024,
        max_wait: float = 0.0,
        flush_interval: float = 0.2,
        redact: Redact | None = None,
        flush_on_sigterm: bool = True,
    ) -> None:
        self._path = checked_path(path)
        self._max_queue = checked_int("max_queue", max_queue, 1)
        self._max_queue_bytes = checked_int("max_queue_bytes", max_queue_bytes, 1)
        self._max_wait = checked_number("max_wait", max_wait)
        self._interval = checked_number("flush_interval", flush_interval)
        if redact is not None and not callable(redact):
            raise InvalidOptionError(option="redact", reason="must be a function")
        self._redact = redact
        self._begin()
        registry.register(self)
        process_end.watch_process()
        if flush_on_sigterm:
            process_end.flush_on_sigterm()
        # Opens the file at once: it is there to be read, and if it cannot be used, that is logged now.
        self._queue.put_marker()
        self._start_writer()

    def _begin(self) -> None:
        self._open: set[str] = set()
        self._failed = 0
        self._told: set[tuple[str, str]] = set()
        self._telling = threading.Lock()
        self._queue = SpanQueue(
            limit=self._max_queue,
            max_bytes=self._max_queue_bytes,
            max_wait=self._max_wait,
            may_wait=lambda: self._writer.may_be_waited_for(),  # noqa: PLW0108 - there is no writer yet
            on_drop=self._on_drop,
        )
        self._writer = Writer(self._path, self._queue, self._interval)

    def __repr__(self) -> str:
        stats = self.stats()
        return f"SQLiteRecorder({str(self._path)!r}, written={stats.written}, queued={stats.queued})"

    @property
    def path(self) -> Path:
        """The database file."""
        return self._path

    def on_trace_start(self, trace: Any) -> None:
        """Record a trace."""
        self._put_trace(trace)

    def on_trace_end(self, trace: Any) -> None:
        """Record a trace whose start was not seen; after a SIGTERM, wait until all of it is written."""
        trace_id = trace.trace_id
        if trace_id in self._open:
            self._open.discard(trace_id)
        else:
            self._put_trace(trace)
        if process_end.is_near():
            self.force_flush(process_end.SIGTERM_SECONDS)

    def on_span_start(self, span: Any) -> None:
        """Do nothing: a span is recorded when it has ended."""

    def on_span_end(self, span: Any) -> None:
        """Record a span."""
        try:
            snapshot = snapshot_span(span, self._redact)
        except RedactionError as error:
            self._tell(error, error.reason)
            snapshot = withheld_span(span)
        except Exception as error:  # noqa: BLE001 - nothing of a trace may end a run
            self._give_up(span.span_id, error, spans=1)
            return
        if snapshot is not None:
            self._put(snapshot)

    def stats(self) -> RecorderStats:
        """Return what was written, what waits and what was lost."""
        # Without the lock if possible: a signal handler that came now and waited for the writer, which waits
        # for the lock, would wait in vain.
        for _ in range(_LOOKS):
            version = self._queue.version
            stats = self._stats()
            if version == self._queue.version and version % 2 == 0:
                return stats
            time.sleep(0)
        with self._queue.lock:
            return self._stats()

    def _stats(self) -> RecorderStats:
        waiting = [item for item in self._queue.unwritten() if isinstance(item, SpanSnapshot)]
        oldest = min((item.queued_at for item in waiting), default=None)
        return RecorderStats(
            written=self._writer.batches.written,
            queued=len(waiting),
            dropped=self._queue.dropped,
            failed=self._writer.batches.failed + self._failed,
            oldest_unwritten=0.0 if oldest is None else time.monotonic() - oldest,
        )

    def force_flush(self, timeout: float = FLUSH_SECONDS) -> bool:  # type: ignore[override]
        """Wait until everything that has ended by now is written.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            Whether all of it is in the database. False at once if the database cannot be written at all;
            while it is locked, another try is made until the time is over.
        """
        if self._writer.owns_this_thread():
            return False
        if not self._queue.unwritten():
            return True
        marker = self._queue.put_marker()
        if not self._start_writer():
            return not self._queue.unwritten()
        return marker.wait(timeout)

    async def force_flush_async(
        self,
        timeout: float = FLUSH_SECONDS,  # noqa: ASYNC109 - as its twin has it
    ) -> bool:
        """Do what ``force_flush`` does without blocking the event loop."""
        return await anyio.to_thread.run_sync(self.force_flush, timeout, abandon_on_cancel=True)

    def shutdown(self, timeout: float = FLUSH_SECONDS) -> None:
        """Write what waits, end the thread and close the file; the next span opens it again.

        Args:
            timeout: Seconds to wait at most.
        """
        deadline = time.monotonic() + timeout
        self.force_flush(timeout)
        self._writer.stop(max(0.1, deadline - time.monotonic()))
        if self._queue.unwritten():  # what came meanwhile, or could not be written in time
            self._start_writer()

    def before_fork(self) -> None:
        """Let go of thread and file: neither may be carried into a child."""
        self._writer.hold(process_end.FORK_SECONDS)

    def after_fork_in_parent(self) -> None:
        """Go on with what waits."""
        self._writer.let_go()

    def after_fork_in_child(self) -> None:
        """Begin anew: what waited is the parent's, which writes it."""
        connection = self._writer.abandon()
        if connection is not None:
            process_end.abandoned.append(connection)
        self._begin()

    def _put_trace(self, trace: Any) -> None:
        try:
            snapshot = snapshot_trace(trace, self._redact)
        except RedactionError as error:
            self._tell(error, error.reason)
            snapshot = withheld_trace(trace.trace_id)
        except Exception as error:  # noqa: BLE001 - nothing of a trace may end a run
            self._give_up(trace.trace_id, error, spans=0)
            return
        if snapshot is not None:
            if len(self._open) >= _OPEN_TRACES:
                self._open.clear()  # of traces that are never ended; the others are merely put once more
            self._open.add(snapshot.id)
            self._put(snapshot)

    def _put(self, snapshot: TraceSnapshot | SpanSnapshot) -> None:
        self._queue.put(snapshot)
        if self._writer.thread is None or self._writer.is_stopping:
            self._start_writer()
        flush_at_loop_end()

    def _start_writer(self) -> bool:
        """Start the thread; at the end of the interpreter, write here instead and return False."""
        if process_end.has_come():
            self._writer.stop(FLUSH_SECONDS)
        else:
            process_end.watch_worker()
            with suppress(RuntimeError):  # the interpreter ends and starts no more threads
                self._writer.start()
                return True
        self._writer.write_here()
        return False

    def _on_drop(self) -> None:
        limit = f"{self._max_queue} spans, {self._max_queue_bytes} bytes"
        error = SpansDroppedError(path=str(self._path), limit=limit)
        _log.error(str(error), code=error.code, **error.data)

    def _give_up(self, span_id: str, error: Exception, *, spans: int) -> None:
        with self._telling:
            self._failed += spans
        reason = f"{type(error).__name__}: {error}"
        self._tell(SpanNotRecordedError(span_id=span_id, reason=reason), reason)

    def _tell(self, error: KantanAgentsError, reason: str) -> None:
        """Log ``error``, unless the same has been logged before."""
        with self._telling:
            known = (error.code, reason)
            if known in self._told or len(self._told) >= _TOLD:
                return
            self._told.add(known)
        _log.error(str(error), code=error.code, **error.data)
