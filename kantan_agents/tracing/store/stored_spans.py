"""The spans of a trace without what takes long to read, for whoever goes through many traces."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from kantan_llm.tracing import SpanRecord

from kantan_agents.tracing.metadata import RUN_SPAN
from kantan_agents.tracing.store.kantan_search import utc

_COLUMNS = f"""id, trace_id, parent_id, span_type, name, started_at, ended_at, ingest_seq,
rubric_json, usage_json, error_json,
CASE WHEN span_type = 'custom' AND name = '{RUN_SPAN}' THEN raw_json END AS raw_json"""


def stored_spans(connection: sqlite3.Connection, trace_id: str, *, texts: bool) -> list[SpanRecord]:
    """Return what kantan-llm returns as the spans of a trace, with less in them; times say they are in UTC.

    There is no ``raw`` on any but ``agent_run`` spans, and nothing that was made of the output.

    Args:
        connection: From ``reading``.
        trace_id: Id of the trace.
        texts: Whether to read input and output.
    """
    columns = f"{_COLUMNS}, {'input, output' if texts else 'NULL AS input, NULL AS output'}"
    rows = connection.execute(
        f"SELECT {columns} FROM spans WHERE trace_id = ? ORDER BY ingest_seq",  # noqa: S608
        (trace_id,),
    )
    return [_span(row) for row in rows]


def time_of(text: str | None) -> datetime | None:
    """Return a stored time, in UTC; None if it is missing or cannot be read."""
    try:
        return utc(datetime.fromisoformat(text)) if text else None
    except (ValueError, TypeError, OverflowError):
        return None


def value_of(text: str | None) -> Any:
    """Return the value of JSON text; None if it is missing or cannot be read."""
    try:
        return json.loads(text) if text and text != "null" else None
    except (ValueError, TypeError):
        return None


def mapping_of(value: Any) -> Mapping[str, Any]:
    """Return an object, or the one that JSON text is; an empty one for anything else."""
    if isinstance(value, str):
        value = value_of(value)
    return value if isinstance(value, dict) else {}


def _span(row: sqlite3.Row) -> SpanRecord:
    return SpanRecord(
        trace_id=row["trace_id"],
        span_id=row["id"],
        parent_id=row["parent_id"],
        span_type=row["span_type"],
        name=row["name"],
        started_at=time_of(row["started_at"]),
        ended_at=time_of(row["ended_at"]),
        ingest_seq=row["ingest_seq"] or 0,
        input=row["input"],
        output=row["output"],
        output_kind=None,
        tool_calls=None,
        structured=None,
        rubric=value_of(row["rubric_json"]),
        usage=value_of(row["usage_json"]),
        error=value_of(row["error_json"]),
        raw=value_of(row["raw_json"]),
    )
