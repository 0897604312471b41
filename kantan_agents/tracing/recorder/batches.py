"""A batch of spans, from the queue into the file, and what becomes of what cannot be stored."""

from __future__ import annotations

import math
import sqlite3
import time
from pathlib import Path
from typing import Any

from kantan_agents.errors import KantanAgentsError, SpanNotRecordedError, TracesNotWrittenError
from kantan_agents.support.log import get_logger
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

LOCKED_SECONDS = 2.0

# After so many rows the event loop gets a chance to run, which it would otherwise have after 5 ms.
_ROWS_IN_A_ROW = 20


class Batches:
    """Writes what a queue has handed out, one batch after another.

    Attributes:
        written: Spans written so far.
        failed: Spans given up so far.
    """

    def __init__(self, path: Path, queue: SpanQueue) -> None:
        self.written = 0
        self.failed = 0
        self._path = path
        self._queue = queue
        self._database = Database(path)
        self._trouble: str | None = None
        self._failing_since = math.inf

    def close(self) -> None:
        """Close the connection; the next batch opens one anew."""
        self._database.close()

    def abandon(self) -> sqlite3.Connection | None:
        """Return the connection, which a forked child has no right to."""
        return self._database.abandon()

    def write(self) -> bool:
        """Write what is in hand; return False, with all of it back in the queue, if it has to wait."""
        rows = self._rows()
        try:
            try:
                self._write(rows)
            except Exception as error:
                if is_the_files_fault(error) or not rows:  # without any, none of them is to blame
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
        self._failing_since = math.inf
        if self._trouble is not None:
            self._trouble = None
            _log.info("traces are written again", path=str(self._path), written=self.written)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _tell(error: KantanAgentsError) -> None:
    _log.error(str(error), code=error.code, **error.data)
