"""The context of OpenTelemetry: of the request around a run, in its tools, and in calls to other services."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from agents import custom_span, function_tool, set_trace_processors
from agents import trace as sdk_trace
from fastapi import FastAPI, Request
from opentelemetry import baggage, trace
from opentelemetry import context as contexts
from opentelemetry.propagate import extract
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from kantan_agents import Agent, OtelExporter, trace_headers
from kantan_agents.testing import ScriptedToolCall
from kantan_agents.traces.telemetry import conventions as names

Make = Callable[..., Agent]


class App:
    """An application that has set up OpenTelemetry itself."""

    def __init__(self, **options: Any) -> None:
        self.kept = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False, **options)
        self.provider.add_span_processor(SimpleSpanProcessor(self.kept))
        self.tracer = self.provider.get_tracer("app")
        self.exporter = OtelExporter(tracer_provider=self.provider)
        set_trace_processors([self.exporter])

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        assert self.exporter.force_flush()
        return {span.name: span for span in self.kept.get_finished_spans()}

    def is_child(self, child: str, parent: str) -> bool:
        spans = self.spans
        of_parent, above = spans[parent].context, spans[child].parent
        assert of_parent is not None
        return above is not None and above.span_id == of_parent.span_id


@pytest.fixture
def app() -> Iterator[App]:
    yield App()
    assert not trace.get_current_span().get_span_context().is_valid, "nothing is left behind"


RUN, TOOL = "invoke_agent support", "execute_tool work"


def using(app: App, support: Make) -> Agent:
    @function_tool
    async def work() -> str:
        """Work."""
        with app.tracer.start_as_current_span("in the tool"):
            return "done"

    return support(ScriptedToolCall("work", {}), "Ok.", tools=[work])


async def test_a_run_in_a_request_is_a_child_of_its_span(app: App, support: Make) -> None:
    agent, service = using(app, support), FastAPI()

    @service.middleware("http")
    async def traced(request: Request, call_next: Any) -> Any:
        around = extract(dict(request.headers))
        with app.tracer.start_as_current_span(f"POST {request.url.path}", around):
            return await call_next(request)

    @service.post("/ask")
    async def ask() -> str:
        context = await agent.run_async("Go")
        return str(context["result"].final_output)

    headers = {"traceparent": f"00-{'4b' * 16}-{'0f' * 8}-01"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(service), base_url="http://app") as client:
        answer = await client.post("/ask", headers=headers)
    assert answer.json() == "Ok."
    assert app.is_child(RUN, "POST /ask")
    assert app.is_child(TOOL, RUN)
    assert app.is_child("in the tool", TOOL)
    assert {format(span.context.trace_id, "032x") for span in app.spans.values() if span.context} == {
        "4b" * 16
    }


async def test_concurrent_requests_stay_apart(app: App, support: Make) -> None:
    def reply(_: Any) -> str:
        return "Ok."

    agent = support(*[reply] * 20)

    async def request(number: int) -> None:
        with app.tracer.start_as_current_span(f"request {number}") as around:
            await agent.run_async("Go")
            assert trace.get_current_span() is around

    await asyncio.gather(*map(request, range(20)))
    app.exporter.force_flush()
    spans = app.kept.get_finished_spans()
    by_id = {span.context.span_id: span for span in spans if span.context}
    runs = [span for span in spans if span.name == RUN]
    assert sorted(by_id[run.parent.span_id].name for run in runs if run.parent) == sorted(
        f"request {number}" for number in range(20)
    )


def test_a_sync_run_is_a_child_too(app: App, support: Make) -> None:
    with app.tracer.start_as_current_span("script"):
        using(app, support).run("Go")
    assert app.is_child(RUN, "script")
    assert app.is_child("in the tool", TOOL)


async def test_a_streamed_run_is_a_child_too(app: App, support: Make) -> None:
    with app.tracer.start_as_current_span("script") as around:
        async with using(app, support).stream("Go") as run:
            async for _ in run:
                pass
        assert trace.get_current_span() is around
    assert app.is_child(RUN, "script")
    assert app.is_child("in the tool", TOOL)


async def test_a_stream_that_is_left_early_leaves_no_span_behind(app: App, support: Make) -> None:
    with app.tracer.start_as_current_span("script") as around:
        async with using(app, support).stream("Go") as run:
            async for _ in run:
                break
        assert trace.get_current_span() is around
    assert app.is_child(RUN, "script")


async def test_a_run_inside_a_span_of_a_tool_is_below_that_span(app: App, support: Make) -> None:
    inner = support("Found.", name="inner")

    @function_tool
    async def ask() -> str:
        """Ask."""
        with app.tracer.start_as_current_span("look up"):
            context = await inner.run_async("Go")
            return str(context["result"].final_output)

    await support(ScriptedToolCall("ask", {}), "Ok.", tools=[ask]).run_async("Go")
    assert app.is_child("invoke_agent inner", "look up")
    assert app.is_child("look up", "execute_tool ask")


async def test_tasks_and_threads_of_a_tool_are_below_it(app: App, support: Make) -> None:
    def in_thread() -> None:
        with app.tracer.start_as_current_span("thread"):
            pass

    async def in_task() -> None:
        with app.tracer.start_as_current_span("task"):
            await asyncio.to_thread(in_thread)

    @function_tool
    async def work() -> str:
        """Work."""
        await asyncio.create_task(in_task())
        return "done"

    await support(ScriptedToolCall("work", {}), "Ok.", tools=[work]).run_async("Go")
    assert app.is_child("task", TOOL)
    assert app.is_child("thread", "task")


async def test_a_sync_tool_is_current_in_its_thread(app: App, support: Make) -> None:
    @function_tool
    def work() -> str:
        """Work."""
        with app.tracer.start_as_current_span("in the thread"):
            return "done"

    await support(ScriptedToolCall("work", {}), "Ok.", tools=[work]).run_async("Go")
    assert app.is_child("in the thread", TOOL)


async def test_baggage_reaches_the_tools(app: App, support: Make) -> None:
    seen: list[Any] = []

    @function_tool
    async def work() -> str:
        """Work."""
        seen.append(baggage.get_baggage("tenant"))
        return "done"

    token = contexts.attach(baggage.set_baggage("tenant", "acme"))
    try:
        await support(ScriptedToolCall("work", {}), "Ok.", tools=[work]).run_async("Go")
    finally:
        contexts.detach(token)
    assert seen == ["acme"]


@pytest.mark.parametrize("order", ["abba", "abab"])
def test_spans_that_end_in_any_order_leave_nothing_behind(app: App, order: str) -> None:
    def work() -> None:
        with sdk_trace("w"):
            first, second = custom_span("a"), custom_span("b")
            spans = iter([first, second])
            done: set[str] = set()
            for name in order:
                if name not in done:
                    done.add(name)
                    next(spans).start(mark_as_current=True)
                else:
                    {"a": first, "b": second}[name].finish()
            assert trace.get_current_span().get_span_context().is_valid
        assert not trace.get_current_span().get_span_context().is_valid

    contextvars.copy_context().run(work)  # the SDK's own current span is left behind
    assert app.is_child("a", "invoke_workflow w")


def test_a_span_that_ends_in_another_context_leaves_that_one_alone(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    with sdk_trace("w"):
        span = custom_span("a")
        contextvars.copy_context().run(span.start, mark_as_current=True)
        before = trace.get_current_span()
        contextvars.Context().run(span.finish)
        assert trace.get_current_span() is before
    assert not caplog.records, "such as the SDK's own: Failed to detach context"
    assert app.is_child("a", "invoke_workflow w")


async def test_an_abandoned_generator_is_no_error(app: App, caplog: pytest.LogCaptureFixture) -> None:
    async def generate() -> Any:
        with sdk_trace("w"), custom_span("a"):
            yield 1
            yield 2

    started = generate()
    assert await asyncio.create_task(started.__anext__()) == 1
    await asyncio.create_task(started.aclose())
    assert set(app.spans) == {"a", "invoke_workflow w"}
    assert not caplog.records


async def test_unsampled_runs_send_nothing_and_pass_the_decision_on(support: Make) -> None:
    app = App(sampler=ALWAYS_OFF)
    seen: list[str] = []

    @function_tool
    async def work() -> str:
        """Work."""
        seen.append(trace_headers()["traceparent"])
        return "done"

    await support(ScriptedToolCall("work", {}), "Ok.", tools=[work]).run_async("Go")
    assert app.spans == {}
    assert int(seen[0].rpartition("-")[2], 16) % 2 == 0


@contextmanager
def service() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Start an HTTP service that takes part in the trace; yield its URL and the headers it gets."""
    got: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            got.append(dict(self.headers))
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", got
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def test_an_http_tool_passes_the_trace_on(app: App, support: Make) -> None:
    with service() as (url, got):

        @function_tool
        async def fetch() -> str:
            """Fetch."""
            async with httpx.AsyncClient() as client:
                return (await client.get(url, headers=trace_headers({"x-own": "1"}))).text

        await support(ScriptedToolCall("fetch", {}), "Ok.", tools=[fetch]).run_async("Go")
    tool = app.spans["execute_tool fetch"].context
    assert tool is not None
    assert got[0]["traceparent"] == f"00-{tool.trace_id:032x}-{tool.span_id:016x}-{tool.trace_flags:02x}"
    assert got[0]["x-own"] == "1"


def test_without_a_span_there_are_no_headers() -> None:
    assert trace_headers() == {}
    assert trace_headers({"a": "b"}) == {"a": "b"}


async def test_the_trace_id_of_the_run_is_on_every_span(app: App, support: Make) -> None:
    await using(app, support).run_async("Go")
    ours = [span for name, span in app.spans.items() if name != "in the tool"]
    assert len({(span.attributes or {})[names.TRACE_ID] for span in ours}) == 1
