"""The table of runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from kantan_agents.traces.input_items import question_in
from kantan_agents.traces.store import TraceSummary
from kantan_agents.traces.store.connection import reading
from kantan_agents.traces.store.span_records import mapping_of

_MOST: Final = 300

# Collecting names from all runs would take seconds in a large file, and old ones are rarely needed.
_NEWEST: Final = 1_000
_MOST_NAMES: Final = 200

_FIELDS: Final = {"agent": "agent_name", "prompt": "prompt_name", "version": "prompt_version"}
_TRACES: Final = f"SELECT id FROM main.traces ORDER BY rowid DESC LIMIT {_NEWEST}"  # noqa: S608
_METADATA: Final = f"SELECT json_group_array(metadata_json) FROM main.traces WHERE id IN ({_TRACES})"  # noqa: S608
_TOOLS: Final = f"""SELECT json_group_array(DISTINCT s.name) FROM ({_TRACES}) t CROSS JOIN main.spans s
ON s.trace_id = t.id WHERE s.span_type = 'function' AND s.name IS NOT NULL"""  # noqa: S608


def run_row(trace: TraceSummary) -> dict[str, Any]:
    """Return a run's facts, and the start of its strings."""
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
        "status": trace.status,
        "cut_answers": trace.cut_answers,
        "error": trace.error and trace.error[:_MOST],
        "input": trace.input and question_in(trace.input)[:_MOST],
        "output": trace.output and trace.output[:_MOST],
        "score": (trace.rubric or {}).get("score"),
    }


def choices(path: Path) -> dict[str, list[str]]:
    """From the latest thousand traces."""
    with reading(path, with_views=False) as connection:
        known = [mapping_of(text) for text in json.loads(connection.execute(_METADATA).fetchone()[0])]
        tools = json.loads(connection.execute(_TOOLS).fetchone()[0])
    found = {field: _names([one.get(key) for one in known]) for field, key in _FIELDS.items()}
    return {**found, "tool": _names(tools)}


def _names(values: list[object]) -> list[str]:
    return sorted({value for value in values if isinstance(value, str) and value})[:_MOST_NAMES]
