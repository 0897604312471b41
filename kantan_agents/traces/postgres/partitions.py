"""The partitions of ``spans``, one for each week: old spans are dropped, not deleted."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from datetime import date, timedelta
from typing import Final

from kantan_agents.traces.postgres.connection import ServerConnection, server_of
from kantan_agents.traces.postgres.server_error import ServerError

UNDATED: Final = "kantan_agents_spans_undated"
_NAMED: Final = "kantan_agents_spans_w"

NO_WEEK: Final = date(1, 1, 1)
_FIRST: Final = date(2020, 1, 6)
# Wrong clocks: each later week would become a permanent partition.
_AHEAD: Final = timedelta(weeks=5)


def week_of(started_at: str | None, today: date) -> date:
    """Return the Monday of a start; ``NO_WEEK`` for an implausible one."""
    try:
        day = date.fromisoformat((started_at or "")[:10])
    except ValueError:
        return NO_WEEK
    if not _FIRST <= day <= today + _AHEAD:
        return NO_WEEK
    return day - timedelta(days=day.weekday())


def name_of(week: date) -> str:
    """Return the name of the partition of a week."""
    return f"{_NAMED}{week:%Y%m%d}"


def weeks_in(connection: ServerConnection) -> dict[date, str]:
    """Return the partitions by week, the oldest first, without undated spans."""
    query = """SELECT c.relname FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'spans'::regclass ORDER BY c.relname"""
    names = [name for (name,) in connection.native(query)]
    found: dict[date, str] = {}
    for name in names:
        with suppress(ValueError):
            text = name.removeprefix(_NAMED)
            found[date(int(text[:4]), int(text[4:6]), int(text[6:8]))] = name
    return found


def bytes_of_tables(connection: sqlite3.Connection) -> int:
    """Return the bytes of all tables and indexes."""
    query = """SELECT COALESCE(SUM(pg_total_relation_size(c.oid)), 0) FROM pg_catalog.pg_class c
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
    AND (c.relname = 'traces' OR starts_with(c.relname, 'kantan_agents_'))"""
    (size,) = server_of(connection).native(query).fetchone() or (0,)
    return int(size)


def create_partitions(connection: ServerConnection, weeks: Iterable[date]) -> None:
    """Create missing partitions, outside a transaction; without one, spans are undated."""
    for week in sorted(set(weeks) - {NO_WEEK}):
        statement = (
            f"CREATE TABLE IF NOT EXISTS {name_of(week)} PARTITION OF spans "
            f"FOR VALUES FROM ('{week}') TO ('{week + timedelta(days=7)}')"
        )
        try:
            connection.native(statement)
        except ServerError as error:
            # 23514: the undated spans have some of this week. 42P17: another process was faster.
            if error.sqlstate not in ("23514", "42P17", "42P07", "23505"):
                raise
