"""Recognizes spans that cannot change, or whose content is quick to copy.

Most spans hold only strings and numbers, so the writer's thread encodes them.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable
from sys import getsizeof
from time import monotonic
from typing import Any

import agents
import msgspec
from agents import (
    AgentSpanData,
    FunctionSpanData,
    GuardrailSpanData,
    HandoffSpanData,
    TaskSpanData,
    TurnSpanData,
)
from agents.tracing.spans import SpanImpl

from kantan_agents.traces.final_span import GenerationSpanData

# Size of a span and its data without its strings.
_SPAN_BYTES = 1_024
_NAME_BYTES = 16
# Counted twice: the span and the copy.
_TIMES_COPIED = 2
# Longer content is encoded immediately instead.
_LONGEST_COPIED = 65_536
_MOST_MESSAGES = 100
# Later formats store a repeated object once, which falsifies the length.
_FORMAT = 2


# Runs would wait for the garbage collector, so it ignores these: nothing in them may refer to them.
class SettledSpan(msgspec.Struct, eq=False, gc=False):
    """A span that cannot change, encoded when it is written.

    ``size`` is its bytes in the queue; ``contents`` is a copy, if only that may change.
    """

    span: Any
    size: int
    queued_at: float
    contents: bytes | None = None

    @property
    def id(self) -> str:
        """Id of the span."""
        span_id: str = self.span.span_id
        return span_id


def settled_span(span: Any, data: Any) -> SettledSpan | None:
    """Return a span that cannot change, or None.

    A subclass of the SDK's classes, or a span with an error, is not settled.
    """
    # Every run waits for this several times.
    if type(span) is not SpanImpl or span.error is not None:
        return None
    kind = type(data)
    if kind is agents.GenerationSpanData:
        contents = copied_contents(data)
        if contents is None:
            return None
        return SettledSpan(span, _SPAN_BYTES + _TIMES_COPIED * len(contents), monotonic(), contents)
    size_of = _SIZES.get(kind)
    if size_of is None:
        return None
    size = size_of if isinstance(size_of, int) else size_of(data)
    return SettledSpan(span, size, monotonic()) if size else None


def copied_contents(data: agents.GenerationSpanData) -> bytes | None:
    """Copy a model call's content; None if it is long, or not only data.

    Objects with a buffer, such as a NumPy number, become bytes.
    """
    # Nothing else in Python copies data as fast.
    try:
        if data.input is not None and len(data.input) > _MOST_MESSAGES:
            return None
        fields: Any = (data.input, data.output, data.model, data.model_config, data.usage)
        copied = marshal.dumps(fields, _FORMAT)
    except Exception:  # noqa: BLE001 - an object of another type, nested too deeply, or no messages
        return None
    return copied if len(copied) <= _LONGEST_COPIED else None


def data_of(contents: bytes) -> dict[str, Any]:
    """Return the export for copied content."""
    return agents.GenerationSpanData(*marshal.loads(contents)).export()  # noqa: S302 - of this process


def _agent(data: AgentSpanData) -> int:
    if data.metadata is not None:
        return 0
    # Tools and handoffs own the name strings.
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
