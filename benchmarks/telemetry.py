"""Measures what a run waits for with the exporter to OpenTelemetry, against a processor that does nothing.

    python benchmarks/telemetry.py [--repeats 31] [--quick]

Two sides take turns in short batches; a ratio is the median of the ratios of neighbouring batches, and
``A/A`` the side without the exporter against itself. Spans go over HTTP to a receiver in another process.

- at the caller: batches so short that the exporter's threads work only after the timed part;
- sustained: batches during which they work and compete with the runs for the interpreter lock.

The last rows are what others cost in the same run: as many bare spans of OpenTelemetry as the exporter
starts, and the official instrumentation, if it is installed. Missed goals are listed at the end, and the exit
code is then 1, except with ``--quick``.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from agents import OpenAIResponsesModel, set_trace_processors
from agents.tracing import TracingProcessor
from kantan_llm.tracing import NoOpTracer
from openai import AsyncOpenAI
from rich.console import Console

if __name__ == "__main__":
    # Not this folder, whose statistics.py would hide that of the standard library.
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from benchmarks.measure import Measure, Rows, RunOnce, compare, environment
from benchmarks.overhead import make_tools, pair
from benchmarks.trace_runs import seconds_of, traced_tool_turn, waiting_turn
from kantan_agents import OtelExporter

GOAL = 1.10
FLUSH_SECONDS = 60.0
QUEUE = "100000"
SHORT_SECONDS = 0.05
LONG_SECONDS = 1.0
WIDTHS = (46, 14, 8, 8, 8)

RECEIVER = """
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()
    def log_message(self, *arguments): ...
