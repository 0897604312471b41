"""The SDK's spans of tasks and turns, which show a reader little."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kantan_llm.tracing import SpanRecord

_SDK_SPANS = ("task", "turn")


def without_sdk_spans(spans: Sequence[SpanRecord]) -> list[SpanRecord]:
    """Drop the SDK's spans and move their children up.

    Spans with an error stay: it may be recorded nowhere else.
    """
    return without_spans(spans, {span.span_id for span in spans if is_sdk_span(span) and not span.error})


def without_spans(spans: Sequence[SpanRecord], ids: Collection[str]) -> list[SpanRecord]:
    """Drop these spans; move their children up."""
    hidden = {span.span_id: span.parent_id for span in spans if span.span_id in ids}
    kept = [span for span in spans if span.span_id not in hidden]
    return [replace(span, parent_id=_shown_parent(span.parent_id, hidden)) for span in kept]


def _shown_parent(parent: str | None, hidden: dict[str, str | None]) -> str | None:
    seen: set[str | None] = set()
    while parent in hidden and parent not in seen:  # only a damaged database has cycles
        seen.add(parent)
        parent = hidden[parent]
    return None if parent in seen else parent


def is_sdk_span(span: SpanRecord) -> bool:
    """Return whether the SDK added this span around a task or turn."""
    raw = span.raw if isinstance(span.raw, Mapping) else {}
    data = raw.get("span_data")
    own = data.get("data") if isinstance(data, Mapping) else None
    return isinstance(own, Mapping) and own.get("sdk_span_type") in _SDK_SPANS
