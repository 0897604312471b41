"""kantan-llm's own search, over a connection of ours."""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import Iterable
from datetime import datetime, timezone, tzinfo

from kantan_llm.tracing import SpanRecord, SQLiteTracer

from kantan_agents.tracing.store.records import StoredSpan


class KantanSearch(SQLiteTracer):
    """The search methods of kantan-llm's tracer, which would open the file itself, and for writing."""

    def __init__(self, connection: sqlite3.Connection, tz: tzinfo = timezone.utc) -> None:
        super().__init__()
        # There is no public way to hand a connection over.
        self._conn = connection
        self._supports_json1 = True
        self.default_tz = tz


def in_utc(spans: Iterable[SpanRecord]) -> list[StoredSpan]:
    """Return records whose times name their zone; those of ``KantanSearch`` are in UTC, but do not say so."""
    return [  # what is a SpanRecord at run time is a StoredSpan to type checkers
        dataclasses.replace(span, started_at=utc(span.started_at), ended_at=utc(span.ended_at))  # type: ignore[misc]
        for span in spans
    ]


def utc(time: datetime | None) -> datetime | None:
    """Return a time in UTC that says so."""
    if time is None or time.tzinfo is timezone.utc:
        return time
    return time.replace(tzinfo=timezone.utc) if time.tzinfo is None else time.astimezone(timezone.utc)
