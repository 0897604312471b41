"""``SQLiteRecorder``: a trace processor that writes to SQLite without delaying the run."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import anyio.to_thread
from agents.tracing import TracingProcessor

from kantan_agents.errors import (
    InvalidOptionError,
    KantanAgentsError,
    RedactionError,
    SpanNotRecordedError,
    SpansDroppedError,
    TracesNotWrittenError,
)
from kantan_agents.support.arguments import checked_bool, checked_int, checked_number
from kantan_agents.support.log import get_logger
from kantan_agents.traces import registry
from kantan_agents.traces.capture.captured import ending, want_records
from kantan_agents.traces.recorder import bound, lifecycle, sigterm
from kantan_agents.traces.recorder.arguments import check_file_owner, checked_path
from kantan_agents.traces.recorder.redaction import Redact
from kantan_agents.traces.recorder.run_redaction import redact_run
from kantan_agents.traces.recorder.sections import Sections
from kantan_agents.traces.recorder.settled import settled_span
from kantan_agents.traces.recorder.snapshot import (
    snapshot_span,
    snapshot_trace,
    withheld_span,
    withheld_trace,
)
from kantan_agents.traces.recorder.span_queue import SPANS, FlushMarker, Snapshot, SpanQueue
from kantan_agents.traces.recorder.stats import RecorderStats
from kantan_agents.traces.recorder.writer import Writer
from kantan_agents.traces.replayed import REPLAYED

_log = get_logger("kantan_agents.tracing")

FLUSH_SECONDS = 5.0
_OPEN_TRACES = 10_000
_MAX_LOGGED = 100
_STATS_ATTEMPTS = 100


class SQLiteRecorder(TracingProcessor):
    """Records traces in a kantan-llm database without blocking the event loop.

    Pass it to ``set_trace_processors`` of the SDK or of kantan-llm, or call ``record_traces``. The thread
    that ends a span only copies it. The recorder's own thread writes many spans in one transaction.
    ``TraceStore`` and kantan-llm's ``SQLiteTracer`` can read the file at the same time.

    A recorder never makes a run fail. Errors are logged on ``kantan_agents.tracing`` with their code (E62 to
    E65) and counted in ``stats()``.

    Args:
        path: The database file. Its directory must exist. A missing file is created, and only its owner may
            read it; an existing file keeps its mode.
        max_queue: Number of spans and traces that may wait to be written.
        max_queue_bytes: Bytes of memory that the waiting spans and traces may take, with those that are being
            written. A span that alone takes more than a quarter of it is dropped.
        max_wait: Seconds that a thread which ends a span waits if the queue is full. After that, or at once
            with 0, the oldest span is dropped. On an event loop, this wait blocks every task.
        flush_interval: Seconds during which spans are collected before they are written together. If the
            process is killed, these spans are lost. While the event loop is blocked, it may take half a
            second longer.
        redact: Receives each span and trace as a dict of JSON data (the result of ``export()``, and for
            ``response`` spans also input, output and model). Returns the data to record, or None to leave the
            content out. Called in the thread that ends the span, before anything is stored. If it raises, the
            content is left out.
        flush_on_sigterm: Whether to flush when a SIGTERM arrives, or a SIGINT whose action is the default one
            of the system. An existing handler is called as before. A recorder that is created outside the
            main thread does not handle the signals.
        adopt: Whether the file may be the database of another program, to which the tables for traces are
            added.
        record_requests: Whether the complete record of each run is stored beside its trace: prompts,
            instructions, tools, settings, and what the rules decided. It is masked and redacted as the spans
            are. Without it, a run cannot be replayed, and ``TraceStore`` says that its record is missing.
        search_index: Whether a new file gets an index for searches. An existing file keeps the one that it
            has; if it has none, ``TraceStore.build_index`` adds it.

    Raises:
        TraceDatabaseError: E60, the path is a directory, its directory does not exist, or the file is the
            database of another program.
        InvalidOptionError: E75, an option is invalid.
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
        adopt: bool = False,
        record_requests: bool = True,
        search_index: bool = True,
    ) -> None:
        self._adopt = checked_bool("adopt", adopt)
        self._path = self._checked_place(path)
        self._search_index = checked_bool("search_index", search_index)
        self._max_queue = checked_int("max_queue", max_queue, 1)
        self._max_queue_bytes = checked_int("max_queue_bytes", max_queue_bytes, 1)
        self._max_wait = checked_number("max_wait", max_wait)
        self._interval = checked_number("flush_interval", flush_interval)
        if redact is not None and not callable(redact):
            raise InvalidOptionError(option="redact", reason="must be a function")
        self._redact = redact
        self._records_requests = checked_bool("record_requests", record_requests)
        if self._records_requests:
            want_records(self)
        self._reset()
        registry.register(self)
        lifecycle.watch_process()
        if flush_on_sigterm:
            sigterm.flush_on_sigterm()
        # Opens the file at once, so that it can be read, and a file that cannot be used is logged now.
        self._queue.put_marker()
        self._start_writer()

    def _checked_place(self, path: str | os.PathLike[str]) -> Path:
        """Return where the database is; other recorders write elsewhere."""
        checked = checked_path(path)
        if not self._adopt:
            check_file_owner(checked)
        return checked

    def _reset(self) -> None:
        self._open: set[str] = set()
        self._failed = 0
        self._logged: set[tuple[str, str]] = set()
        self._lock = threading.RLock()  # reentrant: a destructor may end a span while it is held
        self._sections = Sections()
        self._queue = SpanQueue(
            limit=self._max_queue,
            max_bytes=self._max_queue_bytes,
            max_wait=self._max_wait,
            interval=self._interval,
            may_wait=self._may_wait,
            is_served=lambda: self._writer.is_running,
            on_drop=self._on_drop,
            sections=self._sections,
        )
        self._writer = Writer(
            self._path,
            self._queue,
            self._sections,
            adopt=self._adopt,
            search_index=self._search_index,
        )

    def __repr__(self) -> str:
        stats = self.stats()
        return f"{type(self).__name__}({str(self._path)!r}, written={stats.written}, queued={stats.queued})"

    @property
    def path(self) -> Path:
        """The database file."""
        return self._path

    def on_trace_start(self, trace: Any) -> None:
        """Record a trace."""
        self._put_trace(trace)

    def on_trace_end(self, trace: Any) -> None:
        """Record the trace if its start was not seen; after a SIGTERM, have it written at once."""
        trace_id = trace.trace_id
        if trace_id in self._open:
            self._open.discard(trace_id)
        else:
            self._put_trace(trace)
        self._put_run(trace_id)
        if sigterm.is_shutting_down():
            sigterm.flush_in_shutdown(self)

    def on_span_start(self, span: Any) -> None:
        """Do nothing; a span is recorded when it ends."""

    def on_span_end(self, span: Any) -> None:
        """Record a span, unless it is one of a call that an earlier process has made and recorded."""
        data = getattr(span, "span_data", None)
        if hasattr(data, REPLAYED):
            return
        settled = settled_span(span, data) if self._redact is None else None
        if settled is not None:
            self._put(settled)
            return
        try:
            snapshot = snapshot_span(span, self._redact)
        except RedactionError as error:
            self._log_once(error, error.reason)
            snapshot = withheld_span(span)
        except Exception as error:  # noqa: BLE001 - recording must not make a run fail
            self._discard(span.span_id, error, spans=1)
            return
        if snapshot is not None:
            self._put(snapshot)
        if ending.get() is not None:
            self._put_run(span.span_id)

    def _put_run(self, record_id: str) -> None:
        """Record the run whose trace or span has this id, if it is one of a run that is just ending."""
        run = ending.get()
        if run is None or run.record_id != record_id or not self._records_requests:
            return
        try:
            self._put(run if self._redact is None else redact_run(run, self._redact))
        except RedactionError as error:
            self._log_once(error, error.reason)
        except Exception as error:  # noqa: BLE001 - recording must not make a run fail
            self._discard(record_id, error, spans=0)

    @property
    def redacts(self) -> bool:
        """Whether it has a ``redact`` function."""
        return self._redact is not None

    def stats(self) -> RecorderStats:
        """Return the numbers of spans that were written, wait, or were lost."""
        # Without the lock if possible: a signal handler that interrupts this function may wait for the
        # writer, and the writer would wait for the lock.
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
            timeout: Seconds to wait at most.

        Returns:
            Whether all of them are in the database. Returns False at once if the database cannot be written.
            While it is locked, the recorder retries until the timeout.
        """
        return self.start_flush()(timeout)

    def start_flush(self) -> Callable[[float], bool]:
        """Begin to do the same as ``force_flush``, without waiting.

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
        """Flush before this process reads the file; also if nothing waits but the file was replaced."""
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
        """Write all waiting spans, end the thread and close the file; the next span opens it again.

        Args:
            timeout: Seconds to wait at most. Up to five seconds count towards the bound that all ends of the
                process share, because the SDK asks for five at exit, when other ends may have waited in vain.
        """
        is_shared = timeout <= FLUSH_SECONDS
        allowed = min(timeout, bound.remaining(is_ending=False)) if is_shared else timeout
        deadline = monotonic() + allowed
        if self.force_flush(allowed) and is_shared:
            bound.renew()
        self._writer.stop(max(0.1, deadline - monotonic()))
        if self._queue.unwritten():  # new items, or items that could not be written in time
            self._start_writer()

    def retire(self) -> None:
        """Do the same as ``shutdown``; on an event loop, do not wait for it."""
        if sigterm.may_wait([self]):
            self.shutdown()
        self._writer.retire()  # also if not everything could be written within the time

    @property
    def is_failing(self) -> bool:
        """Whether the file could not be written at the last attempt."""
        return self._writer.batches.is_failing

    def records(self, trace_id: str) -> bool:
        """Return whether it has received the start of a trace that is open."""
        return trace_id in self._open

    def misses(self, trace_id: str) -> bool:
        """Return whether it has not received the start of an open trace, and was not shut down."""
        return trace_id not in self._open and self._writer.thread is not None

    def log_unwritten(self) -> None:
        """Log what waits although the process ends: a server that does not answer raises no error."""
        waiting = [item for item in self._queue.unwritten() if not isinstance(item, FlushMarker)]
        if not waiting:
            return
        queued = sum(isinstance(item, SPANS) for item in waiting)
        reason = "the process ends before they are written"
        error = TracesNotWrittenError(path=str(self._path), reason=reason, queued=queued)
        _log.error(str(error), code=error.code, **error.data)

    def holds_this_thread(self) -> bool:
        """Return whether the calling thread is inside a lock of the recorder, as in a signal handler."""
        return self._sections.hold_this_thread()

    def defer(self, action: Callable[[], None]) -> bool:
        """Call ``action`` when this thread leaves the recorder's lock; return False if it is in none."""
        return self._sections.defer(action)

    def before_fork(self) -> None:
        """Stop the thread and close the file; a forked child can use neither."""
        self._writer.pause(lifecycle.FORK_SECONDS)

    def after_fork_in_parent(self) -> None:
        """Continue writing."""
        self._writer.resume()

    def after_fork_in_child(self) -> None:
        """Start empty; the parent writes the spans that were waiting."""
        connection = self._writer.abandon()
        if connection is not None:
            lifecycle.abandoned_connections.append(connection)
        self._reset()

    def _put_trace(self, trace: Any) -> None:
        try:
            snapshot = snapshot_trace(trace, self._redact)
        except RedactionError as error:
            self._log_once(error, error.reason)
            snapshot = withheld_trace(trace.trace_id)
        except Exception as error:  # noqa: BLE001 - recording must not make a run fail
            self._discard(trace.trace_id, error, spans=0)
            return
        if snapshot is not None:
            if len(self._open) >= _OPEN_TRACES:
                # These traces may never end. The others are put once more when they end, which is harmless.
                self._open.clear()
            self._open.add(snapshot.id)
            self._put(snapshot)

    def _put(self, snapshot: Snapshot) -> None:
        self._queue.put(snapshot)
        writer = self._writer
        if writer.thread is None or writer.is_stopping:
            self._start_writer()
        # Without a loop, it raises nothing, unlike the public function.
        if asyncio._get_running_loop() is not lifecycle.Watched.latest:
            lifecycle.flush_at_loop_end()

    def _may_wait(self) -> bool:
        """Return whether this thread may wait for the writer; start it if it does not run."""
        if not self._writer.can_be_waited_for():
            return False
        if self._writer.thread is None or self._writer.is_stopping:
            return self._start_writer()
        return True

    def _start_writer(self) -> bool:
        """Start the thread; at interpreter exit, write in the calling thread instead and return False."""
        if lifecycle.has_exited():
            self._writer.stop(FLUSH_SECONDS)
        else:
            lifecycle.watch_worker()
            with suppress(RuntimeError):  # the interpreter is shutting down and starts no more threads
                self._writer.start()
                return True
        self._writer.write_in_this_thread()
        return False

    def _on_drop(self) -> None:
        limit = f"{self._max_queue} spans, {self._max_queue_bytes} bytes"
        error = SpansDroppedError(path=str(self._path), limit=limit)
        _log.error(str(error), code=error.code, **error.data)

    def _discard(self, span_id: str, error: Exception, *, spans: int) -> None:
        with self._lock:
            self._failed += spans
        reason = f"{type(error).__name__}: {error}"
        self._log_once(SpanNotRecordedError(span_id=span_id, reason=reason), reason)

    def _log_once(self, error: KantanAgentsError, reason: str) -> None:
        """Log ``error`` unless the same error has been logged before."""
        with self._lock:
            known = (error.code, reason)
            if known in self._logged or len(self._logged) >= _MAX_LOGGED:
                return
            self._logged.add(known)
        _log.error(str(error), code=error.code, **error.data)
