"""Computes the rows of ``traces`` that a batch adds or changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kantan_agents.traces.recorder.plain_json import decode, encode_metadata
from kantan_agents.traces.recorder.rows import SpanRow

TraceRow = tuple[Any, ...]  # in the order of schema.COLUMNS["traces"]

_ONLY_USAGE = '{"usage_total": '


def merge_traces(
    found: Mapping[str, TraceRow], traces: Iterable[TraceRow], spans: Sequence[SpanRow]
) -> list[TraceRow]:
    """Return the new and changed rows of traces, by first appearance.

    A span with an unknown trace adds a row with only the id, as in kantan-llm. A trace that arrives later,
    such as from the parent of a forked process, replaces it.
    """
    changed: dict[str, TraceRow] = {}
    for row in traces:
        before = changed.get(row[0]) or found.get(row[0])
        if before is None:
            changed[row[0]] = row
        elif _is_stub(before):
            changed[row[0]] = _replace_stub(before, row)
    used: dict[str, list[dict[str, Any]]] = {}
    for span in spans:
        trace_id = span.values[1]
        if trace_id not in changed and trace_id not in found:
            changed[trace_id] = (trace_id, trace_id, None, "null")
        if span.usage:
            used.setdefault(trace_id, []).append(span.usage)
    for trace_id, usages in used.items():
        *rest, metadata = changed.get(trace_id) or found[trace_id]
        changed[trace_id] = (*rest, _add_usage(metadata, usages))
    return list(changed.values())


def _is_stub(row: TraceRow) -> bool:
    trace_id, name, group_id, metadata = row
    is_bare = metadata in (None, "null") or metadata.startswith(_ONLY_USAGE)
    return bool(name == trace_id and group_id is None and is_bare)


def _replace_stub(stub: TraceRow, row: TraceRow) -> TraceRow:
    total = _usage_total(_metadata_of(stub[-1]))
    return (*row[:-1], _add_usage(row[-1], [total])) if total else row


def _add_usage(metadata_json: str | None, usages: Iterable[Mapping[str, Any]]) -> str:
    metadata = _metadata_of(metadata_json)
    total = _usage_total(metadata)
    for usage in usages:
        for name, value in usage.items():
            if isinstance(value, (int, float)):
                before = total.get(name)
                total[name] = (before if isinstance(before, (int, float)) else 0) + value
    metadata["usage_total"] = total
    return encode_metadata(metadata)


def _usage_total(metadata: Mapping[str, Any]) -> dict[str, Any]:
    total = metadata.get("usage_total")
    return total if isinstance(total, dict) else {}


def _metadata_of(text: str | None) -> dict[str, Any]:
    try:
        metadata = decode(text or "null")
    except ValueError:
        return {}
    return metadata if isinstance(metadata, dict) else {}
