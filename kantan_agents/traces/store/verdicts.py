"""Verdicts of judges, and the answers they are about."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Mapping
from typing import Any

from kantan_llm.tracing.analysis import find_failed_judges

from kantan_agents.traces.metadata import JUDGE_SPAN
from kantan_agents.traces.store.records import JudgeSpan
from kantan_agents.traces.store.runs import AgentRun, TraceRuns, runs_of_trace, traces_with_inner_runs
from kantan_agents.traces.store.span_records import KantanSearch, in_utc, mapping_of

JUDGED = "judged_trace_id"


class Answers:
    """Finds the run of a judged answer."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._with_inner_runs = traces_with_inner_runs(connection)

    def judged_by(self, trace_id: str, span_id: str) -> AgentRun | None:
        """Return the run in the trace that the judge names, otherwise around the verdict."""
        runs = self.runs_in(trace_id)
        if runs is None:
            return None
        named, run = named_by(runs, self._metadata(trace_id) or {}, span_id)
        if named is None:
            return run
        judged = self.runs_in(named)
        return _first(judged) if judged else None

    def conversation_of(self, trace_id: str, span_id: str) -> str:
        """Return the group of the judged trace, or else its id."""
        runs = self.runs_in(trace_id)
        named = None if runs is None else named_by(runs, self._metadata(trace_id) or {}, span_id)[0]
        group = "SELECT group_id FROM traces WHERE id = ?"
        row = self._connection.execute(group, (named or trace_id,)).fetchone()
        return str((row and row["group_id"]) or named or trace_id)

    def runs_in(self, trace_id: str) -> TraceRuns | None:
        """Return the runs in a trace, if it exists."""
        metadata = self._metadata(trace_id)
        if metadata is None:
            return None
        if trace_id in self._with_inner_runs:
            return runs_of_trace(self._connection, trace_id, metadata)
        return TraceRuns(metadata, ())

    def _metadata(self, trace_id: str) -> Mapping[str, Any] | None:
        metadata = "SELECT metadata_json FROM traces WHERE id = ?"
        row = self._connection.execute(metadata, (trace_id,)).fetchone()
        if row is None:
            return None
        return mapping_of(row["metadata_json"])


def named_by(
    runs: TraceRuns, metadata: Mapping[str, Any], span_id: str
) -> tuple[str | None, AgentRun | None]:
    """Return the trace that a judge names or, without one, the run around its verdict."""
    judge = runs.around(span_id)
    named = _judged_id(judge.metadata if judge else {}) or _judged_id(metadata)
    return (named, None) if named is not None else (None, judge or _first(runs))


def judged_trace(connection: sqlite3.Connection, trace_id: str) -> str:
    """Return the trace that the verdict is about, by default its own."""
    search = KantanSearch(connection)
    runs = Answers(connection).runs_in(trace_id)
    trace = search.get_trace(trace_id)
    named = _judged_id(mapping_of(trace and trace.metadata))
    for run in runs.all if runs else ():
        named = named or _judged_id(run.metadata)
    return named if named is not None and search.get_trace(named) else trace_id


def failed_verdicts(
    connection: sqlite3.Connection, threshold: float, prompt: str | None, version: str | None
) -> Generator[JudgeSpan, None, None]:
    """Yield the verdicts below ``threshold``, latest first."""
    # kantan-llm would apply a limit before it compares scores.
    failed: list[Any] = in_utc(find_failed_judges(KantanSearch(connection), threshold, limit=0))
    stored = _storing_order(connection)
    failed.sort(key=lambda span: stored.get(span.span_id, 0), reverse=True)
    if prompt is None and version is None:
        yield from failed
        return
    answers = Answers(connection)
    for span in failed:
        run = answers.judged_by(span.trace_id, span.span_id)
        name, its_version = (run and run.prompt) or (None, None)
        if prompt in (None, name) and version in (None, its_version):
            yield span


def _storing_order(connection: sqlite3.Connection) -> dict[str, int]:
    rows = connection.execute(
        "SELECT id, rowid FROM spans WHERE name = ? AND span_type = 'custom'", (JUDGE_SPAN,)
    )
    return {row["id"]: row["rowid"] for row in rows}


def _judged_id(metadata: Mapping[str, Any]) -> str | None:
    named = metadata.get(JUDGED)
    return named if isinstance(named, str) else None


def _first(runs: TraceRuns) -> AgentRun | None:
    return runs.all[0] if runs.all else None
