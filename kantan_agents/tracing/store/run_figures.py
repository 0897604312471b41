"""The figures of each run in a file: how it ended, how long it took, what it used."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import attrs

from kantan_agents.tracing.store.runs import AgentRun, TraceRuns, traces_with_inner_runs
from kantan_agents.tracing.store.stored_spans import mapping_of, stored_spans, time_of
from kantan_agents.tracing.store.summarise import TOKENS, tokens, whole_number

PromptVersion = tuple[str, str | None]

# When a trace begins and ends; and, of the span that ends a run, 1 if it is there and 2 if it has an error.
# The error stands far behind in the row, after the texts, so it is read for that one span only.
_FIGURES = """SELECT json_array(MIN(s.started_at), MAX(s.ended_at), MAX(
  CASE WHEN s.span_type = 'generation' AND s.name IS NULL AND s.parent_id IS NULL
  THEN 1 + (s.error_json IS NOT NULL AND s.error_json != 'null') END))
FROM spans s WHERE s.trace_id = t.id"""
_FAILED = 2

# With a prompt given, figures are worked out for the traces of its runs only.
_TRACES = f"""SELECT t.id, t.metadata_json,
  CASE WHEN :prompt IS NULL OR json_extract(t.metadata_json, '$.prompt_name') = :prompt
  THEN ({_FIGURES}) END AS figures
FROM all_traces t ORDER BY t.rowid"""  # noqa: S608


@attrs.frozen
class RunFigures:
    """The figures of one run.

    Attributes:
        prompt: Name and version of its prompt.
        started_at: When it began; None while nothing of it is recorded.
        failed: Whether an error ended it.
        seconds: How long it took; None unless it ended with an answer.
        tokens: What its own model calls used, by kind.
    """

    prompt: PromptVersion
    started_at: datetime | None
    failed: bool
    seconds: float | None
    tokens: Mapping[str, int]


def figures_of_runs(connection: sqlite3.Connection, prompt: str | None) -> Iterator[RunFigures]:
    """Yield the figures of all runs that have a prompt, or of those of one prompt; the oldest trace first.

    Runs that judge a prompt are not runs of it.
    """
    with_inner_runs = traces_with_inner_runs(connection)
    for trace_id, metadata_json, figures in connection.execute(_TRACES, {"prompt": prompt}):
        if trace_id in with_inner_runs:
            metadata = mapping_of(metadata_json)
            runs = _of_several(connection, trace_id, metadata, figures)
            yield from (run for run in runs if prompt in (None, run.prompt[0]))
        elif figures is not None:
            metadata = mapping_of(metadata_json)
            run = AgentRun(metadata)
            if run.prompt is not None and not run.is_judge:
                yield _of_trace(run.prompt, metadata, figures, mapping_of(metadata.get("usage_total")))


def _of_several(
    connection: sqlite3.Connection, trace_id: str, metadata: Mapping[str, Any], figures: str | None
) -> Iterator[RunFigures]:
    """Yield the figures of each run in a trace; a model call counts for the innermost run around it."""
    spans = stored_spans(connection, trace_id, texts=False)
    runs = TraceRuns(metadata, spans)
    owners = [(span, runs.around(span.span_id)) for span in spans]
    for run in runs.all:
        if run.prompt is None or run.is_judge:
            continue
        used = tokens(span for span, owner in owners if owner is run)
        if run.span is not None:
            failed = bool(run.span.error)
            start, end = run.span.started_at, run.span.ended_at
            seconds = None if failed else _seconds(start, end)
            yield RunFigures(run.prompt, start, failed, seconds, used)
        elif figures is not None:
            yield _of_trace(run.prompt, metadata, figures, used)


def _of_trace(
    prompt: PromptVersion, metadata: Mapping[str, Any], figures: str, used: Mapping[str, Any]
) -> RunFigures:
    """Return the figures of the run that a trace was opened for."""
    first, last, ending = json.loads(figures)
    start, end = time_of(first), time_of(last)
    failed = ending == _FAILED
    # Without the span that ends a run of ours, it still goes on or was killed.
    answered = not failed and (ending is not None or "agent_run_id" not in metadata)
    by_kind = {kind: whole_number(used.get(kind)) for kind in TOKENS}
    return RunFigures(prompt, start, failed, _seconds(start, end) if answered else None, by_kind)


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    return (end - start).total_seconds() if start and end else None
