"""Renders kantan-llm's trace records as rich renderables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from kantan_agents.cli.terminal.console import ACCENT, BAD, LABEL, STRONG, indented, plain
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.cli.terminal.show_quantities import duration_text
from kantan_agents.cli.traces.span_tree import SpanTree

if TYPE_CHECKING:
    from kantan_llm.tracing import SpanRecord, TraceRecord

    from kantan_agents.traces.store import TraceSummary

_SNIPPET = 24


def traces_view(traces: Sequence[TraceRecord | TraceSummary]) -> RenderableType:
    """Return traces as a table, with copyable ids."""
    if not traces:
        return indented(Text("nothing found", style=LABEL))
    table = Table(box=None, padding=(0, 3, 0, 0), header_style=LABEL)
    table.add_column("trace", no_wrap=True)
    table.add_column("agent", overflow="fold")
    table.add_column("prompt", overflow="fold")
    for trace in traces:
        agent = (trace.metadata or {}).get("agent_name", "")
        table.add_row(plain(trace.trace_id, ACCENT), plain(agent), plain(_prompt_of(trace)))
    return indented(table)


def spans_view(trace_id: str, spans: Iterable[SpanRecord]) -> RenderableType:
    """Return the spans of a trace as a tree."""
    return indented(SpanTree(plain(trace_id, ACCENT), tuple(spans), _span_line))


def failures_view(
    buckets: Mapping[str, Sequence[SpanRecord]], judged: Mapping[str, TraceRecord | None]
) -> RenderableType:
    """Return failed judge spans by bucket, with the judged prompt versions.

    ``judged`` maps the trace of a judge to the trace of the answer.
    """
    if not buckets:
        return indented(Text("nothing failed", style=LABEL))
    tree = Tree(Text("bucket", style=LABEL), guide_style=LABEL)
    for bucket, spans in buckets.items():
        branch = tree.add(plain(one_line(bucket), BAD))
        for span in spans:
            leaf = branch.add(_rubric_line(span.rubric or {}))
            trace = judged.get(span.trace_id)
            if trace is not None:
                if prompt := one_line(_prompt_of(trace)):  # missing in traces the user opened
                    leaf.add(Text.assemble(("the answer came from ", LABEL), plain(prompt, STRONG)))
                leaf.add(Text.assemble(("and is in trace ", LABEL), plain(trace.trace_id, ACCENT)))
    return indented(tree)


def prompt_label(metadata: Any) -> str:
    """Return a prompt's name and version from any JSON value."""
    if not isinstance(metadata, Mapping):
        return ""
    return f"{metadata.get('prompt_name') or ''} {metadata.get('prompt_version') or ''}".strip()


def span_head(span: SpanRecord, name: str | None) -> Text:
    """Return kind, name and duration of a span."""
    line = Text.assemble(plain(one_line(str(span.span_type or "span")), STRONG))
    if name and name != span.span_type:
        line.append_text(plain(f"  {one_line(str(name))}"))
    if span.started_at and span.ended_at:
        line.append(f"  {duration_text((span.ended_at - span.started_at).total_seconds())}", style=LABEL)
    return line


def _prompt_of(trace: TraceRecord | TraceSummary) -> str:
    return prompt_label(trace.metadata)


def _rubric_line(rubric: Mapping[str, Any]) -> Text:
    return Text.assemble((f"{rubric.get('score')}  ", BAD), plain(one_line(str(rubric.get("comment", "")))))


def _span_line(span: SpanRecord) -> tuple[Text, tuple[()]]:
    line = span_head(span, span.name)
    if span.input:
        line.append_text(plain(f"  {_snippet(span.input)}", LABEL))
    return line, ()


def _snippet(text: str) -> str:
    line = " ".join(str(text)[: 20 * _SNIPPET].split())
    return line if len(line) <= _SNIPPET else f"{line[:_SNIPPET]}..."
