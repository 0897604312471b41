"""openinference and logfire beside the recorder: who receives which run, and what its spans contain."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import agents
import attrs
import logfire
import pytest
from agents import RunConfig, add_trace_processor, set_trace_processors
from agents.tracing import TracingProcessor, get_trace_provider, set_trace_provider
from kantan_llm.tracing import set_trace_processors as set_kantan_processors
from openinference.instrumentation import TraceConfig
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry import trace as trace_api
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from pydantic import BaseModel

from kantan_agents import RUBRIC, Agent, SQLiteRecorder, TraceStore, record_traces
from kantan_agents.middleware import Redact
from kantan_agents.testing import OfflineServer
from kantan_agents.traces.registry import recorders
from tests.docs.pages import ROOT

SRC = Path(__file__).resolve().parents[2]


@attrs.frozen
class Scene:
    """A database and what OpenTelemetry exports, beside which tests set up tracers."""

    path: Path
    exporter: InMemorySpanExporter
    provider: TracerProvider

    def recorded(self) -> list[str | None]:
        """Return the inputs in the database, the oldest run first; nothing if there is no database."""
        return [trace.input for trace in TraceStore(self.path).traces()][::-1] if self.path.exists() else []

    def spans(self, name: str | None = None) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if name in (None, span.name)]

    def openinference(self, **options: Any) -> None:
        OpenAIAgentsInstrumentor().instrument(tracer_provider=self.provider, **options)

    def logfire(self) -> None:
        exporting = [SimpleSpanProcessor(self.exporter)]
        logfire.configure(send_to_logfire=False, console=False, additional_span_processors=exporting)
        logfire.instrument_openai_agents()

    def record(self, **options: Any) -> SQLiteRecorder:
        return record_traces(self.path, **options)

    def add_recorder(self) -> SQLiteRecorder:
        recorder = SQLiteRecorder(self.path)
        add_trace_processor(recorder)
        return recorder


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    standard = get_trace_provider()
    scene = Scene(tmp_path / "traces.sqlite3", InMemorySpanExporter(), TracerProvider())
    scene.provider.add_span_processor(SimpleSpanProcessor(scene.exporter))
    yield scene
    set_trace_provider(standard)
    if OpenAIAgentsInstrumentor().is_instrumented_by_opentelemetry:
        OpenAIAgentsInstrumentor().uninstrument()
    set_trace_processors([])
    set_kantan_processors([])
    for recorder in recorders():
        recorder.shutdown()


class Kept(TracingProcessor):
    """A trace processor of the user's: keeps the names of the workflows."""

    def __init__(self) -> None:
        self.traces: list[str] = []

    def on_trace_start(self, trace: Any) -> None:
        self.traces.append(trace.name)

    def on_trace_end(self, trace: Any) -> None: ...

    def on_span_start(self, span: Any) -> None: ...

    def on_span_end(self, span: Any) -> None: ...

    def shutdown(self) -> None: ...

    def force_flush(self) -> None: ...


def run(*replies: Any, asked: Any = "Where is it?", **options: Any) -> Any:
    with OfflineServer([*replies]) as server:
        return Agent("support", "Help.", model=server.bundle(), **options).run(asked)


# Who receives a run.


@pytest.fixture
def losses(caplog: pytest.LogCaptureFixture) -> Callable[[], int]:
    """``losses()``: how many times E66 was logged."""
    caplog.set_level(logging.WARNING, "kantan_agents.tracing")
    return lambda: sum(getattr(record, "code", None) == "E66" for record in caplog.records)


def check(scene: Scene, losses: Callable[[], int], *, database: bool, exported: bool, lost: int = 0) -> None:
    run("On its way.")
    assert scene.recorded() == ["Where is it?"] * database
    assert bool(scene.spans()) is exported
    assert losses() == lost


def test_openinference_after_record_traces_silences_the_database(scene: Scene, losses: Any) -> None:
    scene.record()
    scene.openinference()
    check(scene, losses, database=False, exported=True, lost=1)


def test_record_traces_after_openinference_silences_openinference(scene: Scene, losses: Any) -> None:
    scene.openinference()
    scene.record()
    check(scene, losses, database=True, exported=False)


def test_openinference_that_is_not_exclusive_keeps_the_database(scene: Scene, losses: Any) -> None:
    scene.record()
    scene.openinference(exclusive_processor=False)
    check(scene, losses, database=True, exported=True)


