"""Converts traces to flat dicts."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator
from datetime import datetime, tzinfo
from typing import Any

import attrs
from kantan_llm.tracing import SpanRecord

from kantan_agents.traces.capture.writing import data_of
from kantan_agents.traces.database_url import Place
from kantan_agents.traces.metadata import finite
from kantan_agents.traces.store.candidates import NEWEST
from kantan_agents.traces.store.connection import reading
from kantan_agents.traces.store.engine import engine_of
from kantan_agents.traces.store.filters import Filters
from kantan_agents.traces.store.records import StoredTrace
from kantan_agents.traces.store.summarize import read_trace

_PAGE = 100
_FROM_METADATA = ("agent_name", "prompt_name", "prompt_version", "prompt_id", "agent_run_id")


def export_pages(
    path: Place, filters: Filters, limit: int | None, tz: tzinfo
) -> Generator[list[dict[str, Any]], None, None]:
    """Yield pages of traces; in between, the file is open but not locked.

    Each page may be requested from another thread. Traces deleted in the meantime are omitted.
    """
    with reading(path, any_thread=True) as connection:
        trace_ids = engine_of(path).find(connection, filters, limit, tz, NEWEST)
        for start in range(0, len(trace_ids), _PAGE):
            traces = [read_trace(connection, trace_id) for trace_id in trace_ids[start : start + _PAGE]]
            yield [as_plain_data(trace) for trace in traces if trace is not None]


def as_plain_data(trace: StoredTrace) -> dict[str, Any]:
    """Return a trace as JSON data."""
    summary = trace.summary
    plain: dict[str, Any] = attrs.asdict(summary, recurse=False)
    plain["metadata"] = dict(summary.metadata)
    plain["rubric"] = summary.rubric and dict(summary.rubric)
    plain |= {"duration": summary.duration, "status": summary.status}
    plain |= {key: summary.metadata.get(key) for key in _FROM_METADATA}
    # The spans have this key below.
    plain["span_count"] = plain.pop("spans")
    plain["missing"] = trace.missing
    # Runs and spans last: they are long.
    plain["runs"] = [{"run_id": run.id, **data_of(run)} for run in trace.runs]
    plain["spans"] = [_span(span) for span in trace.spans]
    data: dict[str, Any] = finite(_with_iso_times(plain))
    return data


def _span(span: SpanRecord) -> dict[str, Any]:
    return _with_iso_times({field.name: getattr(span, field.name) for field in dataclasses.fields(span)})


def _with_iso_times(values: dict[str, Any]) -> dict[str, Any]:
    return {key: value.isoformat() if isinstance(value, datetime) else value for key, value in values.items()}
