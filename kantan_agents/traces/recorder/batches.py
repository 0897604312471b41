"""Writes batches from the queue to the file."""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Iterable
from contextlib import suppress
from sys import getsizeof
from typing import Any

from kantan_agents.errors import KantanAgentsError, SpanNotRecordedError, TracesNotWrittenError
from kantan_agents.support.log import get_logger
from kantan_agents.support.storable_text import whole_text
from kantan_agents.traces.capture.captured import CapturedRun
from kantan_agents.traces.database_url import Place
from kantan_agents.traces.recorder.catch_up import FigureKeeper, IndexKeeper
from kantan_agents.traces.recorder.database import Database
from kantan_agents.traces.recorder.file_errors import is_file_error, is_locked, may_be_file_error
from kantan_agents.traces.recorder.masking import is_length_limited
from kantan_agents.traces.recorder.rows import SpanRow, span_row, trace_row
from kantan_agents.traces.recorder.run_rows import RunRow, RunRows
from kantan_agents.traces.recorder.settled import SettledSpan
from kantan_agents.traces.recorder.snapshot import SpanSnapshot, TraceSnapshot, snapshot_settled
from kantan_agents.traces.recorder.span_queue import SPANS, Item, SpanQueue
from kantan_agents.traces.recorder.waking import FlushMarker

_log = get_logger("kantan_agents.tracing")

LOCKED_SECONDS = 2.0

# The writer then releases the GIL, for which the event loop would wait up to 5 ms.
_ROWS_PER_SLICE = 20

# With so many items, the writer only writes.
_BUSY = 500

# Smaller spans are not measured.
_SMALL = 4_096

_LARGEST_INTEGER = 2**63 - 1


