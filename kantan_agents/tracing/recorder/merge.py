"""What becomes of the traces in the file when a batch is added to it; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kantan_agents.tracing.recorder.output_parts import add_usage, usage_total
from kantan_agents.tracing.recorder.rows import SpanRow

TraceRow = tuple[Any, ...]  # in the order of schema.COLUMNS["traces"]

_USAGE_ALONE = '{"usage_total": '


def merged(
    found: Mapping[str, TraceRow], traces: Iterable[TraceRow], spans: Sequence[SpanRow]
) -> list[TraceRow]:
    """Return the rows of traces that are new or change, in the order in which they first appeared.

    A span whose trace is not there yet gets a row for it with nothing but the id, as kantan-llm does it: a
    stub. When the trace comes after all, from the parent of a forked process for example, it takes its place.

    Args:
        found: Those that are in the file already, of ``traces`` and of the traces of ``spans``.
        traces: Traces to add.
        spans: Spans to add; their usage is added to the sum that kantan-llm keeps in a trace's metadata.
    """
    changed: dict[str, TraceRow] = {}
    for row in traces:
        before = changed.get(row[0]) or found.get(row[0])
        if before is None:
            changed[row[0]] = row
        elif _is_stub(before):
            changed[row[0]] = _instead_of(before, row)
    used: dict[str, list[dict[str, Any]]] = {}
    for span in spans:
        trace_id = span.values[1]
        if trace_id not in changed and trace_id not in found:
            changed[trace_id] = (trace_id, trace_id, None, "null")
        if span.usage:
            used.setdefault(trace_id, []).append(span.usage)
    for trace_id, usages in used.items():
        *rest, metadata = changed.get(trace_id) or found[trace_id]
        changed[trace_id] = (*rest, add_usage(metadata, usages))
    return list(changed.values())


def _is_stub(row: TraceRow) -> bool:
    trace_id, name, group_id, metadata = row
    is_bare = metadata in (None, "null") or metadata.startswith(_USAGE_ALONE)
    return bool(name == trace_id and group_id is None and is_bare)


def _instead_of(stub: TraceRow, row: TraceRow) -> TraceRow:
    total = usage_total(stub[-1])
    return (*row[:-1], add_usage(row[-1], [total])) if total else row