server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
"""


def started(*command: str) -> str:
    """Start a Python program that prints its URL, and return that. The program ends after this one."""
    program = subprocess.Popen(
        [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
    )
    assert program.stdout is not None
    # Registered before the exporter's own hook, and so called after it.
    atexit.register(program.communicate)
    atexit.register(program.terminate)
    return program.stdout.readline().strip()


class BareSpans(TracingProcessor):
    """Starts and ends a span of OpenTelemetry for each one of the exporter, and says nothing on it."""

    def __init__(self, exporter: OtelExporter) -> None:
        self._tracer = exporter.tracer_provider.get_tracer("bare")
        self._open: dict[str, Any] = {}

    def on_trace_start(self, trace: Any) -> None:
        """Start a span."""
        self._open[trace.trace_id] = self._tracer.start_span("invoke_agent")

    def on_trace_end(self, trace: Any) -> None:
        """End it."""
        self._open.pop(trace.trace_id).end()

    def on_span_start(self, span: Any) -> None:
        """Start a span."""
        if span.span_data.type in ("function", "generation", "response"):
            self._open[span.span_id] = self._tracer.start_span(span.span_data.type)

    def on_span_end(self, span: Any) -> None:
        """End it."""
        started = self._open.pop(span.span_id, None)
        if started is not None:
            started.end()

    def shutdown(self) -> None:
        """Do nothing."""

    def force_flush(self) -> None:
        """Do nothing."""


def official(exporter: OtelExporter) -> TracingProcessor | None:
    """Return the processor of the official instrumentation, with its defaults; None if it is missing."""
    try:
        from opentelemetry.instrumentation.openai_agents import OpenAIAgentsInstrumentor
    except ImportError:
        return None
    from agents.tracing import get_trace_provider

    set_trace_processors([])
    OpenAIAgentsInstrumentor().instrument(
        tracer_provider=exporter.tracer_provider, meter_provider=exporter.meter_provider
    )
    multi: Any = getattr(get_trace_provider(), "_multi_processor")  # noqa: B009 - private
    (processor,) = multi._processors
    return processor  # type: ignore[no-any-return]


def measure(run: RunOnce, processor: Any, exporter: OtelExporter) -> Measure:
    """Return the measure of a run with a processor; what waits is sent after the timed part."""

    async def batch(count: int) -> float:
        seconds = await seconds_of(run, count, processor)
        if not exporter.force_flush(FLUSH_SECONDS):
            raise RuntimeError(f"spans were not sent: {exporter.stats()}")
        return seconds

    return batch


def over_http(url: str) -> RunOnce:
    """Return a run that calls a tool, with a real client and the Responses API."""
    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
    return pair(OpenAIResponsesModel("gpt-4.1", client), make_tools(1))[1]


class Bench:
    """Measures pairs of sides and prints rows."""

    def __init__(self, console: Console, repeats: int) -> None:
        self._repeats = repeats
        self._rows = Rows(console, "run", "no-op", "ratio", "A/A", "goal", widths=WIDTHS)
        self.missed: list[str] = []

    async def row(
        self,
        name: str,
        run: RunOnce,
        processor: Any,
        exporter: OtelExporter,
        *,
        goal: float | None,
        seconds: float,
    ) -> None:
        """Measure a processor against one that does nothing."""
        idle, again = (measure(run, NoOpTracer(), exporter) for _ in range(2))
        await idle(3)
        start = time.perf_counter()
        await idle(5)
        count = max(2, int(seconds / ((time.perf_counter() - start) / 5)))
        repeats = max(3, self._repeats // (1 if seconds == SHORT_SECONDS else 4))
        plain, ratio = await compare(idle, measure(run, processor, exporter), repeats, count)
        _, noise = await compare(idle, again, repeats, count)
        if goal is not None and ratio > goal:
            self.missed.append(name)
        shown = "-" if goal is None else f"{goal:.2f}"
        self._rows.row(name, f"{plain * 1e6:,.0f} us", f"{ratio:.2f}", f"{noise:.2f}", shown)


async def main(repeats: int, *, quick: bool) -> int:
    """Measure everything; return the exit status."""
    console = Console(width=110, highlight=False, markup=False, soft_wrap=True)
    console.print(environment("openai-agents", "openai", "opentelemetry-sdk"))
    models = started("-m", "benchmarks.peers.model_server")
    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = started("-c", RECEIVER)
    os.environ["OTEL_BSP_MAX_QUEUE_SIZE"] = QUEUE
    exporter, with_content = OtelExporter(content=False), OtelExporter(content=True)
    bench = Bench(console, repeats)
    http, fast = over_http(models), traced_tool_turn()
    runs: list[tuple[str, RunOnce, Any, OtelExporter, float | None, float]] = [
        ("tool call over HTTP, at the caller", http, exporter, exporter, GOAL, SHORT_SECONDS),
        ("tool call over HTTP, sustained", http, exporter, exporter, None, LONG_SECONDS),
        ("tool call over HTTP, with content", http, with_content, with_content, None, SHORT_SECONDS),
        ("tool call, model answers at once", fast, exporter, exporter, None, SHORT_SECONDS),
        ("the same, sustained", fast, exporter, exporter, None, LONG_SECONDS),
        ("one turn, model answers at once", waiting_turn(0.0), exporter, exporter, None, SHORT_SECONDS),
        ("tool call, at once: four bare spans", fast, BareSpans(exporter), exporter, None, SHORT_SECONDS),
    ]
    other = official(exporter)
    if other is not None:
        runs.append(("tool call, at once: official", fast, other, exporter, None, SHORT_SECONDS))
        runs.append(("tool call over HTTP: official", http, other, exporter, None, SHORT_SECONDS))
    for name, run, processor, its_exporter, goal, seconds in runs:
        await bench.row(name, run, processor, its_exporter, goal=goal, seconds=seconds)
    set_trace_processors([])
    for name in bench.missed:
        console.print(f"MISSED: {name}")
    return 0 if quick or not bench.missed else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=31, help="batches per side")
    parser.add_argument(
        "--quick", action="store_true", help="check that it works; the figures are not precise"
    )
    arguments = parser.parse_args()
    sys.exit(asyncio.run(main(3 if arguments.quick else arguments.repeats, quick=arguments.quick)))
