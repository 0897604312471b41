"""Deletes traces and frees their space, in small transactions."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from functools import partial
from pathlib import Path

import attrs

from kantan_agents.errors import TraceDatabaseError
from kantan_agents.traces.figure_tables import CHANGED, FIGURES, has_figures
from kantan_agents.traces.record_tables import has_records, remove_unused
from kantan_agents.traces.schema import make_indexes, make_tables
from kantan_agents.traces.search_index import tables_by_trace
from kantan_agents.traces.store.build_index import keep_after_deletion
from kantan_agents.traces.store.connection import TRUNCATE_WAIT_MS, changing, empty_log, reading
from kantan_agents.traces.store.free_pages import INCREMENTAL, can_shrink, free_bytes, free_some
from kantan_agents.traces.store.records import PruneResult
from kantan_agents.traces.store.retention import PrunePlan, Retention, bytes_in_use, plan
from kantan_agents.traces.store.steps import Pace, TransactionSteps
from kantan_agents.traces.trace_file import size_of

Progress = Callable[[int, int], None]

# A trace is deleted with its last spans, in any number of transactions: an interrupted deletion leaves a
# trace that the same limits delete again.
_DELETE_SPANS = """DELETE FROM spans WHERE rowid IN (
SELECT rowid FROM spans WHERE trace_id = ? ORDER BY ingest_seq DESC LIMIT ?)"""


def prune_traces(
    path: Path, retention: Retention, progress: Progress | None, *, dry_run: bool, vacuum: bool = False
) -> PruneResult:
    """Delete the traces that exceed ``retention``, the oldest first, and shrink the file.

    After an error, deleted traces stay deleted.
    """
    before = size_of(path)
    if not dry_run:
        empty_log(path)
    planned = _plan(path, retention, dry_run=dry_run, vacuum=vacuum)
    if dry_run:
        changes = planned.shrinks and (planned.to_delete or planned.is_too_large)
        after = planned.size_after if changes else before
        free = 0 if planned.shrinks else max(before - planned.size_after, 0)
        return PruneResult(
            len(planned.to_delete), planned.spans, before, after, dry_run=True, free_bytes=free
        )
    traces = spans = 0
    with changing(path) as connection:
        pruning = _Pruning(path, connection, vacuum=vacuum)
        while True:
            spans += pruning.delete(planned.to_delete, progress or _ignore)
            traces += len(planned.to_delete)
            pruning.remove_unused()
            if traces or planned.shrinks:
                pruning.shrink()
            if retention.max_size is None or not planned.to_delete:
                break
            # The estimated sizes may be too low.
            limit = attrs.evolve(retention, older_than=None, keep=None)
            planned = _plan(path, limit, vacuum=vacuum)
        free = pruning.free_bytes()
    return PruneResult(traces, spans, before, size_of(path), dry_run=False, free_bytes=free)


def _plan(path: Path, retention: Retention, *, dry_run: bool = False, vacuum: bool = False) -> PrunePlan:
    with reading(path, keep_wal=dry_run) as connection:
        shrinks = vacuum or can_shrink(connection)
        size = size_of(path) if shrinks else bytes_in_use(connection)
        now = datetime.now(timezone.utc)
        return plan(connection, retention, size, now, measure=dry_run, shrinks=shrinks)


class _Pruning:
    def __init__(self, path: Path, connection: sqlite3.Connection, *, vacuum: bool) -> None:
        self._path = path
        self._connection = connection
        self._vacuum = vacuum
        self._steps = TransactionSteps(connection)
        self._deleting, self._freeing = Pace(), Pace()
        self._deleted = 0
        if connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal":
            # A commit then need not wait for the disk. A power cut may undo the last steps, but damages
            # nothing.
            connection.execute("PRAGMA synchronous = NORMAL")
        self._frees = not vacuum and can_shrink(connection)

    def delete(self, trace_ids: Sequence[str], progress: Progress) -> int:
        if not trace_ids:
            return 0
        # Without an index, each trace would need a full scan.
        make_tables(self._path)
        make_indexes(self._connection)
        figures = (*FIGURES, CHANGED) if has_figures(self._connection) else ()
        of_index = tables_by_trace(self._connection)
        tables = (*figures, *of_index)
        done = spans = 0
        while done < len(trace_ids):
            left = trace_ids[done:]
            deleted, of_spans = self._steps.run(partial(self._some, left, tables), self._deleting)
            self._deleted += deleted
            done += deleted
            spans += of_spans
            progress(done, len(trace_ids))
            if self._frees:
                self._free()  # early, because the disk may be full
        if of_index:
            with self._shrinking():
                keep_after_deletion(self._connection, self._steps)
        return spans

    def remove_unused(self) -> None:
        """Delete unused content items, even of runs that another program deleted."""
        if has_records(self._connection):
            while self._steps.run(partial(remove_unused, self._connection), self._deleting):
                continue

    def shrink(self) -> None:
        if self._vacuum:
            with self._shrinking():
                self._connection.execute(f"PRAGMA auto_vacuum = {INCREMENTAL}")
                self._connection.execute("VACUUM")
        while self._frees and self.free_bytes():
            self._free()
        # The new pages are in the log. Pages that other connections read stay there.
        self._connection.execute(f"PRAGMA busy_timeout = {TRUNCATE_WAIT_MS}")
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def free_bytes(self) -> int:
        return free_bytes(self._connection)

    def _some(self, trace_ids: Sequence[str], tables: Sequence[str], rows: int) -> tuple[int, int]:
        execute = self._connection.execute
        traces = spans = 0
        for trace_id in trace_ids:
            if rows <= 0 or self._steps.is_due():
                break
            deleted = execute(_DELETE_SPANS, (trace_id, rows)).rowcount
            spans += deleted
            if deleted == rows:  # there may be more
                break
            execute("DELETE FROM traces WHERE id = ?", (trace_id,))
            for table in tables:
                execute(f"DELETE FROM {table} WHERE trace_id = ?", (trace_id,))  # noqa: S608
            traces += 1
            rows -= deleted + 1
        return traces, spans

    def _free(self) -> None:
        with self._shrinking():
            free_some(self._connection, self._steps, self._freeing)

    @contextmanager
    def _shrinking(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            reason = f"{self._deleted} traces were deleted, but the file could not be made smaller: {error}"
            raise TraceDatabaseError(path=str(self._path), reason=reason) from error


def _ignore(_done: int, _total: int) -> None:
    pass
