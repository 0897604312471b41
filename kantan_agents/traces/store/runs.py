"""Finds the runs in a trace, and the run of a span."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import attrs
from kantan_llm.tracing import SpanRecord

from kantan_agents.traces.metadata import JUDGE_PROMPT_ID, RUN_SPAN
from kantan_agents.traces.store.span_records import light_spans, mapping_of, utc

_NEVER = datetime.max.replace(tzinfo=timezone.utc)


@attrs.frozen
class AgentRun:
    """One recorded run of an agent."""

    metadata: Mapping[str, Any]
    span: SpanRecord | None = None

    @property
    def span_id(self) -> str | None:
        """Id of its ``agent_run`` span, if it has one."""
        return self.span.span_id if self.span else None

    @property
    def prompt(self) -> tuple[str, str | None] | None:
        """Name and version of its prompt, if recorded."""
        name, version = self.metadata.get("prompt_name"), self.metadata.get("prompt_version")
        if not isinstance(name, str):
            return None
        return name, None if version is None else str(version)

    @property
    def is_judge(self) -> bool:
        """Whether a ``judge_agent`` ran."""
        return JUDGE_PROMPT_ID in self.metadata


class TraceRuns:
    """The runs in one trace: first ``own``, which it was opened for, then inner runs by start.

    A handoff target's ``agent_run`` span has the id of the run that it continues.
    """

    def __init__(self, metadata: Mapping[str, Any], spans: Sequence[SpanRecord]) -> None:
        self.own = AgentRun(metadata) if is_run(metadata) else None
        inner = _inner_runs(spans, metadata.get("agent_run_id"))
        self.all = (*([self.own] if self.own else ()), *inner)
        self._by_span = {run.span_id: run for run in inner}
        self._parents = {span.span_id: span.parent_id for span in spans}
        self._open = {span.span_id for span in spans if has_only_begun(span)}
        self._has_final = any(is_final(span) and span.parent_id is None for span in spans)

    @property
    def has_ended(self) -> bool:
        """Whether all runs in the trace have ended; every reader of a run's status uses this.

        Only a run of this library ends with a final span. Spans are stored when they end, so a stored span
        inside a missing one shows that the outer one is open, or that its process was killed.
        """
        if self.own is not None and (self._has_final or "agent_run_id" in self.own.metadata):
            return self._has_final
        known = self._parents
        return bool(known) and not self._open and {*known.values()} <= {None, *known}

    def inside_open(self) -> list[AgentRun]:
        """Return unfinished runs, and ended ones inside an unfinished span."""
        return [run for run in self.all if self._is_inside_open(run.span_id)]

    def _is_inside_open(self, span_id: str | None) -> bool:
        seen = set()
        while span_id is not None and span_id not in seen:  # only a damaged file has a cycle
            if span_id not in self._parents or span_id in self._open:
                return True
            seen.add(span_id)
            span_id = self._parents[span_id]
        return False

    def around(self, span_id: str | None) -> AgentRun | None:
        """Return the innermost run around a span."""
        seen = set()
        while span_id is not None and span_id not in seen:  # only a damaged file has a cycle
            if span_id in self._by_span:
                return self._by_span[span_id]
            seen.add(span_id)
            span_id = self._parents.get(span_id)
        return self.own

    def outermost(self) -> list[AgentRun]:
        """Return the runs outside of other runs."""
        if self.own:
            return [self.own]
        open_ones = self.inside_open()
        return [
            run
            for run in self.all
            if run.span and run not in open_ones and self.around(run.span.parent_id) is None
        ]


def is_run(metadata: Mapping[str, Any]) -> bool:
    """Return whether a trace was opened for a run of an agent."""
    return isinstance(metadata.get("agent_run_id"), str) or isinstance(metadata.get("prompt_name"), str)


def is_final(span: SpanRecord) -> bool:
    """Return whether it looks like a final span, by its parent."""
    return span.span_type == "generation" and span.name is None


def has_only_begun(span: SpanRecord) -> bool:
    """Return whether this is an unfinished run; other programs omit the end elsewhere."""
    return span.span_type == "custom" and span.started_at is not None and span.ended_at is None


def traces_with_inner_runs(connection: sqlite3.Connection) -> set[str]:
    """Return the traces that contain ``agent_run`` spans."""
    rows = connection.execute(
        "SELECT DISTINCT trace_id FROM spans WHERE name = ? AND span_type = 'custom'", (RUN_SPAN,)
    )
    return {row["trace_id"] for row in rows}


def runs_of_trace(connection: sqlite3.Connection, trace_id: str, metadata: Mapping[str, Any]) -> TraceRuns:
    """Return the runs of a trace, without reading inputs and outputs."""
    return TraceRuns(metadata, light_spans(connection, trace_id, texts=False))


def _inner_runs(spans: Iterable[SpanRecord], own_id: Any) -> list[AgentRun]:
    found: dict[str, AgentRun] = {}
    for span in sorted(spans, key=_by_start):
        data = run_data(span)
        run_id = data.get("agent_run_id")
        if isinstance(run_id, str) and run_id != own_id:
            # A run's span starts before its handoffs' or, with equal times, ends later.
            found.setdefault(run_id, AgentRun(data, span))
    return list(found.values())


def _by_start(span: SpanRecord) -> tuple[datetime, int]:
    return utc(span.started_at) or _NEVER, -span.ingest_seq


def run_data(span: SpanRecord) -> Mapping[str, Any]:
    """Return the metadata on an ``agent_run`` span, otherwise an empty mapping."""
    if span.name != RUN_SPAN or span.span_type != "custom":
        return {}
    return mapping_of(mapping_of(mapping_of(span.raw).get("span_data")).get("data"))