def test_record_traces_silences_openinference_that_is_not_exclusive(scene: Scene, losses: Any) -> None:
    scene.openinference(exclusive_processor=False)
    scene.record()
    check(scene, losses, database=True, exported=False)


def test_a_recorder_added_to_openinference_keeps_both(scene: Scene, losses: Any) -> None:
    scene.openinference()
    scene.add_recorder()
    check(scene, losses, database=True, exported=True)


def test_openinference_gives_the_database_back_when_it_is_removed(scene: Scene, losses: Any) -> None:
    scene.record()
    scene.openinference()
    OpenAIAgentsInstrumentor().uninstrument()
    check(scene, losses, database=True, exported=False)


@pytest.mark.parametrize("first", ["record_traces", "logfire"])
def test_logfire_and_record_traces_keep_each_other_in_any_order(
    scene: Scene, losses: Any, first: str
) -> None:
    if first == "record_traces":
        scene.record()
        scene.logfire()
    else:
        scene.logfire()
        scene.record()
    check(scene, losses, database=True, exported=True)


def test_set_trace_processors_after_record_traces_silences_the_database(scene: Scene, losses: Any) -> None:
    kept = Kept()
    scene.record()
    set_trace_processors([kept])
    check(scene, losses, database=False, exported=False, lost=1)
    assert len(kept.traces) == 1


@pytest.mark.parametrize("put", [lambda kept: set_trace_processors([kept]), add_trace_processor])
def test_record_traces_silences_the_processors_before_it(scene: Scene, losses: Any, put: Any) -> None:
    kept = Kept()
    put(kept)
    scene.record()
    check(scene, losses, database=True, exported=False)
    assert kept.traces == []


def test_add_trace_processor_after_record_traces_keeps_both(scene: Scene, losses: Any) -> None:
    kept = Kept()
    scene.record()
    add_trace_processor(kept)
    check(scene, losses, database=True, exported=False)
    assert len(kept.traces) == 1


def test_openinference_and_logfire_and_the_database_at_once(scene: Scene, losses: Any) -> None:
    scene.record()
    scene.logfire()
    scene.openinference(exclusive_processor=False)
    check(scene, losses, database=True, exported=True)
    names = {span.name for span in scene.spans()}
    assert {"generation", "Chat completion with {gen_ai.request.model!r}"} <= names


# What the spans of a run contain.


class Report(BaseModel):
    title: str


def find_order(order: int) -> str:
    """Find an order."""
    return f"order {order} is on its way"


tracers = pytest.mark.parametrize("tracer", ["openinference", "logfire"])


def set_up(scene: Scene, tracer: str) -> None:
    scene.record()
    scene.logfire() if tracer == "logfire" else scene.openinference(exclusive_processor=False)


def final_messages(scene: Scene) -> list[tuple[Any, Any]]:
    """Return input and output of the final spans, each as its messages."""
    found = []
    for span in scene.spans():
        values = dict(span.attributes or {})
        if span.name == "generation":
            found.append((values.get("input.value"), values.get("output.value")))
        elif span.name.startswith("Chat completion"):
            found.append((values.get("input"), values.get("output")))
    return [(json.loads(str(given or "null")), json.loads(str(said or "null"))) for given, said in found]