class BatchWriter:
    """Writes the in-flight items of a queue."""

    def __init__(self, path: Place, database: Database, queue: SpanQueue) -> None:
        self.written = 0
        self.failed = 0
        self._path = path
        self._queue = queue
        self._database = database
        self._figures = FigureKeeper(path)
        self._run_rows = RunRows()
        self._index = IndexKeeper(path)
        self._logged_reason: str | None = None
        self._logged_replaced = 0
        self._failing_since = math.inf

    @property
    def is_failing(self) -> bool:
        """Whether the file caused the last attempt to fail."""
        return self._failing_since < math.inf

    @property
    def replaced(self) -> int:
        """How often the open file was replaced, moved, truncated or deleted."""
        return self._database.replaced

    def is_file_replaced(self) -> bool:
        """Return whether the file was replaced; for any thread."""
        return self._database.is_replaced()

    def leave_replaced_file(self) -> None:
        """Close the file if it was replaced."""
        with suppress(sqlite3.Error, OSError):  # the next write tries again, and logs
            self._database.close_replaced()
        self._log_replaced()

    def close(self) -> None:
        """Close the connection until the next batch."""
        self._database.close()

    def abandon(self) -> sqlite3.Connection | None:
        """Return the connection unclosed, in a forked child."""
        return self._database.abandon()

    def write(self) -> bool:
        """Write the in-flight items; if that fails, put them back and return False."""
        try:
            # First: no rows are needed while the file cannot be opened.
            self._database.open()
            rows = self._rows()
            try:
                self._write(rows)
            except Exception as error:
                if is_file_error(error) or not rows:  # without rows, no row can be the cause
                    raise
                self._write_parts(rows)
        except Exception as error:  # noqa: BLE001 - an error of the file, see above
            self._on_failure(error)
            return False
        markers = [item for item in self._queue.in_flight if isinstance(item, FlushMarker)]
        self._queue.clear_in_flight()
        self._on_success()
        for marker in markers:
            marker.resolve(written=True)
        if len(self._queue) < _BUSY and not self._queue.markers():  # a flush waits for nothing else
            self.catch_up()
        return True

    def catch_up(self) -> bool:
        """Store statistics and index entries; return whether more wait."""
        return self._figures.keep(self._database) or self._index.keep(self._database)

    def _rows(self) -> list[tuple[Item, Any]]:
        limited = is_length_limited()
        size = 0
        rows: list[tuple[Item, Any]] = []
        for number, item in enumerate([*self._queue.in_flight]):
            if number % _ROWS_PER_SLICE == _ROWS_PER_SLICE - 1:
                time.sleep(0)
            # A row is built from the decoded item.
            self._queue.reserve_rows(size + item.size)
            try:
                if isinstance(item, TraceSnapshot):
                    rows.append((item, trace_row(item)))
                elif isinstance(item, (SpanSnapshot, SettledSpan)):
                    snapshot = snapshot_settled(item) if isinstance(item, SettledSpan) else item
                    row = span_row(snapshot, limited=limited)
                    rows.append((item, row))
                    size += _size_of(row, snapshot)
                elif isinstance(item, CapturedRun):
                    rows.append((item, self._run_rows.row(item, limited=limited)))
                    size += item.size
            except Exception as error:  # noqa: BLE001 - one span must not cost all others
                self._discard(item, error)
        return rows

    def _write(self, rows: list[tuple[Item, Any]]) -> None:
        traces = [row for item, row in rows if isinstance(item, TraceSnapshot)]
        spans = [row for item, row in rows if isinstance(item, SPANS)]
        runs = [row for item, row in rows if isinstance(item, CapturedRun)]
        self._database.write(traces, spans, runs)
        with self._queue.modifying():
            self.written += len(spans)
            self._queue.remove_in_flight(item for item, _ in rows)

    def _write_parts(self, rows: list[tuple[Item, Any]]) -> None:
        """Write repaired rows; bisect those that the database rejects."""
        refused: list[tuple[Item, Exception]] = []
        parts = [[(item, _repaired(row)) for item, row in rows]]
        while parts:
            part = parts.pop()
            try:
                self._write(part)
            except Exception as error:
                if is_file_error(error):
                    raise
                if len(part) > 1:
                    half = len(part) // 2
                    parts += [part[half:], part[:half]]
                else:  # its frames hold the rows
                    refused.append((part[0][0], error.with_traceback(None)))
        if len(refused) == len(rows) and all(may_be_file_error(reason) for _, reason in refused):
            raise refused[0][1]
        for item, reason in refused:
            self._discard(item, reason)

    def _discard(self, item: Item, error: Exception) -> None:
        with self._queue.modifying():
            self.failed += isinstance(item, SPANS)
            self._queue.remove_in_flight([item])
        span_id = "" if isinstance(item, FlushMarker) else item.id
        _log_error(SpanNotRecordedError(span_id=span_id, reason=_reason(error)))

    def _on_failure(self, error: Exception) -> None:
        self._database.close()
        self._queue.put_back()
        reason = _reason(error)
        now = time.monotonic()
        self._failing_since = min(self._failing_since, now)
        # A short lock is normal: another process writes now and then.
        is_serious = not is_locked(error) or now - self._failing_since >= LOCKED_SECONDS
        if is_serious and reason != self._logged_reason:
            queued = sum(isinstance(item, SPANS) for item in self._queue.unwritten())
            _log_error(TracesNotWrittenError(path=str(self._path), reason=reason, queued=queued))
            self._logged_reason = reason
        if not is_locked(error):
            # Flushes should not wait for, say, disk space.
            for marker in self._queue.markers():
                marker.resolve(written=False)

    def _on_success(self) -> None:
        self._failing_since = math.inf
        if self._logged_reason is None:
            self._log_replaced()
        else:
            self._logged_reason = None
            self._logged_replaced = self.replaced
            _log.info("traces are written again", path=str(self._path), written=self.written)

    def _log_replaced(self) -> None:
        if self._logged_replaced != self.replaced:
            self._logged_replaced = self.replaced
            _log.warning("the trace database was moved, replaced, truncated or deleted", path=str(self._path))


def _size_of(row: SpanRow, item: SpanSnapshot) -> int:
    """Count bytes beyond the snapshot, with which a row may share strings."""
    if item.size < _SMALL:
        return item.size
    return sum(getsizeof(value) for value in row.values if value is not item.packed)


def _repaired(row: Any) -> Any:
    if isinstance(row, SpanRow):
        return SpanRow(_storable_values(row.values), _storable_usage(row.usage))
    return row if isinstance(row, RunRow) else _storable_values(row)


def _storable_values(values: Iterable[Any]) -> tuple[Any, ...]:
    """Convert values that SQLite rejects: U+FFFD is better than no span."""
    return tuple(_storable(value) for value in values)


def _storable_usage(usage: dict[str, Any] | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    repaired: dict[str, Any] = json.loads(_storable(json.dumps(usage, ensure_ascii=False, default=str)))
    return repaired


def _storable(value: Any) -> Any:
    if value is None or isinstance(value, (float, bytes)):
        return value
    if isinstance(value, int) and abs(value) <= _LARGEST_INTEGER:
        return value
    return whole_text(str(value))


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _log_error(error: KantanAgentsError) -> None:
    _log.error(str(error), code=error.code, **error.data)
