"""Reads a model's answer from the span of its call, for any API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from kantan_agents.core.answers import answer_items, answer_text, is_item
from kantan_agents.core.items import is_answer, is_reasoning, parsed
from kantan_agents.traces.input_items import item_text

if TYPE_CHECKING:
    from kantan_llm.tracing import SpanRecord

MODEL_SPANS: Final = frozenset({"response", "generation"})
"""A run also ends with a ``generation`` span, which has no model."""


@attrs.frozen
class SpanAnswer:
    """The answer of a model."""

    items: Sequence[Mapping[str, Any]]

    @property
    def text(self) -> str:
        """Its text."""
        return answer_text(self.items)

    @property
    def calls(self) -> list[str]:
        """Its items except text and reasoning, as strings."""
        return [item_text(item) for item in self.items if not (is_answer(item) or is_reasoning(item))]

    def __str__(self) -> str:
        return self.text or "\n".join(self.calls)


def read_answer(span: SpanRecord) -> SpanAnswer | None:
    """Return a model call's answer; None for other or unreadable spans."""
    if span.span_type not in MODEL_SPANS or span.output is None:
        return None
    data = span.raw.get("span_data") if isinstance(span.raw, Mapping) else None
    if isinstance(data, Mapping):
        if span.span_type == "generation" and data.get("model") is None:
            return None  # the end of a run, or not the SDK's
        output = data.get("output")
    else:  # a span that was read without its data
        output = parsed(span.output)
    items = answer_items(output)
    return SpanAnswer(items) if items and all(map(is_item, items)) else None
