"""How records from the trace database look: kantan-llm's records in, rich renderables out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from kantan_agents.cli.terminal import ACCENT, BAD, LABEL, STRONG, indented, plain

if TYPE_CHECKING:
    from kantan_llm.tracing import SpanRecord, TraceRecord

_SNIPPET = 24


def traces_view(traces: Sequence[TraceRecord]) -> RenderableType:
    """Return traces as a table, with ids that can be copied."""
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
    """Return the spans of a trace as a tree: kind, name, how long it took, and what went in."""
    tree = Tree(plain(trace_id, ACCENT), guide_style=LABEL)
    waiting = sorted(spans, key=lambda span: str(span.started_at))
    known = {span.span_id for span in waiting}
    branches: dict[str | None, Tree] = {}
    # Parents are stored after their children, and two may carry the same time, so a span whose parent
    # has no branch yet waits for the next round; each round places at least one.
    while waiting:
        later = []
        for span in waiting:
            parent = branches.get(span.parent_id) if span.parent_id in known else tree
            if parent is None:
                later.append(span)
            else:
                branches[span.span_id] = parent.add(_span_line(span))
        if len(later) == len(waiting):
            break  # a cycle, which only a damaged database can hold
        waiting = later
    return indented(tree)


def failures_view(
    buckets: Mapping[str, Sequence[SpanRecord]], judged: Mapping[str, TraceRecord | None]
) -> RenderableType:
    """Return failed judge spans by bucket, each with the prompt version whose answer was judged.

    Args:
        buckets: What kantan-llm's ``group_failed_by_bucket`` returns.
        judged: For the trace id of each judge, the trace of the answer it judged.
    """
    if not buckets:
        return indented(Text("nothing failed", style=LABEL))
    tree = Tree(Text("bucket", style=LABEL), guide_style=LABEL)
    for bucket, spans in buckets.items():
        branch = tree.add(plain(bucket, BAD))
        for span in spans:
            leaf = branch.add(_rubric_line(span.rubric or {}))
            trace = judged.get(span.trace_id)
            if trace is not None:
                leaf.add(Text.assemble(("the answer came from ", LABEL), plain(_prompt_of(trace), STRONG)))
                leaf.add(Text.assemble(("and stands in ", LABEL), plain(trace.trace_id, ACCENT)))
    return indented(tree)


def _prompt_of(trace: TraceRecord) -> str:
    metadata = trace.metadata or {}
    return f"{metadata.get('prompt_name', '')} {metadata.get('prompt_version', '')}".strip()


def _rubric_line(rubric: Mapping[str, Any]) -> Text:
    return Text.assemble((f"{rubric.get('score')}  ", BAD), plain(rubric.get("comment", "")))


def _span_line(span: SpanRecord) -> Text:
    line = Text.assemble(plain(span.span_type or "span", STRONG))
    if span.name and span.name != span.span_type:
        line.append_text(plain(f"  {span.name}"))
    if span.started_at and span.ended_at:
        milliseconds = (span.ended_at - span.started_at).total_seconds() * 1000
        line.append(f"  {milliseconds:.0f} ms", style=LABEL)
    if span.input:
        line.append_text(plain(f"  {_snippet(span.input)}", LABEL))
    return line


def _snippet(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SNIPPET else f"{line[:_SNIPPET]}..."