def user(content: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": content}]


def said(content: str) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": content}]


@tracers
def test_the_final_span_of_a_plain_run_has_its_messages(scene: Scene, tracer: str) -> None:
    set_up(scene, tracer)
    run('It is "here".', asked="Where?\nHere?")
    assert final_messages(scene) == [(user("Where?\nHere?"), said('It is "here".'))]
    assert scene.recorded() == ["Where?\nHere?"]


def test_openinference_has_each_message_of_the_final_span(scene: Scene) -> None:
    set_up(scene, "openinference")
    run("Here.")
    (span,) = scene.spans("generation")
    attributes = dict(span.attributes or {})
    assert attributes["llm.input_messages.0.message.role"] == "user"
    assert attributes["llm.input_messages.0.message.content"] == "Where is it?"
    assert attributes["llm.output_messages.0.message.role"] == "assistant"
    assert attributes["llm.output_messages.0.message.content"] == "Here."
    assert attributes["llm.model_name"] == "support"
    assert not any("token_count" in name for name in attributes)


def test_logfire_shows_the_conversation_of_the_final_span(scene: Scene) -> None:
    set_up(scene, "logfire")
    run("Here.")
    (span,) = (span for span in scene.spans() if span.name.startswith("Chat completion"))
    attributes = dict(span.attributes or {})
    shown = json.loads(str(attributes["request_data"]))
    assert shown == {"messages": [*user("Where is it?"), *said("Here.")], "model": "support"}
    assert attributes["logfire.msg"] == "Chat completion with 'support'"


@tracers
def test_a_streamed_run_is_exported_like_any_other(scene: Scene, tracer: str) -> None:
    set_up(scene, tracer)

    async def main(agent: Agent[Any]) -> None:
        async with agent.stream("Where is it?") as events:
            async for _ in events:
                pass

    with OfflineServer(["Here."]) as server:
        asyncio.run(main(Agent("support", "Help.", model=server.bundle())))
    assert final_messages(scene) == [(user("Where is it?"), said("Here."))]
    assert scene.recorded() == ["Where is it?"]


@tracers
def test_an_async_run_is_exported_like_any_other(scene: Scene, tracer: str) -> None:
    set_up(scene, tracer)
    with OfflineServer(["Here."]) as server:
        asyncio.run(Agent("support", "Help.", model=server.bundle()).run_async("Where is it?"))
    assert final_messages(scene) == [(user("Where is it?"), said("Here."))]


@tracers
def test_a_structured_output_is_json_in_its_message(scene: Scene, tracer: str) -> None:
    set_up(scene, tracer)
    run({"title": "T"}, output_type=Report)
    ((_, (message,)),) = final_messages(scene)
    assert json.loads(message["content"]) == {"title": "T"}
    (trace,) = TraceStore(scene.path).traces()
    assert json.loads(trace.output or "") == {"title": "T"}


@tracers
def test_a_verdict_has_its_span(scene: Scene, tracer: str) -> None:
    set_up(scene, tracer)
    run({"score": 0.2, "comments": ["late"]}, output_type=RUBRIC)
    ((_, (message,)),) = final_messages(scene)
    assert json.loads(message["content"]) == {"rubric": {"score": 0.2, "comments": ["late"]}}
    if tracer == "openinference":
        assert scene.spans("judge")
    else:
        (judge,) = scene.spans("Custom span: {name}")
        assert json.loads(str((judge.attributes or {})["data"]))["rubric"]["score"] == 0.2
    (trace,) = TraceStore(scene.path).traces()
    assert trace.rubric is not None
    assert trace.rubric["score"] == 0.2


@tracers
def test_a_tool_and_a_hand_off_have_their_spans(scene: Scene, tracer: str) -> None:
    set_up(scene, tracer)
    replies = [
        {"tool": "transfer_to_orders", "arguments": {}},
        {"tool": "find_order", "arguments": {"order": 4711}},
        "On its way.",
    ]
    with OfflineServer(replies) as server:
        model = server.bundle()
        orders = Agent("orders", "Find orders.", model=model, tools=[find_order])
        Agent("support", "Help.", model=model, handoffs=[orders]).run("Where is it?")
    shown = " ".join(f"{span.name} {dict(span.attributes or {})}" for span in scene.spans())
    assert "order 4711 is on its way" in shown
    assert "handoff to orders" in shown or "Handoff: {from_agent}" in shown
    assert final_messages(scene) == [(user("Where is it?"), said("On its way."))]
    tools = [span.name for span in TraceStore(scene.path).trace("LAST").spans if span.span_type == "function"]
    assert tools == ["find_order"]


@tracers
def test_the_items_of_an_input_are_messages(scene: Scene, tracer: str) -> None:
    set_up(scene, tracer)
    items = user([{"type": "input_text", "text": "What is this?"}])
    run("A cat.", asked=items)
    assert final_messages(scene) == [(items, said("A cat."))]


@tracers
def test_a_failed_run_is_an_error_with_its_input(scene: Scene, tracer: str) -> None:
    set_up(scene, tracer)
    with pytest.raises(Exception, match="no such model"):
        run({"status": 400, "text": "no such model"})
    assert final_messages(scene) == [(user("Where is it?"), None)]
    failed = [span.name for span in scene.spans() if span.status.status_code is StatusCode.ERROR]
    assert any(name in ("generation", "Chat completion with {gen_ai.request.model!r}") for name in failed)


def test_logfire_has_the_metadata_and_the_id_of_the_trace(scene: Scene) -> None:
    set_up(scene, "logfire")
    run("Here.", metadata={"tenant": "acme"})
    (root,) = scene.spans("OpenAI Agents trace: {name}")
    attributes = dict(root.attributes or {})
    (trace,) = TraceStore(scene.path).traces()
    assert attributes["agent_trace_id"] == trace.trace_id
    assert json.loads(str(attributes["metadata"]))["agent_run_id"] == trace.metadata["agent_run_id"]
    assert json.loads(str(attributes["metadata"]))["tenant"] == "acme"


def test_openinference_has_neither(scene: Scene) -> None:
    set_up(scene, "openinference")
    run("Here.", metadata={"tenant": "acme"})
    (trace,) = TraceStore(scene.path).traces()
    exported = str([dict(span.attributes or {}) for span in scene.spans()])
    assert trace.trace_id not in exported
    assert "acme" not in exported


@tracers
def test_a_run_in_an_open_trace_has_its_spans_in_it(scene: Scene, tracer: str) -> None:
    set_up(scene, tracer)
    with agents.trace("request"):
        run("Here.")
    assert len({span.context.trace_id for span in scene.spans() if span.context}) == 1
    assert final_messages(scene) == [(user("Where is it?"), said("Here."))]
    if tracer == "openinference":
        (inner,) = scene.spans("agent_run")
        assert "agent_name" not in str(dict(inner.attributes or {}))
    else:
        (inner,) = scene.spans("Custom span: {name}")
        assert json.loads(str((inner.attributes or {})["data"]))["agent_name"] == "support"


@tracers
def test_runs_at_once_and_a_left_stream_keep_to_the_traces_around_them(scene: Scene, tracer: str) -> None:
    set_up(scene, tracer)
    requests = trace_api.get_tracer("service", tracer_provider=scene.provider)
    if tracer == "logfire":
        requests = trace_api.get_tracer("service")

    async def ask(agent: Agent[Any], number: int) -> None:
        with requests.start_as_current_span(f"request {number}"):
            await agent.run_async(f"question {number}")

    async def leave(agent: Agent[Any]) -> None:
        with requests.start_as_current_span("request 5"):
            async with agent.stream("question 5") as events:
                async for _ in events:
                    break
        assert not trace_api.get_current_span().get_span_context().is_valid

    async def main(agent: Agent[Any]) -> None:
        await asyncio.gather(*(ask(agent, number) for number in range(5)))
        await leave(agent)

    with OfflineServer(["Here."] * 6) as server:
        asyncio.run(main(Agent("support", "Help.", model=server.bundle())))
    roots = {
        span.context.trace_id for span in scene.spans() if span.name.startswith("request") and span.context
    }
    assert len(roots) == 6
    assert {span.context.trace_id for span in scene.spans() if span.context} == roots
    for number in range(5):
        (root,) = scene.spans(f"request {number}")
        inside = [span for span in scene.spans() if span.context.trace_id == root.context.trace_id]
        assert f"question {number}" in str([dict(span.attributes or {}) for span in inside])


# What is exported if less is to be recorded.


def everything(scene: Scene) -> str:
    return str([(span.name, dict(span.attributes or {}), span.events) for span in scene.spans()])


@tracers
def test_without_sensitive_data_nothing_of_it_is_exported(scene: Scene, tracer: str) -> None:
    set_up(scene, tracer)
    private = RunConfig(trace_include_sensitive_data=False)
    replies = [{"tool": "find_order", "arguments": {"order": 4711}}, "4711 is on its way."]
    with OfflineServer(replies) as server:
        agent = Agent("support", "Help.", model=server.bundle(), tools=[find_order])
        agent.run("Where is 4711?", run_config=private)
    assert "4711" not in everything(scene)
    assert scene.recorded() == [None]


@tracers
@pytest.mark.parametrize("api", ["responses", "chat"])
def test_redact_keeps_texts_out_of_what_is_exported(scene: Scene, tracer: str, api: Any) -> None:
    set_up(scene, tracer)
    with OfflineServer(["Ask max@example.com."]) as server:
        agent = Agent("support", "Help.", model=server.bundle(api=api), middleware=[Redact()])
        agent.run("I am aiko@example.com.")
    assert "@example.com" not in everything(scene)
    assert "I am " in everything(scene)


def test_the_redact_function_of_the_recorder_changes_the_database_alone(scene: Scene) -> None:
    def hide(record: dict[str, Any]) -> None:
        return None

    scene.record(redact=hide)
    scene.openinference(exclusive_processor=False)
    run("Here.")
    assert "Where is it?" in everything(scene)
    assert scene.recorded() == [None]


def test_openinference_can_hide_all_texts(scene: Scene) -> None:
    scene.record()
    hiding = TraceConfig(hide_inputs=True, hide_outputs=True)
    scene.openinference(exclusive_processor=False, config=hiding)
    run("Here it is.")
    assert "Where is it?" not in everything(scene)
    assert "Here it is." not in everything(scene)
    assert scene.recorded() == ["Where is it?"]


def test_secrets_are_masked_in_the_database_alone(scene: Scene) -> None:
    set_up(scene, "openinference")
    key = "sk-" + "a1" * 16
    run("Thank you.", asked=f"My key is {key}.")
    assert key in everything(scene)
    assert scene.recorded() == ["My key is sk-***."]


# What happens when exporting fails, or the process ends.


class Failing(SpanExporter):
    """An exporter that cannot reach its backend."""

    def export(self, spans: Any) -> Any:
        raise ConnectionError("no backend")


@tracers
def test_an_exporter_that_fails_does_not_fail_the_run(scene: Scene, tracer: str) -> None:
    scene.provider.add_span_processor(SimpleSpanProcessor(Failing()))
    scene.record()
    if tracer == "openinference":
        scene.openinference(exclusive_processor=False)
    else:
        exporting = [SimpleSpanProcessor(Failing())]
        logfire.configure(send_to_logfire=False, console=False, additional_span_processors=exporting)
        logfire.instrument_openai_agents()
    assert run("Here.")["result"].final_output == "Here."
    assert scene.recorded() == ["Where is it?"]


class Raising(Kept):
    """A trace processor that always raises."""

    def on_trace_start(self, trace: Any) -> None:
        raise ConnectionError("no backend")

    def on_trace_end(self, trace: Any) -> None:
        raise ConnectionError("no backend")

    def on_span_start(self, span: Any) -> None:
        raise ConnectionError("no backend")

    def on_span_end(self, span: Any) -> None:
        raise ConnectionError("no backend")


@pytest.mark.parametrize("place", ["before", "after"])
def test_a_processor_that_raises_fails_neither_the_run_nor_the_recorder(scene: Scene, place: str) -> None:
    if place == "before":
        add_trace_processor(Raising())
        scene.add_recorder()
    else:
        scene.record()
        add_trace_processor(Raising())
    assert run("Here.")["result"].final_output == "Here."
    assert scene.recorded() == ["Where is it?"]


_ENDING = """
import os, signal, sys
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from kantan_agents import Agent, record_traces
from kantan_agents.testing import ScriptedModel, assistant_message

class ToFile(SpanExporter):
    def export(self, spans):
        with open("exported", "a") as file:
            file.writelines(f"{span.name}\\n" for span in spans)
        return SpanExportResult.SUCCESS

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(ToFile()))
record_traces("traces.sqlite3")
OpenAIAgentsInstrumentor().instrument(tracer_provider=provider, exclusive_processor=False)
Agent("support", "Help.", model=ScriptedModel([[assistant_message("Here.")]])).run("Where is it?")
"""
_ENDINGS = {
    "exit": "",
    "handled": "signal.signal(signal.SIGTERM, lambda *_: sys.exit()); os.kill(os.getpid(), signal.SIGTERM)",
    "unhandled": "os.kill(os.getpid(), signal.SIGTERM)",
}


@pytest.mark.parametrize("ending", _ENDINGS)
def test_the_end_of_the_process_loses_batches_only_of_opentelemetry_and_only_if_killed_unhandled(
    ending: str, tmp_path: Path
) -> None:
    program = _ENDING + _ENDINGS[ending]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=env, check=False)
    assert [trace.input for trace in TraceStore(tmp_path / "traces.sqlite3").traces()] == ["Where is it?"]
    exported = tmp_path / "exported"
    assert exported.exists() is (ending != "unhandled")
    if exported.exists():
        assert "generation\n" in exported.read_text(encoding="utf-8")
