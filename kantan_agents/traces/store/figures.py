"""Computes the statistics of traces, from a trace's own row and spans.

One JSON string holds the rows of many traces, because sqlite3 takes the GIL again for each row, up to 5 ms
next to a busy event loop.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import attrs
from kantan_llm.tracing import SpanRecord

from kantan_agents.core.usage import TOKENS, used_tokens, whole_number
from kantan_agents.traces.metadata import JUDGE_SPAN, RUN_SPAN
from kantan_agents.traces.store.runs import AgentRun, TraceRuns, runs_of_trace
from kantan_agents.traces.store.span_records import LIGHT_COLUMNS, light_span, mapping_of, parse_time
from kantan_agents.traces.store.verdicts import named_by

PromptVersion = tuple[str, str | None]

CHOSEN = 500

# Start and end of a trace, and the final span: 1 if it exists, 2 if it has an error. Errors are stored after
# the long columns, so only this one is read.
_EXTENT = """SELECT json_array(CAST(MIN(s.started_at) AS TEXT), CAST(MAX(s.ended_at) AS TEXT), MAX(
  CASE WHEN s.span_type = 'generation' AND s.name IS NULL AND s.parent_id IS NULL
  THEN CASE WHEN s.error_json IS NOT NULL AND s.error_json != 'null' THEN 2 ELSE 1 END END))
