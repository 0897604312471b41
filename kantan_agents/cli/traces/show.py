"""``kantan-agents traces show``: one run with its metadata and all its spans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import typer
from rich.console import Console
from rich.text import Text

from kantan_agents.cli.terminal.console import ACCENT, LABEL, plain, terminal
from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.cli.terminal.rows import cell, line_width, print_lines
from kantan_agents.cli.terminal.show_quantities import count_text, duration_text, local_time
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.cli.traces.records import status, trace_data
from kantan_agents.cli.traces.requests import RequestLines
from kantan_agents.cli.traces.span_details import draw_span, readable, rubric_view, text_of
from kantan_agents.cli.traces.span_tree import ASCII_GUIDES, Guides, hanging, tree_lines
from kantan_agents.cli.traces.view import prompt_label
from kantan_agents.traces.input_items import question_in
from kantan_agents.traces.sdk_spans import without_sdk_spans

if TYPE_CHECKING:
    from kantan_agents.traces.store import StoredTrace, TraceSummary

_GAP = 2
# Metadata with its own lines above the other metadata.
_OWN_LINES = ("agent_name", "prompt_name", "prompt_version", "agent_run_id", "usage_total")


@attrs.frozen
class TraceView:
    """What to show of a run.

    Attributes:
        full: Whether to show complete inputs and outputs.
        depth: How many levels of the tree; None for all.
        sdk_spans: Whether to show the SDK's own task and turn spans.
        instructions: Whether to show the instructions and settings of each model call.
        tools: Whether to show the tools of each model call, and the decisions of the tool rules.
    """

    full: bool = False
    depth: int | None = None
    sdk_spans: bool = False
    instructions: bool = False
    tools: bool = False


def show_trace(path: Path, trace_id: str, view: TraceView, *, as_json: bool) -> None:
    """Print a run.

    Raises:
        TraceDatabaseError: E60, the database cannot be used.
        TraceNotFoundError: E61, no trace matches, or more than one.
    """
    trace = open_store(path).trace(trace_id)
    if as_json:
        typer.echo(json_text(trace_data(trace), default=str))
        return
    console = terminal()
    print_lines(console, _lines(console, trace, view))


def _lines(console: Console, trace: StoredTrace, view: TraceView) -> Iterator[Text]:
    width = line_width(console)
    facts = [(label, text) for label, text in _facts(trace.summary, full=view.full) if text.plain]
    width_of_labels = max(Text(label).cell_len for label, _ in facts) + _GAP
    for label, text in facts:
        first = plain(label, LABEL)
        first.append(" " * (width_of_labels - first.cell_len))
        yield from hanging(console, first, Text(" " * width_of_labels), text, width)
    if trace.spans:
        yield Text()
        guides = ASCII_GUIDES if console.options.ascii_only else Guides()
        spans = trace.spans if view.sdk_spans else without_sdk_spans(trace.spans)
        draw = draw_span(full=view.full)
        yield from tree_lines(console, spans, draw, width=width, guides=guides, depth=view.depth)
    if view.instructions or view.tools:
        requests = RequestLines(
            console, width, instructions=view.instructions, tools=view.tools, full=view.full
        )
        yield from requests.of(trace)


def _facts(trace: TraceSummary, *, full: bool) -> Iterator[tuple[str, Text]]:
    metadata: Mapping[str, Any] = trace.metadata or {}
    yield "trace", plain(one_line(trace.trace_id), ACCENT)
    yield "status", status(trace)
    yield "started", plain(local_time(trace.started_at))
    yield "took", plain(duration_text(trace.duration))
    yield "workflow", plain(one_line(str(trace.workflow_name or "")))
    yield "group", plain(one_line(str(trace.group_id or "")))
    yield "agent", plain(one_line(str(metadata.get("agent_name") or "")))
    yield "prompt", plain(one_line(prompt_label(metadata)))
    yield "run", plain(one_line(str(metadata.get("agent_run_id") or "")))
    yield "tokens", plain(_tokens(trace))
    for number, (key, value) in enumerate((key, metadata[key]) for key in metadata if key not in _OWN_LINES):
        entry = Text.assemble(cell(key, LABEL), "  ", readable(text_of(value), full=full))
        yield "" if number else "metadata", entry
    text = str(trace.input or "")
    yield "input", readable(text if full else question_in(text), full=full)
    if trace.rubric is None:
        yield "output", readable(str(trace.output or ""), full=full)
    else:
        yield "rubric", rubric_view(trace.rubric, full=full)


def _tokens(trace: TraceSummary) -> str:
    if not trace.total_tokens:
        return ""
    parts = f"{count_text(trace.input_tokens)} in, {count_text(trace.output_tokens)} out"
    return f"{count_text(trace.total_tokens)} ({parts})"
