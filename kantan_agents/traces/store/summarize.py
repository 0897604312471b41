"""Reads traces and summarizes them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kantan_llm.tracing import SpanRecord, TraceRecord

from kantan_agents.core.answers import CUT_SPAN
from kantan_agents.core.usage import used_tokens
from kantan_agents.traces.metadata import JUDGE_SPAN
from kantan_agents.traces.span_answers import read_answer
from kantan_agents.traces.store.plain_summaries import read_plain
from kantan_agents.traces.store.records import StoredTrace, TraceSummary
from kantan_agents.traces.store.run_records import INSIDE_OPEN, missing_of, read_runs
from kantan_agents.traces.store.runs import AgentRun, TraceRuns, is_final
from kantan_agents.traces.store.span_records import (
    KantanSearch,
    in_utc,
    light_spans,
    light_spans_of,
    mapping_of,
    parse_json,
    parse_time,
    utc,
)
from kantan_agents.traces.tables import valid_json

# A trace may have many spans, all in memory.
_AT_ONCE = 20

_TRACES = f"""SELECT t.id, t.workflow_name, t.group_id, {valid_json("t.metadata_json")},
(SELECT MIN(s.started_at) FROM spans s WHERE s.trace_id = t.id),
(SELECT MAX(s.ended_at) FROM spans s WHERE s.trace_id = t.id)
FROM traces t"""  # noqa: S608


def read_trace(connection: sqlite3.Connection, trace_id: str) -> StoredTrace | None:
    """Return a trace with all its spans, if it still exists."""
    search = KantanSearch(connection)
    trace = search.get_trace(trace_id)
    if trace is None:
        return None
    spans = in_utc(search.get_spans_by_trace(trace_id))
    summary = summarize(trace, spans)
    runs, unreadable = read_runs(connection, trace_id)
    in_trace = TraceRuns(mapping_of(trace.metadata), spans)
    missing = missing_of(runs, _ids_of(in_trace.all), unreadable)
    if not in_trace.has_ended:
        missing += map(INSIDE_OPEN.format, _ids_of(in_trace.inside_open()))
    return StoredTrace(summary, tuple(spans), tuple(runs), tuple(missing))


def _ids_of(runs: Iterable[AgentRun]) -> list[str]:
    run_ids = [run.metadata.get("agent_run_id") for run in runs]
    return [str(run_id) for run_id in run_ids if run_id]


def read_summaries(connection: sqlite3.Connection, trace_ids: Sequence[str]) -> list[TraceSummary]:
    """Return the summaries of existing traces."""
    summaries: list[TraceSummary] = []
    for start in range(0, len(trace_ids), _AT_ONCE):
        chosen = trace_ids[start : start + _AT_ONCE]
        found = read_plain(connection, chosen)
        others = [trace_id for trace_id in chosen if trace_id not in found]
        if others:
            found |= _read_others(connection, others)
        summaries += [found[trace_id] for trace_id in chosen if trace_id in found]
    return summaries


def _read_others(connection: sqlite3.Connection, trace_ids: Sequence[str]) -> dict[str, TraceSummary]:
    spans = light_spans_of(connection, trace_ids)
    query = f"{_TRACES} WHERE t.id IN ({','.join('?' * len(trace_ids))})"
    traces = [_record(row) for row in connection.execute(query, trace_ids)]
    return {trace.trace_id: summarize(trace, spans.get(trace.trace_id, [])) for trace in traces}


def _record(row: sqlite3.Row) -> TraceRecord:
    trace_id, workflow_name, group_id, metadata_json, started_at, ended_at = row
    times = (parse_time(started_at), parse_time(ended_at))
    return TraceRecord(trace_id, workflow_name or "", group_id, *times, metadata=parse_json(metadata_json))


def has_failed(connection: sqlite3.Connection, trace_id: str) -> bool | None:
    """Return whether the run failed; None if it has not ended or does not exist."""
    row = connection.execute("SELECT metadata_json FROM all_traces WHERE id = ?", (trace_id,)).fetchone()
    if row is None:
        return None
    spans = light_spans(connection, trace_id, texts=False)
    runs = TraceRuns(mapping_of(row["metadata_json"]), spans)
    if _input_output_error(runs, spans)[2] is not None:
        return True
    return False if runs.has_ended else None


def ended_as_wanted(
    connection: sqlite3.Connection, trace_ids: Iterator[str], failed: bool | None
) -> Iterator[str]:
    """Filter traces by whether they failed, which SQL cannot determine."""
    if failed is None:
        return trace_ids
    return (trace_id for trace_id in trace_ids if has_failed(connection, trace_id) is failed)


def summarize(trace: TraceRecord, spans: Sequence[SpanRecord]) -> TraceSummary:
    """Return the summary of a trace."""
    metadata = mapping_of(trace.metadata)
    runs = TraceRuns(metadata, spans)
    input_text, output_text, error = _input_output_error(runs, spans)
    tokens = used_tokens(span.usage for span in spans)
    verdicts = [span.rubric for span in spans if is_verdict(span) and isinstance(span.rubric, dict)]
    return TraceSummary(
        trace_id=trace.trace_id,
        workflow_name=trace.workflow_name,
        group_id=trace.group_id,
        metadata=_with_single_run(metadata, runs),
        started_at=utc(trace.started_at),
        ended_at=utc(trace.ended_at) if runs.has_ended else None,
        spans=len(spans),
        input=input_text,
        output=output_text,
        error=error,
        failed_spans=sum(bool(span.error) for span in spans),
        rubric=verdicts[-1] if verdicts else None,
        input_tokens=tokens["input_tokens"],
        output_tokens=tokens["output_tokens"],
        total_tokens=tokens["total_tokens"],
        cut_answers=sum(span.span_type == "custom" and span.name == CUT_SPAN for span in spans),
    )


def is_verdict(span: SpanRecord) -> bool:
    """Return whether this span carries a rubric."""
    return span.span_type == "custom" and span.name == JUDGE_SPAN


def _input_output_error(
    runs: TraceRuns, spans: Sequence[SpanRecord]
) -> tuple[str | None, str | None, str | None]:
    outermost = {run.span_id for run in runs.outermost()}
    finals = [span for span in spans if is_final(span) and span.parent_id is None]
    if finals:
        finals = finals[-1:]
    else:
        finals = [span for span in spans if is_final(span) and span.parent_id in outermost]
    if finals:
        output = finals[-1].output if runs.has_ended else None  # else it may belong to another run
        return finals[0].input, output, _first_error(finals)
    by_start = sorted((span for span in spans if span.started_at), key=lambda span: str(span.started_at))
    given = next((span.input for span in by_start if span.input is not None), None)
    if not runs.has_ended:  # the output is a step, and the run may recover from the error
        return given, None, None
    last = next((span for span in reversed(spans) if span.output is not None), None)
    answer = None if last is None else str(read_answer(last) or last.output)
    return given, answer, _first_error(spans)


def _with_single_run(metadata: Mapping[str, Any], runs: TraceRuns) -> Mapping[str, Any]:
    outermost = list(runs.outermost())
    if runs.own is not None or len(outermost) != 1:
        return metadata
    return {**outermost[0].metadata, **metadata}


def _first_error(spans: Iterable[SpanRecord]) -> str | None:
    errors: list[Any] = [span.error for span in spans if span.error]
    if not errors:
        return None
    return str(mapping_of(errors[0]).get("message") or errors[0])
