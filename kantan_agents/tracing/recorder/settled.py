"""Recognises spans that nobody changes after their end, and that hold nothing but texts and numbers.

Most spans of a run are such spans: they are copied and encoded in the writer's thread, so the run does not
wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
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
_NAME_BYTES = 16


def settled_size(span: Any) -> int:
    """Return the bytes that a span takes; 0 if it may change, or may hold other values.

    Only the SDK's own classes are known well enough: a subclass, or a span with an error, is not settled.
    """
    # Every run waits for this several times.
    if type(span) is not SpanImpl:
        return 0
    data = span.span_data
    size_of = _SIZES.get(type(data))
    if size_of is None or span.error is not None:
        return 0
    return size_of if isinstance(size_of, int) else size_of(data)


def _agent(data: AgentSpanData) -> int:
    if data.metadata is not None:
        return 0
    # The names themselves are those of tools and hand-offs, which exist anyway.
    return _SPAN_BYTES + _NAME_BYTES * (len(data.tools or ()) + len(data.handoffs or ()))


def _function(data: FunctionSpanData) -> int:
    given, output = data.input, data.output
    if data.mcp_data is not None or type(output) is not str or not (given is None or type(given) is str):
        return 0
    return _SPAN_BYTES + getsizeof(given) + getsizeof(output)


def _generation(data: GenerationSpanData) -> int:
    size = data.size_of_texts()
    return 0 if size is None else _SPAN_BYTES + size


def _step(data: TaskSpanData | TurnSpanData) -> int:
    return 0 if data.metadata is not None else _SPAN_BYTES


_SIZES: dict[type, int | Callable[[Any], int]] = {
    AgentSpanData: _agent,
    FunctionSpanData: _function,
    GenerationSpanData: _generation,
    GuardrailSpanData: _SPAN_BYTES,
    HandoffSpanData: _SPAN_BYTES,
    TaskSpanData: _step,
    TurnSpanData: _step,
}
