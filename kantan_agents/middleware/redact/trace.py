"""Record a model call in the trace with redacted texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from agents import generation_span
from agents.models.interface import ModelTracing

from kantan_agents.core.interception import ModelCall

Record = Callable[[Any], None]


@contextmanager
def redacted_span(call: ModelCall, redact: Callable[[Any], Any]) -> Iterator[Record]:
    """Record a model call in a span around the model's own span, which then records no texts.

    The model records its answer before a middleware can redact it.

    Args:
        call: The call, with its input redacted for the model.
        redact: Returns the input as it is recorded.

    Yields:
        A function that records the redacted answer.
    """
    tracing = call.options.get("tracing")
    if not isinstance(tracing, ModelTracing) or not tracing.include_data():
        yield lambda _: None
        return
    options = call.options
    call.options = {**options, "tracing": ModelTracing.ENABLED_WITHOUT_DATA}
    with generation_span(input=redact(_messages(call.input)), model=call.agent) as span:

        def record(answer: Any) -> None:
            span.span_data.output = [_data(item) for item in answer.output]

        try:
            yield record
        finally:
            call.options = options


def _messages(input: Any) -> list[Any]:
    if isinstance(input, str):
        return [{"role": "user", "content": input}]
    return [_data(item) for item in input]


def _data(item: Any) -> Any:
    return item.model_dump(mode="json", exclude_unset=True) if hasattr(item, "model_dump") else item
