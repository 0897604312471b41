"""Statistics for each prompt version: its runs, failures, tokens, latencies and scores."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import attrs

from kantan_agents.tracing.metadata import JUDGE_SPAN
from kantan_agents.tracing.store.records import PromptStats
from kantan_agents.tracing.store.runs import AgentRun, TraceRuns, traces_with_inner_runs
from kantan_agents.tracing.store.span_records import light_spans, mapping_of, parse_time
from kantan_agents.tracing.store.summarise import TOKENS, tokens, whole_number
from kantan_agents.tracing.store.verdicts import Answers

PromptVersion = tuple[str, str | None]

# Start and end of a trace, and the state of the span that ends a run: 1 if it exists, 2 if it has an error.
# The error is stored behind the long texts of a row, so it is read for this span only.
_FIGURES = """SELECT json_array(MIN(s.started_at), MAX(s.ended_at), MAX(
  CASE WHEN s.span_type = 'generation' AND s.name IS NULL AND s.parent_id IS NULL
  THEN 1 + (s.error_json IS NOT NULL AND s.error_json != 'null') END))
FROM spans s WHERE s.trace_id = t.id"""
_FAILED = 2

# If a prompt is given, the figures are computed only for the traces of its runs.
_TRACES = f"""SELECT t.id, t.metadata_json,
  CASE WHEN :prompt IS NULL OR json_extract(t.metadata_json, '$.prompt_name') = :prompt
  THEN ({_FIGURES}) END AS figures
FROM all_traces t ORDER BY t.rowid"""  # noqa: S608


@attrs.frozen
class _RunFigures:
    """The figures of one run.

    Attributes:
        prompt: Name and version of its prompt.
        started_at: Its start; None if no span of it is recorded yet.
        failed: Whether an error ended it.
        seconds: Its duration; None unless it ended with an answer.
        tokens: The tokens of its own model calls, by kind.
    """

    prompt: PromptVersion
    started_at: datetime | None
    failed: bool
    seconds: float | None
    tokens: Mapping[str, int]


@attrs.define
class _Group:
    """The running totals of one prompt version, as a file may have very many runs."""

    runs: int = 0
    failures: int = 0
    tokens: dict[str, int] = attrs.Factory(lambda: dict.fromkeys(TOKENS, 0))
    seconds: list[float] = attrs.Factory(list)
    scores: list[float] = attrs.Factory(list)
    first: datetime | None = None
    last: datetime | None = None

    def add(self, run: _RunFigures) -> None:
        self.runs += 1
        self.failures += run.failed
        for kind, used in run.tokens.items():
            self.tokens[kind] += used
        if run.seconds is not None:
            self.seconds.append(run.seconds)
        start = run.started_at
        if start is not None:
            self.first = start if self.first is None else min(start, self.first)
            self.last = start if self.last is None else max(start, self.last)


def prompt_stats(connection: sqlite3.Connection, prompt: str | None) -> list[PromptStats]:
    """Return the statistics of each version of each prompt, or of the prompt with this name.

    The versions of a prompt are ordered by their first runs in the file.
    """
    groups: dict[PromptVersion, _Group] = {}
    for run in _figures_of_runs(connection, prompt):
        if run.prompt not in groups:
            groups[run.prompt] = _Group()
        groups[run.prompt].add(run)
    for judged, score in _scores(connection):
        if judged not in groups and prompt in (None, judged[0]):
            groups[judged] = _Group()  # the judged runs are in another file, or were deleted
        if judged in groups:
            groups[judged].scores.append(score)
    return [_stats(*item) for item in sorted(groups.items(), key=lambda item: item[0][0])]


def nearest_rank(values: Iterable[float], percent: int) -> float | None:
    """Return the smallest value that at least ``percent`` % of all do not exceed; None without values."""
    ordered = sorted(values)
    if not ordered:
        return None
    return ordered[max(math.ceil(len(ordered) * percent / 100), 1) - 1]


def _stats(prompt: PromptVersion, group: _Group) -> PromptStats:
    name, version = prompt
    return PromptStats(
        prompt_name=name,
        prompt_version=version,
        runs=group.runs,
        failures=group.failures,
        scores=len(group.scores),
        mean_score=math.fsum(group.scores) / len(group.scores) if group.scores else None,
        **group.tokens,
        latency_p50=nearest_rank(group.seconds, 50),
        latency_p95=nearest_rank(group.seconds, 95),
        first_run=group.first,
        last_run=group.last,
    )


def _figures_of_runs(connection: sqlite3.Connection, prompt: str | None) -> Iterator[_RunFigures]:
    """Yield the figures of all runs that have a prompt, or this prompt, by trace, the oldest first.

    The runs of a ``judge_agent`` carry the prompt that they judge; they are left out.
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
) -> Iterator[_RunFigures]:
    """Yield the figures of each run in a trace; a model call counts for the innermost run around it."""
    spans = light_spans(connection, trace_id, texts=False)
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
            yield _RunFigures(run.prompt, start, failed, seconds, used)
        elif figures is not None:
            yield _of_trace(run.prompt, metadata, figures, used)


def _of_trace(
    prompt: PromptVersion, metadata: Mapping[str, Any], figures: str, used: Mapping[str, Any]
) -> _RunFigures:
    """Return the figures of the run that a trace was opened for."""
    first, last, ending = json.loads(figures)
    start, end = parse_time(first), parse_time(last)
    failed = ending == _FAILED
    # A run of this library without its final span is still running or was killed.
    answered = not failed and (ending is not None or "agent_run_id" not in metadata)
    by_kind = {kind: whole_number(used.get(kind)) for kind in TOKENS}
    return _RunFigures(prompt, start, failed, _seconds(start, end) if answered else None, by_kind)


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    return (end - start).total_seconds() if start and end else None


def _scores(connection: sqlite3.Connection) -> Iterator[tuple[PromptVersion, float]]:
    """Yield the prompt and the score of each judged answer."""
    answers = Answers(connection)
    rows = connection.execute(
        "SELECT id, trace_id, rubric_json FROM spans WHERE name = ? AND span_type = 'custom'", (JUDGE_SPAN,)
    )
    for row in rows.fetchall():
        score = mapping_of(row["rubric_json"]).get("score")
        if isinstance(score, (int, float)) and math.isfinite(score):
            judged = answers.judged_by(row["trace_id"], row["id"])
            if judged and judged.prompt:
                yield judged.prompt, float(score)
