"""A run as a row of the table."""

from __future__ import annotations

from typing import Any, Final

from kantan_agents.traces.input_items import question_in
from kantan_agents.traces.store import TraceSummary

_MOST: Final = 300
"""So many characters of a text are in a row."""


def run_row(trace: TraceSummary) -> dict[str, Any]:
    """Return a run as a row: its facts, and the beginnings of its texts."""
    metadata = trace.metadata
    return {
        "id": trace.trace_id,
        "agent": metadata.get("agent_name") or trace.workflow_name,
        "prompt": metadata.get("prompt_name"),
        "version": metadata.get("prompt_version"),
        "started_at": trace.started_at and trace.started_at.isoformat(),
        "seconds": trace.duration,
        "tokens": trace.total_tokens,
        "spans": trace.spans,
        "status": _status(trace),
        "error": trace.error and trace.error[:_MOST],
        "input": trace.input and question_in(trace.input)[:_MOST],
        "output": trace.output and trace.output[:_MOST],
        "score": (trace.rubric or {}).get("score"),
    }


def _status(trace: TraceSummary) -> str:
    """Return ``failed``, ``unfinished``, ``recovered`` or ``ok``, as ``kantan-agents traces list`` does."""
    if trace.error is not None:
        return "failed"
    if trace.ended_at is None:
        return "unfinished"
    return "recovered" if trace.failed_spans else "ok"
