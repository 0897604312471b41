"""Runs as table rows and as JSON data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from kantan_agents.cli.terminal.console import ACCENT, BAD, GOOD, NOTICE
from kantan_agents.cli.terminal.rows import Column, cell
from kantan_agents.cli.terminal.show_quantities import count_text, duration_text, local_time, short_time
from kantan_agents.traces.input_items import question_in

if TYPE_CHECKING:
    from kantan_agents.traces.store import StoredTrace, TraceSummary

COLUMNS = (
    Column("trace"),
    Column("started"),
    Column("took", right=True, drop=4),
    Column("tokens", right=True, named=True, drop=3),
    Column("status", longest=20, narrow=10, aligned=32),
    Column("agent", longest=20, narrow=12, aligned=32),
    Column("prompt", longest=20, narrow=12, aligned=32, drop=2, leaves=24),
    Column("version", longest=12, aligned=12, drop=1, leaves=24),
    Column("input", own_line=True, rest=True, narrowest=12),
)
EMPTY = "-"
_RANDOM_ID = re.compile("trace_[0-9a-f]{32}")
_SHORT_ID = 8


def rows_of(traces: Sequence[TraceSummary], width: int | None) -> list[list[Text]]:
    """Return the cells of runs, in the order of ``COLUMNS``.

    On a terminal, ids are as short as ``traces show`` accepts them. In a pipe (``width`` None), ids and times
    are complete and no cell is empty.
    """
    if width is None:
        return [[text if text.plain else Text(EMPTY) for text in _cells(trace)] for trace in traces]
    ends = Counter(short_id(trace.trace_id) for trace in traces)
    rows = [_cells(trace) for trace in traces]
    for row, trace in zip(rows, traces, strict=True):
        shown = short_id(trace.trace_id)
        row[:2] = (
            cell(shown if ends[shown] == 1 else trace.trace_id, ACCENT),
            cell(short_time(trace.started_at)),
        )
    return rows


def short_id(trace_id: str) -> str:
    """Return the end of a random id; other ids unchanged."""
    return trace_id[-_SHORT_ID:] if _RANDOM_ID.fullmatch(trace_id) else trace_id


def _cells(trace: TraceSummary) -> list[Text]:
    metadata = trace.metadata or {}
    return [
        cell(trace.trace_id, ACCENT),
        cell(local_time(trace.started_at)),
        cell(duration_text(trace.duration)),
        cell(count_text(trace.total_tokens) if trace.total_tokens else ""),
        status(trace),
        cell(metadata.get("agent_name") or trace.workflow_name),
        cell(metadata.get("prompt_name") or ""),
        cell(metadata.get("prompt_version") or ""),
        cell(question_in(str(trace.input or ""))),
    ]


def status(trace: TraceSummary) -> Text:
    """Return ``ok``, ``cut off``, ``recovered``, the error, or ``unfinished``.

    A recovered run ended well after a failure in it; ``cut off`` means a truncated answer.
    """
    if trace.status == "failed":
        return cell(trace.error or "failed", BAD)
    if trace.status == "ok" and trace.cut_answers:
        return cell("cut off", NOTICE)
    return cell(trace.status, GOOD if trace.status == "ok" else NOTICE)


def trace_data(trace: StoredTrace) -> dict[str, Any]:
    """Return a run with record and spans."""
    from kantan_agents.traces.store.export import as_plain_data

    return as_plain_data(trace)


def summary_data(trace: TraceSummary) -> dict[str, Any]:
    """Return a run without spans."""
    from kantan_agents.traces.store import StoredTrace

    data = trace_data(StoredTrace(trace, ()))
    for key in ("missing", "runs", "spans"):
        del data[key]
    return data
