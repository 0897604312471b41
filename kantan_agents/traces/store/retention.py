"""Decides which traces to delete."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from uuid import RFC_4122, UUID

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.arguments import checked_int
from kantan_agents.traces.ids import trace_id_of
from kantan_agents.traces.store.space import Space, newest_spans, spaces
from kantan_agents.traces.store.span_records import parse_time

_TIME_ORDERED = 7


@attrs.frozen
class Retention:
    """The limits of a file, of which ``max_size`` is in bytes; a trace is deleted if it exceeds any."""

    older_than: timedelta | None = None
    keep: int | None = None
    max_size: int | None = None

    def __attrs_post_init__(self) -> None:
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
class PrunePlan:
    """The traces of a file and which of them to delete, the oldest first."""

    trace_ids: Sequence[str]
    to_delete: Sequence[str]
    sizes: Mapping[str, Space]
    used_bytes: int
    is_too_large: bool
    shrinks: bool

    @property
    def spans(self) -> int:
        """Number of spans to delete, if the sizes are known."""
        return sum(self.sizes[trace_id].spans for trace_id in self.to_delete)

    @property
    def size_after(self) -> int:
        """Approximate bytes of the database after the deletion."""
        total = sum(space.size for space in self.sizes.values())
        deleted = sum(self.sizes[trace_id].size for trace_id in self.to_delete)
        return self.used_bytes - round(self.used_bytes * deleted / total) if total else self.used_bytes


def plan(
    connection: sqlite3.Connection,
    retention: Retention,
    size: int,
    now: datetime,
    *,
    used_bytes: int | None = None,
    measure: bool = False,
    shrinks: bool = True,
) -> PrunePlan:
    """Return the plan for a file of ``size`` bytes; ``shrinks``: deletion makes the file smaller."""
    connection.execute("BEGIN")  # one state for the following statements
    trace_ids = [row["id"] for row in connection.execute("SELECT id FROM traces ORDER BY rowid")]
    to_delete: set[str] = set()
    if retention.keep is not None:
        to_delete.update(trace_ids[: max(len(trace_ids) - retention.keep, 0)])
    if retention.older_than is not None:
        to_delete.update(_older(trace_ids, newest_spans(connection), _cutoff(now, retention.older_than)))
    too_large = retention.max_size is not None and size > retention.max_size
    sizes = spaces(connection, trace_ids) if measure or too_large else {}
    used_bytes = bytes_in_use(connection) if used_bytes is None else used_bytes
    if retention.max_size is not None and too_large:
        to_delete.update(_exceeding_share(trace_ids, to_delete, sizes, retention.max_size / used_bytes))
    ordered = [trace_id for trace_id in trace_ids if trace_id in to_delete]
    return PrunePlan(trace_ids, ordered, sizes, used_bytes, is_too_large=too_large, shrinks=shrinks)


def time_in(trace_id: str) -> datetime | None:
    """Return the creation time in an id, if it is this library's."""
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


def _older(trace_ids: Sequence[str], newest: Mapping[str, str | None], cutoff: datetime) -> Iterator[str]:
    for trace_id in trace_ids:
        time = parse_time(newest.get(trace_id)) or time_in(trace_id)
        if time is not None and time < cutoff:
            yield trace_id


def _exceeding_share(
    trace_ids: Sequence[str], deleted: set[str], sizes: Mapping[str, Space], share: float
) -> Iterator[str]:
    allowed = share * sum(space.size for space in sizes.values())
    left = sum(space.size for trace_id, space in sizes.items() if trace_id not in deleted)
    for trace_id in trace_ids:
        if left <= allowed:
            return
        if trace_id not in deleted:
            left -= sizes[trace_id].size
            yield trace_id


def bytes_in_use(connection: sqlite3.Connection) -> int:
    """Return the file's bytes that are not free."""
    pages, free, size = (
        connection.execute(f"PRAGMA main.{name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)
