"""Deletes traces in Postgres: drops whole weeks, deletes the rest in small transactions."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Final

from kantan_agents.errors import NotInPostgresError
from kantan_agents.traces.database_url import Place
from kantan_agents.traces.figure_tables import CHANGED, FIGURES
from kantan_agents.traces.postgres.connection import ServerConnection, server_of
from kantan_agents.traces.postgres.partitions import bytes_of_tables, weeks_in
from kantan_agents.traces.postgres.server_error import ServerError
from kantan_agents.traces.record_tables import remove_unused
from kantan_agents.traces.store.connection import changing, reading, transaction
from kantan_agents.traces.store.records import PruneResult
from kantan_agents.traces.store.retention import PrunePlan, Retention, plan

Progress = Callable[[int, int], None]

_AT_ONCE: Final = 200
"""Traces of one transaction, for which other writers wait."""
_UNUSED_AT_ONCE: Final = 1_000
_NOT_PERMITTED: Final = "42501"


def prune_server(
    path: Place, retention: Retention, progress: Progress | None, *, dry_run: bool, vacuum: bool
) -> PruneResult:
    """Do the same as ``prune_traces``; raise E141 for a size limit or ``vacuum``."""
    if retention.max_size is not None:
        reason = "the server decides when space is free; limit the age or the number of traces"
        raise NotInPostgresError(what="a limit for the size", reason=reason)
    if vacuum:
        reason = "the server does it by itself; VACUUM FULL writes a table anew"
        raise NotInPostgresError(what="writing the database anew", reason=reason)
    with reading(path) as connection:
        now = datetime.now(timezone.utc)
        before = bytes_of_tables(connection)
        planned = plan(connection, retention, 0, now, used_bytes=before, measure=True, shrinks=False)
    if dry_run:
        deleted = len(planned.to_delete)
        return PruneResult(deleted, planned.spans, before, planned.size_after, dry_run=True)
    with changing(path, is_long=True) as connection:
        spans = _delete(connection, planned, progress)
        while _remove_unused(connection):
            continue
        after = bytes_of_tables(connection)
    return PruneResult(len(planned.to_delete), spans, before, after, dry_run=False)


def _delete(connection: sqlite3.Connection, planned: PrunePlan, progress: Progress | None) -> int:
    doomed = planned.to_delete
    if not doomed:
        return 0
    server = server_of(connection)
    spans = _drop_weeks(connection, server, doomed)
    for start in range(0, len(doomed), _AT_ONCE):
        chunk = doomed[start : start + _AT_ONCE]
        marks = ",".join("?" * len(chunk))
        with transaction(connection):
            spans += connection.execute(f"DELETE FROM spans WHERE trace_id IN ({marks})", chunk).rowcount  # noqa: S608
            connection.execute(f"DELETE FROM traces WHERE id IN ({marks})", chunk)  # noqa: S608
            for table in (*FIGURES, CHANGED):
                connection.execute(f"DELETE FROM {table} WHERE trace_id IN ({marks})", chunk)  # noqa: S608
        if progress is not None:
            progress(start + len(chunk), len(doomed))
    return spans


def _drop_weeks(connection: sqlite3.Connection, server: ServerConnection, doomed: Sequence[str]) -> int:
    spans = 0
    server.native("CREATE TEMP TABLE IF NOT EXISTS kantan_agents_doomed(id text PRIMARY KEY)")
    server.native("DELETE FROM kantan_agents_doomed")
    with (
        server.errors(),
        server.raw.cursor() as cursor,
        cursor.copy("COPY kantan_agents_doomed FROM STDIN") as copy,
    ):
        for trace_id in doomed:
            copy.write_row((trace_id,))
    try:
        for name in weeks_in(server).values():
            spans += _drop_week(connection, name)
    except ServerError as error:
        if error.sqlstate != _NOT_PERMITTED:  # only the owner may drop them; the rows are deleted then
            raise
    return spans


def _drop_week(connection: sqlite3.Connection, name: str) -> int:
    query = f"""SELECT 1 FROM {name} s WHERE NOT EXISTS (
    SELECT 1 FROM kantan_agents_doomed d WHERE d.id = s.trace_id) LIMIT 1"""  # noqa: S608
    with transaction(connection):
        if connection.execute(query).fetchone() is not None:
            return 0
        spans = int(connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0])  # noqa: S608
        connection.execute(f"DROP TABLE {name}")
        return spans


def _remove_unused(connection: sqlite3.Connection) -> int:
    with transaction(connection):
        return remove_unused(connection, _UNUSED_AT_ONCE)
