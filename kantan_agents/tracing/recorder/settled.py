"""Recognises spans that nobody changes after their end, and that hold nothing but texts and numbers.

Most spans of a run are such spans: they are copied and encoded in the writer's thread, so the run does not
wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import getsizeof
from typing import Any

from agents import (
    AgentSpanData,
    FunctionSpanData,
    GuardrailSpanData,
    HandoffSpanData,
    TaskSpanData,
    TurnSpanData,
)
from agents.tracing.spans import SpanImpl

from kantan_agents.tracing.final_span import GenerationSpanData

# What a span and its data take beside the texts of the data.
_SPAN_BYTES = 1_024


def settled_size(span: Any) -> int:
    """Return the bytes that a span takes; 0 if it may change, or may hold other values.

    Only the SDK's own classes are known well enough: a subclass, or a span with an error, is not settled.
    """
    if type(span) is not SpanImpl or span.error is not None:
        return 0
    data = span.span_data
    size_of = _SIZES.get(type(data))
    if size_of is None or getattr(data, "metadata", None) is not None:
        return 0
    size = size_of(data)
    return 0 if size is None else _SPAN_BYTES + size


def _agent(data: AgentSpanData) -> int:
    return _names(data.tools) + _names(data.handoffs)


def _names(names: Sequence[str] | None) -> int:
    return sum(map(getsizeof, names)) if names else 0


def _function(data: FunctionSpanData) -> int | None:
    given, output = data.input, data.output
    if data.mcp_data is not None or type(output) is not str or not (given is None or type(given) is str):
        return None
    return getsizeof(given) + getsizeof(output)


def _generation(data: GenerationSpanData) -> int | None:
    return data.size_of_texts()


def _small(_data: Any) -> int:
    return 0


_SIZES: dict[type, Callable[[Any], int | None]] = {
    AgentSpanData: _agent,
    FunctionSpanData: _function,
    GenerationSpanData: _generation,
    GuardrailSpanData: _small,
    HandoffSpanData: _small,
    TaskSpanData: _small,
    TurnSpanData: _small,
}
