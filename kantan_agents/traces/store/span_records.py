"""Reads kantan-llm's records from an open connection."""

from __future__ import annotations

import dataclasses
import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone, tzinfo
from typing import Any

from kantan_llm.tracing import SpanRecord, SQLiteTracer

from kantan_agents.traces.metadata import RUN_SPAN
from kantan_agents.traces.store.records import StoredSpan

LIGHT_COLUMNS = {
    **{
        name: name
        for name in (
            "id",
            "trace_id",
            "parent_id",
            "span_type",
            "name",
            "started_at",
            "ended_at",
            "ingest_seq",
            "rubric_json",
            "usage_json",
            "error_json",
        )
    },
    "raw_json": f"CASE WHEN span_type = 'custom' AND name = '{RUN_SPAN}' THEN raw_json END",
}

_COLUMNS = ", ".join(f"{column} AS {name}" for name, column in LIGHT_COLUMNS.items())


class KantanSearch(SQLiteTracer):
    """kantan-llm's search over an open connection."""

    def __init__(self, connection: sqlite3.Connection, tz: tzinfo = timezone.utc) -> None:
        super().__init__()
        # The tracer has no public way to set it.
        self._conn = connection
        self._supports_json1 = True
        self.default_tz = tz


def light_spans(connection: sqlite3.Connection, trace_id: str, *, texts: bool) -> list[SpanRecord]:
    """Return the spans of a trace without slow columns; only ``agent_run`` spans have ``raw``."""
    columns = f"{_COLUMNS}, {'input, output' if texts else 'NULL, NULL'}"
    rows = connection.execute(
        f"SELECT {columns} FROM spans WHERE trace_id = ? ORDER BY ingest_seq",  # noqa: S608
        (trace_id,),
    )
    return [light_span(row) for row in rows]


def light_spans_of(connection: sqlite3.Connection, trace_ids: Sequence[str]) -> dict[str, list[SpanRecord]]:
    """Return such spans by trace id, with input and output."""
    rows = connection.execute(
        f"SELECT {_COLUMNS}, input, output FROM spans "  # noqa: S608
        f"WHERE trace_id IN ({','.join('?' * len(trace_ids))}) ORDER BY ingest_seq",
        trace_ids,
    )
    found: dict[str, list[SpanRecord]] = {}
    for row in rows:
        found.setdefault(row["trace_id"], []).append(light_span(row))
    return found


def in_utc(spans: Iterable[SpanRecord]) -> list[StoredSpan]:
    """Make naive UTC times aware."""
    return [  # type checkers know only StoredSpan
        dataclasses.replace(span, started_at=utc(span.started_at), ended_at=utc(span.ended_at))  # type: ignore[misc]
        for span in spans
    ]


def utc(time: datetime | None) -> datetime | None:
    """Return an aware time in UTC; naive is UTC."""
    if time is None or time.tzinfo is timezone.utc:
        return time
    return time.replace(tzinfo=timezone.utc) if time.tzinfo is None else time.astimezone(timezone.utc)


def parse_time(text: str | None) -> datetime | None:
    """Return a stored time in UTC; None if missing or invalid."""
    try:
        time = datetime.fromisoformat(text) if text else None
        return time if time is None or time.tzinfo is timezone.utc else utc(time)
    except (ValueError, TypeError, OverflowError):
        return None


def parse_json(text: str | None) -> Any:
    """Parse JSON; None if missing, invalid or too deep."""
    try:
        return json.loads(text) if text and text != "null" else None
    except (ValueError, TypeError, RecursionError):
        return None


def mapping_of(value: Any) -> Mapping[str, Any]:
    """Return a dict, parsed if it is JSON; otherwise an empty one."""
    if isinstance(value, str):
        value = parse_json(value)
    return value if isinstance(value, dict) else {}


def light_span(values: Sequence[Any]) -> SpanRecord:
    """Return a span from these values."""
    span_id, trace_id, parent_id, span_type, name, started, ended, number, *contents = values
    rubric, usage, error, raw, input_text, output_text = contents
    return SpanRecord(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=parent_id,
        span_type=span_type,
        name=name,
        started_at=parse_time(started),
        ended_at=parse_time(ended),
        ingest_seq=int(number or 0),
        input=input_text,
        output=output_text,
        output_kind=None,
        tool_calls=None,
        structured=None,
        # Most are missing, and the call is slower than the test.
        rubric=rubric and parse_json(rubric),
        usage=usage and parse_json(usage),
        error=error and parse_json(error),
        raw=raw and parse_json(raw),
    )
