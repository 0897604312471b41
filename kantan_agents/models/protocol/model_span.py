"""A provider call's generation span, like the SDK's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from agents import ModelResponse, ModelSettings, ModelTracing, SpanError, Usage
from agents.tracing import generation_span
from openai.types.responses import Response

from kantan_agents.models.protocol.translate.openai_responses.provider_data import without_media
from kantan_agents.models.protocol.usage import usage_of


class ModelSpan:
    """Records one model call; content only with ``has_data``."""

    def __init__(self, span: Any, *, has_data: bool) -> None:
        self._span = span
        self._has_data = has_data

    def record_input(self, instructions: str | None, input: str | Iterable[Any]) -> None:
        """Record instructions and input."""
        if self._has_data:
            system = [{"role": "system", "content": instructions}] if instructions else []
            items = [{"role": "user", "content": input}] if isinstance(input, str) else input
            self._span.span_data.input = [*system, *map(without_media, items)]

    def record_output(self, answer: ModelResponse | Response, usage: Usage, metadata: Any) -> None:
        """Record items, usage and model name."""
        data = self._span.span_data
        if self._has_data:
            data.output = [without_media(item.model_dump(exclude_unset=True)) for item in answer.output]
        if usage_of(metadata) is not None:  # otherwise the count is unknown, not 0
            data.usage = {
                "requests": usage.requests,
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "total_tokens": usage.total_tokens,
                "input_tokens_details": usage.input_tokens_details.model_dump(),
                "output_tokens_details": usage.output_tokens_details.model_dump(),
            }
        model = metadata.get("model") if isinstance(metadata, Mapping) else None
        if isinstance(model, str) and model:
            data.model = model

    def record_error(self, error: Exception) -> None:
        """Record a failure."""
        data = {"error": f"{type(error).__name__}: {error}"} if self._has_data else {}
        self._span.set_error(SpanError(message="Error getting response", data=data or None))


@contextmanager
def model_span(provider: str, settings: ModelSettings, tracing: ModelTracing) -> Iterator[ModelSpan]:
    """Open the generation span, if tracing is on."""
    config = settings.to_traceable_dict()
    if not tracing.include_data():
        config.pop("metadata", None)
    with generation_span(model=provider, model_config=config, disabled=tracing.is_disabled()) as span:
        model_call = ModelSpan(span, has_data=tracing.include_data())
        try:
            yield model_call
        except Exception as error:
            model_call.record_error(error)
            raise