FROM spans s WHERE s.trace_id = t.id"""
_FAILED = 2

_MICROSECOND = timedelta(microseconds=1)

_TRACES = f"""SELECT json_group_array(json_array(t.id, t.rowid, t.metadata_json, json(({_EXTENT}))))
FROM temp.chosen c CROSS JOIN all_traces t ON t.id = c.chosen_id"""  # noqa: S608

_CUSTOM = """FROM temp.chosen c CROSS JOIN spans s ON s.trace_id = c.chosen_id
WHERE s.name = :name AND s.span_type = 'custom'"""
_WITH_INNER_RUNS = f"SELECT json_group_array(DISTINCT s.trace_id) {_CUSTOM}"
_MARK_INNER = f"""UPDATE temp.chosen SET with_spans = CASE WHEN chosen_id IN (
SELECT s.trace_id {_CUSTOM}) THEN 1 ELSE 0 END"""  # noqa: S608
_RUBRICS = f"""SELECT json_group_array(json_array(s.trace_id, s.id, CAST(s.rubric_json AS TEXT))) {_CUSTOM}"""

_LIGHT = ", ".join(f"CAST({column} AS TEXT)" for column in LIGHT_COLUMNS.values())
_SPANS = f"""SELECT json_group_array(json_array({_LIGHT}, NULL, NULL))
FROM temp.chosen c CROSS JOIN spans ON trace_id = c.chosen_id WHERE c.with_spans = 1"""  # noqa: S608


@attrs.frozen
class RunFigures:
    """The statistics of one run; ``microseconds`` is None unless it ended without an error."""

    prompt: PromptVersion | None
    is_judge: bool
    started_at: datetime | None
    failed: bool
    microseconds: int | None
    tokens: Mapping[str, int]

    @property
    def is_unfinished(self) -> bool:
        """Whether it has not ended, or its process was killed."""
        return not self.failed and self.microseconds is None


@attrs.frozen
class Verdict:
    """A score for the first run of ``judged`` or else for ``prompt``."""

    score: float
    judged: str | None
    prompt: PromptVersion | None


@attrs.frozen
class TraceFigures:
    """The statistics of one trace; ``position`` is its rowid, which orders traces."""

    trace_id: str
    position: int
    runs: Sequence[RunFigures]
    verdicts: Sequence[Verdict]


def compute_figures(connection: sqlite3.Connection, trace_ids: Sequence[str]) -> Iterator[TraceFigures]:
    """Yield the statistics of the traces that exist.

    The connection needs ``create_views`` and a transaction; ids are unique.
    """
    connection.execute(
        "CREATE TEMP TABLE IF NOT EXISTS chosen(chosen_id TEXT PRIMARY KEY, with_spans INTEGER)"
    )
    for start in range(0, len(trace_ids), CHOSEN):
        chosen = trace_ids[start : start + CHOSEN]
        connection.execute("DELETE FROM temp.chosen")
        connection.execute(f"INSERT INTO temp.chosen VALUES {','.join(['(?, 0)'] * len(chosen))}", chosen)  # noqa: S608
        yield from _of_chosen(connection)


def _of_chosen(connection: sqlite3.Connection) -> Iterator[TraceFigures]:
    with_inner_runs = set(_one(connection, _WITH_INNER_RUNS, name=RUN_SPAN))
    spans = _spans(connection, with_inner_runs) if with_inner_runs else {}
    rubrics: dict[str, list[tuple[str, str | None]]] = {}
    for trace_id, span_id, rubric in _one(connection, _RUBRICS, name=JUDGE_SPAN):
        rubrics.setdefault(trace_id, []).append((span_id, rubric))
    for trace_id, position, metadata_json, extent in _one(connection, _TRACES):
        metadata = mapping_of(metadata_json)
        of_trace = spans.get(trace_id, [])
        runs = TraceRuns(metadata, of_trace)
        if runs.own is not None and not _has_ended(connection, trace_id, metadata, extent):
            extent[1] = None
        figures = tuple(_figures_of_runs(runs, of_trace, metadata, extent))
        verdicts = tuple(_verdicts(runs, metadata, rubrics.get(trace_id, ())))
        yield TraceFigures(trace_id, position, figures, verdicts)


def _has_ended(
    connection: sqlite3.Connection, trace_id: str, metadata: Mapping[str, Any], extent: Sequence[Any]
) -> bool:
    if extent[2] is not None or "agent_run_id" in metadata:
        return extent[2] is not None
    return runs_of_trace(connection, trace_id, metadata).has_ended


def _one(connection: sqlite3.Connection, query: str, **values: Any) -> list[Any]:
    found: list[Any] = json.loads(connection.execute(query, values).fetchone()[0])
    return found


def _spans(connection: sqlite3.Connection, trace_ids: set[str]) -> dict[str, list[SpanRecord]]:
    connection.execute(_MARK_INNER, {"name": RUN_SPAN})
    found: dict[str, list[SpanRecord]] = {trace_id: [] for trace_id in trace_ids}
    for values in _one(connection, _SPANS):
        span = light_span(values)
        found[span.trace_id].append(span)
    for spans in found.values():
        spans.sort(key=lambda span: span.ingest_seq)
    return found


def _figures_of_runs(
    runs: TraceRuns, spans: Sequence[SpanRecord], metadata: Mapping[str, Any], extent: Sequence[Any]
) -> Iterator[RunFigures]:
    """A model call counts for the innermost run around it."""
    owners = [(span, runs.around(span.span_id)) for span in spans]
    for run in runs.all:
        used: Mapping[str, Any] = (
            used_tokens(span.usage for span, owner in owners if owner is run)
            if spans
            else mapping_of(metadata.get("usage_total"))
        )
        if run.span is None:
            yield _of_trace(run, extent, used)
        else:
            failed = bool(run.span.error)
            start, end = run.span.started_at, run.span.ended_at
            took = None if failed else _microseconds(start, end)
            yield RunFigures(run.prompt, run.is_judge, start, failed, took, _by_kind(used))


def _of_trace(run: AgentRun, extent: Sequence[Any], used: Mapping[str, Any]) -> RunFigures:
    first, last, ending = extent
    start, end = parse_time(first), parse_time(last)
    failed = ending == _FAILED
    took = None if failed else _microseconds(start, end)
    return RunFigures(run.prompt, run.is_judge, start, failed, took, _by_kind(used))


def _by_kind(used: Mapping[str, Any]) -> dict[str, int]:
    return {kind: whole_number(used.get(kind)) for kind in TOKENS}


def _microseconds(start: datetime | None, end: datetime | None) -> int | None:
    return (end - start) // _MICROSECOND if start and end else None


def _verdicts(
    runs: TraceRuns, metadata: Mapping[str, Any], rubrics: Sequence[tuple[str, str | None]]
) -> Iterator[Verdict]:
    for span_id, rubric in rubrics:
        score = mapping_of(rubric).get("score")
        if isinstance(score, (int, float)) and is_finite(score):
            named, run = named_by(runs, metadata, span_id)
            yield Verdict(float(score), named, run.prompt if run else None)


def is_finite(score: float) -> bool:
    """Return whether a score is a finite number."""
    try:
        return math.isfinite(score)
    except OverflowError:  # an int beyond the floats
        return False
