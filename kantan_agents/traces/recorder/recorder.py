"""A trace processor that writes to SQLite without delaying the run."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from kantan_agents.errors import (
    InvalidOptionError,
    KantanAgentsError,
    RedactionError,
    SpanNotRecordedError,
    TraceDatabaseError,
)
from kantan_agents.support.arguments import checked_bool, checked_int, checked_number
from kantan_agents.support.log import get_logger
from kantan_agents.traces import registry
from kantan_agents.traces.capture.captured import ending, want_records
from kantan_agents.traces.database_url import Place, check_path, why_refused
from kantan_agents.traces.recorder import lifecycle, sigterm
from kantan_agents.traces.recorder.background import BackgroundRecorder
from kantan_agents.traces.recorder.database import Database
from kantan_agents.traces.recorder.redaction import Redact
from kantan_agents.traces.recorder.run_redaction import redact_run
from kantan_agents.traces.recorder.settled import settled_span
from kantan_agents.traces.recorder.snapshot import (
    snapshot_span,
    snapshot_trace,
    withheld_span,
    withheld_trace,
)
from kantan_agents.traces.replayed import REPLAYED
from kantan_agents.traces.schema import ForeignDatabaseError, check_owner

_log = get_logger("kantan_agents.tracing")

_OPEN_TRACES = 10_000
_MAX_LOGGED = 100


class SQLiteRecorder(BackgroundRecorder):
    """Records traces in a kantan-llm database without blocking the event loop.

    Call ``record_traces``, or pass a recorder to ``set_trace_processors`` of the SDK or of kantan-llm. The
    thread that ends a span only copies it; the recorder's thread writes many spans in one transaction.
    ``TraceStore`` and kantan-llm's ``SQLiteTracer`` can read the file at the same time.

    A recorder never fails a run. Errors are logged on ``kantan_agents.tracing`` with their code (E62 to E65)
    and counted in ``stats()``.

    Args:
        path: The database file. Its directory must exist. A missing file is created, readable only for its
            owner; an existing file retains its mode.
        max_queue: Number of spans and traces that may wait to be written.
        max_queue_bytes: Bytes of memory for spans and traces that wait or are being written. A span that
            alone takes more than a quarter of it is dropped.
        max_wait: Seconds that a thread which ends a span waits if the queue is full. Then, or immediately
            with 0, the oldest span is dropped. On an event loop, this wait blocks every task.
        flush_interval: Seconds during which spans are collected before they are written together. If the
            process is killed, these spans are lost. While the event loop is blocked, it may take half a
            second longer.
        redact: Receives each span and trace as a dict of JSON data (the result of ``export()``, and for
            ``response`` spans also input, output and model). Returns the data to record, or None to omit the
            content. Called in the thread that ends the span, before anything is stored. If it raises, the
            content is omitted.
        flush_on_sigterm: Whether to flush when a SIGTERM arrives, or a SIGINT with the system's default
            action. An existing handler is called as before, and each trace that ends afterward is written
            immediately. If the handler restores the default action and sends the signal again, as uvicorn
            does, everything is written first. A recorder that is created outside the main thread does not
            handle the signals.
        adopt: Whether to add the tables for traces to a file that is the database of another program.
        record_requests: Whether to store the complete record of each run with its trace: prompts,
            instructions, tools, settings and decisions of the rules, masked and redacted like spans. Without
            it, a run cannot be replayed, and ``TraceStore`` reports its record as missing.
        search_index: Whether a new file gets an index for searches. An existing file retains its index;
            without one, ``TraceStore.build_index`` adds it.

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
        place = self._checked_place(path)
        self._search_index = checked_bool("search_index", search_index)
        super().__init__(
            place,
            new_database=self._make_database,
            max_queue=checked_int("max_queue", max_queue, 1),
            max_queue_bytes=checked_int("max_queue_bytes", max_queue_bytes, 1),
            max_wait=checked_number("max_wait", max_wait),
            flush_interval=checked_number("flush_interval", flush_interval),
        )
        if redact is not None and not callable(redact):
            raise InvalidOptionError(option="redact", reason="must be a function")
        self._redact = redact
        self._records_requests = checked_bool("record_requests", record_requests)
        if self._records_requests:
            want_records(self)
        registry.register(self)
        lifecycle.watch_process()
        if flush_on_sigterm:
            sigterm.flush_on_sigterm()
        # Opens the file immediately: it can be read, and an unusable file is logged now.
        self._queue.put_marker()
        self._start_writer()

    def _checked_place(self, path: str | os.PathLike[str]) -> Place:
        checked = _checked_path(path)
        if not self._adopt:
            _check_file_owner(checked)
        return checked

    def _make_database(self) -> Database:
        return Database(self.path, adopt=self._adopt, search_index=self._search_index)

    def _reset(self) -> None:
        super()._reset()
        self._open: set[str] = set()
        self._logged: set[tuple[str, str]] = set()
        self._lock = threading.RLock()  # reentrant: a destructor may end a span while it is held

    def on_trace_start(self, trace: Any) -> None:
        """Record a trace."""
        self._put_trace(trace)

    def on_trace_end(self, trace: Any) -> None:
        """Record the trace if its start was missed; after a SIGTERM, have it written immediately."""
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

    def on_run_start(self, span: Any) -> None:
        """Record the span of an unfinished run without its end, until the end is recorded."""
        if self.records(span.trace_id):
            self._put_span(span)

    def on_span_end(self, span: Any) -> None:
        """Record a span, unless an earlier process recorded its call."""
        data = getattr(span, "span_data", None)
        if hasattr(data, REPLAYED):
            return
        settled = settled_span(span, data) if self._redact is None else None
        if settled is not None:
            self._put(settled)
            return
        self._put_span(span)
        if ending.get() is not None:
            self._put_run(span.span_id)

    def _put_span(self, span: Any) -> None:
        try:
            snapshot = snapshot_span(span, self._redact)
        except RedactionError as error:
            self._log_once(error, error.reason)
            snapshot = withheld_span(span)
        except Exception as error:  # noqa: BLE001 - recording must not fail a run
            self._discard(span.span_id, error, spans=1)
            return
        if snapshot is not None:
            self._put(snapshot)

    def _put_run(self, record_id: str) -> None:
        run = ending.get()
        if run is None or run.record_id != record_id or not self._records_requests:
            return
        try:
            self._put(run if self._redact is None else redact_run(run, self._redact))
        except RedactionError as error:
            self._log_once(error, error.reason)
        except Exception as error:  # noqa: BLE001 - recording must not fail a run
            self._discard(record_id, error, spans=0)

    @property
    def redacts(self) -> bool:
        """Whether it has a ``redact`` function."""
        return self._redact is not None

    def records(self, trace_id: str) -> bool:
        """Return whether it received the start of this open trace."""
        return trace_id in self._open

    def misses(self, trace_id: str) -> bool:
        """Return whether it missed the start of this open trace; False after a shutdown."""
        return trace_id not in self._open and self._writer.thread is not None

    def retire(self) -> None:
        """Do the same as ``shutdown``; on an event loop, do not wait for it."""
        if sigterm.may_wait([self]):
            self.shutdown()
        self._writer.retire()  # even if not everything could be written within the time

    def _put_trace(self, trace: Any) -> None:
        try:
            snapshot = snapshot_trace(trace, self._redact)
        except RedactionError as error:
            self._log_once(error, error.reason)
            snapshot = withheld_trace(trace.trace_id)
        except Exception as error:  # noqa: BLE001 - recording must not fail a run
            self._discard(trace.trace_id, error, spans=0)
            return
        if snapshot is not None:
            if len(self._open) >= _OPEN_TRACES:
                # These traces may never end. The others are put again at their end, which is harmless.
                self._open.clear()
            self._open.add(snapshot.id)
            self._put(snapshot)

    def _discard(self, span_id: str, error: Exception, *, spans: int) -> None:
        with self._lock:
            self._failed += spans
        reason = f"{type(error).__name__}: {error}"
        self._log_once(SpanNotRecordedError(span_id=span_id, reason=reason), reason)

    def _log_once(self, error: KantanAgentsError, reason: str) -> None:
        with self._lock:
            known = (error.code, reason)
            if known in self._logged or len(self._logged) >= _MAX_LOGGED:
                return
            self._logged.add(known)
        _log.error(str(error), code=error.code, **error.data)


