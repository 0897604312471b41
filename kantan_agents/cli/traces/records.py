"""Runs of the trace database as table rows and as JSON data, the same in every command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from kantan_agents.cli.terminal.console import ACCENT, BAD, GOOD, NOTICE
from kantan_agents.cli.terminal.rows import Column, cell
from kantan_agents.cli.terminal.show_quantities import count_text, duration_text, local_time
from kantan_agents.cli.traces.input_items import question_in

if TYPE_CHECKING:
    from kantan_agents.tracing.store import StoredTrace, TraceSummary

COLUMNS = (
    Column("trace"),
    Column("started"),
    Column("took", right=True),
    Column("tokens", right=True, named=True),
    Column("status", longest=20),
    Column("agent", longest=20),
    Column("prompt", longest=20),
    Column("version", longest=12),
    Column("input", own_line=True, rest=True),
)
_MAX_NAME = 32
_MAX_STATUS = 48


def row_of(trace: TraceSummary) -> list[Text]:
    """Return the cells of a run, in the order of ``COLUMNS``."""
    metadata = trace.metadata or {}
    return [
        cell(trace.trace_id, ACCENT),
        cell(local_time(trace.started_at)),
        cell(duration_text(trace.duration)),
        cell(count_text(trace.total_tokens) if trace.total_tokens else ""),
        status(trace, longest=_MAX_STATUS),
        cell(metadata.get("agent_name") or trace.workflow_name, longest=_MAX_NAME),
        cell(metadata.get("prompt_name") or "", longest=_MAX_NAME),
        cell(metadata.get("prompt_version") or "", longest=_MAX_NAME),
        cell(question_in(str(trace.input or ""))),
    ]


def status(trace: TraceSummary, *, longest: int | None = None) -> Text:
    """Return how a run ended: ``ok``, its error, or ``unfinished``."""
    if trace.error is not None:
        return cell(trace.error or "failed", BAD, longest=longest)
    return cell("ok", GOOD) if trace.ended_at is not None else cell("unfinished", NOTICE)


def trace_data(trace: StoredTrace) -> dict[str, Any]:
    """Return a run as one flat object, including its spans."""
    from kantan_agents.tracing.store.export import as_plain_data

    return as_plain_data(trace)


def summary_data(trace: TraceSummary) -> dict[str, Any]:
    """Return a run as one flat object, without its spans."""
    from kantan_agents.tracing.store import StoredTrace

    data = trace_data(StoredTrace(trace, ()))
    del data["spans"]
    return data
