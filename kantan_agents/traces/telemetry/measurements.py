"""The metrics of the conventions."""

from __future__ import annotations

from typing import Any

from opentelemetry.metrics import Meter

from kantan_agents.traces.telemetry import conventions as names
from kantan_agents.traces.telemetry.open_spans import Open

_OF_CALLS = (
    names.OPERATION,
    names.PROVIDER,
    names.REQUEST_MODEL,
    names.RESPONSE_MODEL,
    names.SERVER_ADDRESS,
    names.SERVER_PORT,
)


class Measurements:
    """Records durations and the tokens of model calls."""

    def __init__(self, meter: Meter) -> None:
        def seconds(name: str, description: str) -> Any:
            buckets = list(names.SECONDS_BUCKETS)
            return meter.create_histogram(name, "s", description, explicit_bucket_boundaries_advisory=buckets)

        def tokens(name: str, description: str) -> Any:
            buckets = list(names.TOKEN_BUCKETS)
            return meter.create_histogram(
                name, "{token}", description, explicit_bucket_boundaries_advisory=buckets
            )

        def total(name: str, description: str) -> Any:
            return meter.create_counter(name, "{token}", description)

        self._of_calls = seconds(names.INFERENCE_DURATION, "How long model calls took.")
        self._of_agents = seconds(names.AGENT_DURATION, "How long agents took from input to answer.")
        self._of_tools = seconds(names.TOOL_DURATION, "How long tool calls took.")
        self._per_call = (
            tokens(names.INPUT_TOKENS_OF_CALL, "Input tokens of each model call."),
            tokens(names.OUTPUT_TOKENS_OF_CALL, "Output tokens of each model call."),
        )
        self._totals = {
            names.INPUT_TOKENS: total(names.INPUT_TOKEN_SUM, "Input tokens, with the cached ones."),
            names.OUTPUT_TOKENS: total(names.OUTPUT_TOKEN_SUM, "Output tokens, with those of reasoning."),
            names.CACHE_READ_TOKENS: total(names.CACHE_READ_SUM, "Input tokens that came from a cache."),
            names.REASONING_TOKENS: total(names.REASONING_SUM, "Output tokens of reasoning."),
        }

    def model_call(self, opened: Open, usage: dict[str, int] | None) -> None:
        """Record an ended model call."""
        known = opened.attributes
        labels = {name: known[name] for name in _OF_CALLS if name in known}
        self._of_calls.record(opened.seconds, _with_error(labels, opened), opened.context)
        if usage is None:
            return
        with_modality = {**labels, names.TOKEN_MODALITY: names.UNKNOWN_MODALITY}
        for name, counter in self._totals.items():
            count = usage.get(name, 0)
            if count or name in (names.INPUT_TOKENS, names.OUTPUT_TOKENS):
                counter.add(count, with_modality, opened.context)
        of_input, of_output = self._per_call
        of_input.record(usage.get(names.INPUT_TOKENS, 0), labels, opened.context)
        of_output.record(usage.get(names.OUTPUT_TOKENS, 0), labels, opened.context)

    def agent(self, opened: Open) -> None:
        """Record the end of an agent's work."""
        labels: dict[str, Any] = {names.OPERATION: opened.operation}
        if opened.agent is not None:
            labels[names.AGENT_NAME] = opened.agent
        self._of_agents.record(opened.seconds, _with_error(labels, opened), opened.context)

    def tool(self, opened: Open) -> None:
        """Record the end of a tool call."""
        labels = {names.OPERATION: names.EXECUTE_TOOL, names.TOOL_NAME: opened.attributes[names.TOOL_NAME]}
        self._of_tools.record(opened.seconds, _with_error(labels, opened), opened.context)


def _with_error(labels: dict[str, Any], opened: Open) -> dict[str, Any]:
    return labels if opened.error is None else {**labels, names.ERROR_TYPE: opened.error}
