"""The exporter beside the official instrumentation, on the same runs: what a collector gets from each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from agents import function_tool, set_trace_processors
from agents.tracing import TracingProcessor, get_trace_provider
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from kantan_agents import Agent, OtelExporter, Prompt
from kantan_agents.testing import OfflineServer
from tests.traces.telemetry.receiver import Receiver, receiving


@function_tool
def find_order(number: int) -> str:
    """Find an order."""
    return f"Order {number}"


@attrs.frozen
class Side:
    """What one of them has sent of a run."""

    receiver: Receiver

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.receiver.spans]

    @property
    def attributes(self) -> set[str]:
        return {name for span in self.receiver.spans for name in span.attributes}

    def has(self, attribute: str) -> int:
        return sum(attribute in span.attributes for span in self.receiver.spans)


@pytest.fixture(autouse=True)
def _default_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)
    # Another test of this process may have set up OpenTelemetry, which OtelExporter would use.
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", None)
    monkeypatch.setattr("opentelemetry.metrics._internal._METER_PROVIDER", None)
    yield
    set_trace_processors([])


def run() -> None:
    with OfflineServer([{"tool": "find_order", "arguments": {"number": 7}}, "On its way."]) as server:
        prompt = Prompt("support", "v3", "Help.")
        Agent("support", prompt, model=server.bundle(), tools=[find_order]).run("Where is order 7?")


def official(url: str) -> Any:
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces")))
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{url}/v1/metrics"))
    meters = MeterProvider([reader], shutdown_on_exit=False)
    set_trace_processors([])
    OpenAIAgentsInstrumentor().instrument(tracer_provider=tracers, meter_provider=meters)
    multi: Any = get_trace_provider()
    (processor,) = multi._multi_processor._processors
    return processor, tracers, meters


@pytest.fixture
def sides(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Side, Side]]:
    """What ours and theirs have sent of the same run, both in the list of the SDK at once."""
    with receiving() as ours, receiving() as theirs:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", ours.url)
        exporter = OtelExporter(flush_on_sigterm=False)
        processor, tracers, meters = official(theirs.url)
        both: list[TracingProcessor] = [exporter, processor]
        set_trace_processors(both)
        run()
        assert exporter.force_flush(30)
        tracers.force_flush()
        meters.force_flush()
        yield Side(ours), Side(theirs)
        OpenAIAgentsInstrumentor().uninstrument()
        tracers.shutdown()
        meters.shutdown()


def test_both_send_the_calls_and_only_ours_the_prompt_the_metadata_and_the_trace_id(
    sides: tuple[Side, Side],
) -> None:
    ours, theirs = sides
    print("\nours  ", ours.names, len(ours.attributes), sorted(ours.receiver.metrics))
    print("theirs", theirs.names, len(theirs.attributes), sorted(theirs.receiver.metrics))
    for name in sorted(ours.attributes | theirs.attributes):
        print(f"  {name}: {ours.has(name)} {theirs.has(name)}")
    chat = "chat offline-model"
    assert ours.names == ["invoke_agent support", chat, "execute_tool find_order", chat]
    assert ours.has("gen_ai.prompt.version") == 3
    assert theirs.has("gen_ai.prompt.version") == 0
    assert ours.has("kantan_agents.trace_id") == 4
    assert theirs.has("kantan_agents.metadata.agent_run_id") == 0
    assert ours.has("gen_ai.usage.input_tokens") == 3
