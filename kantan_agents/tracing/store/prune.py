"""Deletes traces in small transactions and shrinks the file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path

import attrs

from kantan_agents.errors import TraceDatabaseError
from kantan_agents.tracing.schema import make_indexes, make_tables
from kantan_agents.tracing.store.connection import changing, reading, size_of
from kantan_agents.tracing.store.records import PruneResult
from kantan_agents.tracing.store.retention import Plan, Retention, plan

Progress = Callable[[int, int], None]

# Traces deleted in one transaction. Other writers wait for at most one transaction.
_TRACES_AT_ONCE = 200


def prune_traces(
    path: Path, retention: Retention, progress: Progress | None, *, dry_run: bool
) -> PruneResult:
    """Delete the traces that ``retention`` does not keep, the oldest first, and shrink the file.

    Args:
        path: The file.
        retention: The limits.
        progress: Called after each transaction with the number of traces deleted so far and in total.
        dry_run: Whether to report only and change nothing.

    Raises:
        TraceDatabaseError: E60, the database cannot be read or changed. Deleted traces stay deleted.
    """
    before = size_of(path)
    planned = _plan(path, retention, before, dry_run=dry_run)
    if dry_run:
        changes = planned.to_delete or _too_large(retention, before)
        after = planned.size_after if changes else before
        return PruneResult(len(planned.to_delete), planned.spans, before, after, dry_run=True)
    traces = spans = 0
    size = before
    while planned.to_delete or _too_large(retention, size):
        spans += _delete(path, planned.to_delete, progress or _ignore)
        traces += len(planned.to_delete)
        _shrink(path, traces)
        size = size_of(path)
        if not _too_large(retention, size) or len(planned.to_delete) == len(planned.trace_ids):
            break
        # The estimated size of a trace was too low.
        planned = _plan(path, attrs.evolve(retention, older_than=None, keep=None), size)
        if not planned.to_delete:
            break
    return PruneResult(traces, spans, before, size, dry_run=False)


def _plan(path: Path, retention: Retention, size: int, *, dry_run: bool = False) -> Plan:
    with reading(path, keep_wal=dry_run) as connection:
        return plan(connection, retention, size, datetime.now(timezone.utc), measure=dry_run)


def _too_large(retention: Retention, size: int) -> bool:
    return retention.max_size is not None and size > retention.max_size


def _delete(path: Path, trace_ids: Sequence[str], progress: Progress) -> int:
    """Delete traces with their spans; return the number of spans."""
    if not trace_ids:
        return 0
    spans = 0
    with changing(path) as connection:
        # Without an index, each trace would need a scan of all spans.
        make_tables(path)
        make_indexes(connection)
        for start in range(0, len(trace_ids), _TRACES_AT_ONCE):
            began = time.monotonic()
            batch = [(trace_id,) for trace_id in trace_ids[start : start + _TRACES_AT_ONCE]]
            spans += _delete_at_once(connection, batch)
            progress(start + len(batch), len(trace_ids))
            # Other writers only check now and then whether the file is unlocked.
            time.sleep(min((time.monotonic() - began) / 2, 0.1))
    return spans


def _delete_at_once(connection: sqlite3.Connection, batch: Sequence[tuple[str]]) -> int:
    connection.execute("BEGIN IMMEDIATE")
    try:
        deleted = connection.executemany("DELETE FROM spans WHERE trace_id = ?", batch).rowcount
        connection.executemany("DELETE FROM traces WHERE id = ?", batch)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk has rolled it back already
            connection.execute("ROLLBACK")
        raise
    return deleted


def _shrink(path: Path, deleted: int) -> None:
    try:
        with changing(path) as connection:
            connection.execute("VACUUM")
            # The new pages are in the write-ahead log now. Pages that other connections read stay there.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except TraceDatabaseError as error:
        reason = f"{deleted} traces were deleted, but the file could not be made smaller: {error.reason}"
        raise TraceDatabaseError(path=str(path), reason=reason) from error


def _ignore(_done: int, _total: int) -> None:
    pass