def _checked_path(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path at which a database file can be created, or raise E60 or E75."""
    if not isinstance(path, (str, os.PathLike)) or not str(path):
        raise InvalidOptionError(option="path", reason="must be the path of a file")
    check_path(path)
    if str(path) == ":memory:":
        reason = "must be the path of a file; other connections cannot read a database in memory"
        raise InvalidOptionError(option="path", reason=reason)
    refused = why_refused(path)
    if refused is not None:
        raise TraceDatabaseError(path=str(path), reason=refused)
    try:
        absolute = Path(path).resolve()
        is_directory, has_directory = absolute.is_dir(), absolute.parent.is_dir()
    except (OSError, ValueError) as error:
        raise TraceDatabaseError(path=str(path), reason=str(error)) from error
    if is_directory:
        raise TraceDatabaseError(path=str(path), reason="it is a directory")
    if not has_directory:
        raise TraceDatabaseError(path=str(path), reason="its directory does not exist")
    return absolute


def _check_file_owner(path: Path) -> None:
    """Raise E60 if the file is the database of another program; change nothing.

    A file that cannot be read now is not an error: the writer checks each file again.
    """
    with suppress(sqlite3.Error, OSError):
        if not path.is_file() or not path.stat().st_size:
            return
        log = Path(f"{path}-wal")
        # Immutable creates no files next to it; "ro" leaves the log in place.
        mode = "mode=ro" if log.exists() and log.stat().st_size else "immutable=1"
        with closing(sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True)) as connection:
            try:
                check_owner(connection)
            except ForeignDatabaseError as error:
                hint = "; adopt=True adds the tables for traces to it" if error.can_adopt else ""
                raise TraceDatabaseError(path=str(path), reason=f"{error}{hint}") from error
