"""What type checkers infer of the exporter to OpenTelemetry."""

from __future__ import annotations

from opentelemetry.sdk.trace import TracerProvider
from typing_extensions import assert_type

from kantan_agents import (
    OtelExporter,
    SQLiteRecorder,
    mcp_trace_meta,
    record_traces,
    trace_headers,
)
from kantan_agents.traces.telemetry import OtelStats


def send(provider: TracerProvider) -> None:
    exporter = OtelExporter(
        tracer_provider=provider, content=True, redact=lambda record: record, user_key="user"
    )
    assert_type(record_traces("traces.sqlite3", otel=exporter, flush_interval=0.1), SQLiteRecorder)
    assert_type(record_traces(otel=True), SQLiteRecorder)
    assert_type(exporter.force_flush(1.0), bool)
    assert_type(exporter.stats(), OtelStats)
    assert_type(exporter.stats().dropped, int)


def pass_on() -> None:
    assert_type(trace_headers({"x-own": "1"}), dict[str, str])
    mcp_trace_meta()
