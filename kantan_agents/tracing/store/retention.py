"""Which traces have to go: the rules, and what a pass through the file says of it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from uuid import RFC_4122, UUID

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.numbers import checked_int
from kantan_agents.tracing.ids import trace_id_of
from kantan_agents.tracing.store.stored_spans import time_of

_TIME_ORDERED = 7

# Of a span's row, what is not text of unlimited length; and of its entries in the indexes.
_ROW_BYTES = 400
_BYTES = " + ".join(
    f"COALESCE(LENGTH(CAST({column} AS BLOB)), 0)"
    for column in (
        "input",
        "output",
        "tool_calls_json",
        "structured_json",
        "rubric_json",
        "usage_json",
        "error_json",
        "raw_json",
    )
)


@attrs.frozen
class Retention:
    """How long traces are kept; a trace goes as soon as one of the limits says so.

    Attributes:
        older_than: Age, that of its newest span, from which a trace goes.
        keep: How many traces stay, the newest.
        max_size: How many bytes the database may have.
    """

    older_than: timedelta | None = None
    keep: int | None = None
    max_size: int | None = None

    def __attrs_post_init__(self) -> None:
        """Make sure that there is a limit, and that each is one; E75 otherwise."""
        if (self.older_than, self.keep, self.max_size) == (None, None, None):
            raise InvalidOptionError(
                option="older_than, keep, max_size", reason="at least one of them must be given"
            )
        if self.older_than is not None and (
            not isinstance(self.older_than, timedelta) or self.older_than < timedelta(0)
        ):
            reason = f"must be a timedelta that is not negative, not {self.older_than!r}"
            raise InvalidOptionError(option="older_than", reason=reason)
        for name, limit, least in (("keep", self.keep, 0), ("max_size", self.max_size, 1)):
            if limit is not None:
                checked_int(name, limit, least)


@attrs.frozen
class Space:
    """What a trace takes: how many spans, and about how many bytes."""

    spans: int
    size: int


@attrs.frozen
class Plan:
    """What a pass through the file found.

    Attributes:
        trace_ids: All traces, the oldest first.
        goes: Those that have to go, the oldest first.
        takes: What each takes; empty if nobody needs to know.
        in_use: How many bytes of the file are not free.
    """

    trace_ids: Sequence[str]
    goes: Sequence[str]
    takes: Mapping[str, Space]
    in_use: int

    @property
    def spans(self) -> int:
        """How many spans go, if that was found out."""
        return sum(self.takes[trace_id].spans for trace_id in self.goes)

    @property
    def size_after(self) -> int:
        """What the database will have in bytes, about."""
        total = sum(space.size for space in self.takes.values())
        gone = sum(self.takes[trace_id].size for trace_id in self.goes)
        return self.in_use - round(self.in_use * gone / total) if total else self.in_use


def plan(
    connection: sqlite3.Connection, retention: Retention, size: int, now: datetime, *, measure: bool = False
) -> Plan:
    """Return which traces have to go.

    Args:
        connection: From ``reading``.
        retention: The limits.
        size: Size of the database in bytes.
        now: The time, with its zone.
        measure: Whether to find out what the traces take in any case.
    """
    trace_ids = [row["id"] for row in connection.execute("SELECT id FROM traces ORDER BY rowid")]
    goes: set[str] = set()
    if retention.keep is not None:
        goes.update(trace_ids[: max(len(trace_ids) - retention.keep, 0)])
    if retention.older_than is not None:
        goes.update(_older(connection, trace_ids, _cutoff(now, retention.older_than)))
    too_large = retention.max_size is not None and size > retention.max_size
    takes = _spaces(connection, trace_ids) if measure or too_large else {}
    in_use = _bytes_in_use(connection)
    if retention.max_size is not None and too_large:
        goes.update(_beyond(trace_ids, goes, takes, retention.max_size / in_use))
    return Plan(trace_ids, [trace_id for trace_id in trace_ids if trace_id in goes], takes, in_use)


def time_in(trace_id: str) -> datetime | None:
    """Return when an id of ours was made; None for ids made by others, which do not tell."""
    try:
        uuid = UUID(trace_id[-32:])
    except ValueError:
        return None
    if trace_id != trace_id_of(uuid.hex) or uuid.variant != RFC_4122 or uuid.version != _TIME_ORDERED:
        return None
    return datetime.fromtimestamp(0, timezone.utc) + timedelta(milliseconds=uuid.int >> 80)


def _cutoff(now: datetime, older_than: timedelta) -> datetime:
    try:
        return now - older_than
    except OverflowError:
        return datetime.min.replace(tzinfo=timezone.utc)


def _older(connection: sqlite3.Connection, trace_ids: Sequence[str], cutoff: datetime) -> Iterator[str]:
    rows = connection.execute("SELECT trace_id, MAX(started_at) AS newest FROM spans GROUP BY trace_id")
    newest = {row["trace_id"]: row["newest"] for row in rows}
    for trace_id in trace_ids:
        age = time_of(newest.get(trace_id)) or time_in(trace_id)
        if age is not None and age < cutoff:
            yield trace_id


def _beyond(
    trace_ids: Sequence[str], gone: set[str], takes: Mapping[str, Space], share: float
) -> Iterator[str]:
    """Yield the oldest of the traces not ``gone``, until all that stay take no more than ``share`` of all."""
    allowed = share * sum(space.size for space in takes.values())
    left = sum(space.size for trace_id, space in takes.items() if trace_id not in gone)
    for trace_id in trace_ids:
        if left <= allowed:
            return
        if trace_id not in gone:
            left -= takes[trace_id].size
            yield trace_id


def _spaces(connection: sqlite3.Connection, trace_ids: Sequence[str]) -> dict[str, Space]:
    rows = connection.execute(
        f"SELECT trace_id, COUNT(*), SUM({_ROW_BYTES} + {_BYTES}) FROM spans GROUP BY trace_id"  # noqa: S608
    )
    found = {trace_id: (spans, size) for trace_id, spans, size in rows}
    spaces = ((trace_id, *found.get(trace_id, (0, 0))) for trace_id in trace_ids)
    return {trace_id: Space(spans, _ROW_BYTES + size) for trace_id, spans, size in spaces}


def _bytes_in_use(connection: sqlite3.Connection) -> int:
    pages, free, size = (
        connection.execute(f"PRAGMA main.{name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)
