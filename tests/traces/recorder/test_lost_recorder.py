"""What happens if other trace processors replace the recorder of ``record_traces``: one warning, E66."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import agents
import pytest
from agents import RunConfig, add_trace_processor, set_trace_processors
from agents.tracing import TracingProcessor, get_trace_provider, set_trace_provider
from kantan_llm.tracing import NoOpTracer
from kantan_llm.tracing import set_trace_processors as set_kantan_processors

from kantan_agents import Agent, SQLiteRecorder, TraceStore, record_traces
from kantan_agents.testing import ScriptedModel, assistant_message
from kantan_agents.traces.registry import recorders
from tests.traces.recorder.database_file import DatabaseFile

Logged = Callable[..., list[str]]


def new_agent() -> Agent[Any]:
    return Agent("a", "b", model=ScriptedModel([[assistant_message("x")]] * 20))


@pytest.fixture
def recording(file: DatabaseFile) -> Iterator[SQLiteRecorder]:
    recorder = record_traces(file.path, flush_on_sigterm=False)
    yield recorder
    set_kantan_processors([])
    for one in [recorder, *recorders()]:  # all, before the folder is deleted
        one.shutdown()


def test_the_first_run_after_the_loss_warns_once(recording: SQLiteRecorder, logged: Logged) -> None:
    agent = new_agent()
    agent.run("recorded")
    set_trace_processors([NoOpTracer()])
    assert logged("E66") == []
    agent.run("lost")
    agent.run("lost too")
    (warning,) = logged("E66")
    assert str(recording.path) in warning
    assert "Call record_traces last" in warning
    assert [trace.input for trace in TraceStore(recording.path).traces()] == ["recorded"]


def test_a_run_inside_an_open_trace_warns_too(recording: SQLiteRecorder, logged: Logged) -> None:
    set_trace_processors([NoOpTracer()])
    with agents.trace("w"):
        new_agent().run("lost")
    assert len(logged("E66")) == 1


@pytest.mark.usefixtures("recording")
def test_a_recorder_that_is_lost_again_warns_again(file: DatabaseFile, logged: Logged) -> None:
    set_trace_processors([])
    new_agent().run("lost")
    again = record_traces(file.path, flush_on_sigterm=False)
    new_agent().run("recorded")
    set_trace_processors([])
    new_agent().run("lost")
    assert len(logged("E66")) == 2
    again.shutdown()


class Wrapper(TracingProcessor):
    """Passes everything on to another processor."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def on_trace_start(self, trace: Any) -> None:
        self.inner.on_trace_start(trace)

    def on_trace_end(self, trace: Any) -> None:
        self.inner.on_trace_end(trace)

    def on_span_start(self, span: Any) -> None:
        self.inner.on_span_start(span)

    def on_span_end(self, span: Any) -> None:
        self.inner.on_span_end(span)

    def shutdown(self) -> None:
        self.inner.shutdown()

    def force_flush(self) -> None:
        self.inner.force_flush()


def stays(recorder: SQLiteRecorder) -> None:
    add_trace_processor(NoOpTracer())


def is_followed_by_another(recorder: SQLiteRecorder) -> None:
    set_trace_processors([SQLiteRecorder(recorder.path, flush_on_sigterm=False)])


def is_added_again(recorder: SQLiteRecorder) -> None:
    set_trace_processors([NoOpTracer()])
    add_trace_processor(recorder)


def is_wrapped(recorder: SQLiteRecorder) -> None:
    set_trace_processors([Wrapper(recorder)])


def is_ended_on_purpose(recorder: SQLiteRecorder) -> None:
    set_trace_processors([NoOpTracer()])
    recorder.shutdown()


@pytest.mark.parametrize(
    "change", [stays, is_added_again, is_followed_by_another, is_wrapped, is_ended_on_purpose]
)
def test_no_warning_if_the_recorder(
    change: Callable[[SQLiteRecorder], None], recording: SQLiteRecorder, logged: Logged
) -> None:
    change(recording)
    agent = new_agent()
    agent.run("one")
    with agents.trace("w"):
        agent.run("two")
    assert logged("E66") == []


def test_no_warning_for_a_run_without_tracing(recording: SQLiteRecorder, logged: Logged) -> None:
    set_trace_processors([])
    new_agent().run("not traced", run_config=RunConfig(tracing_disabled=True))
    assert logged("E66") == []


def test_no_warning_if_a_provider_keeps_its_processors_to_itself(
    recording: SQLiteRecorder, logged: Logged
) -> None:
    standard = get_trace_provider()

    class Provider:
        """Another provider, which does not say where its traces go."""

        def __getattr__(self, name: str) -> Any:
            if name == "_multi_processor":
                raise AttributeError(name)
            return getattr(standard, name)

    standard.set_processors([NoOpTracer()])
    set_trace_provider(Provider())
    try:
        new_agent().run("somewhere")
    finally:
        set_trace_provider(standard)
    assert logged("E66") == []


def test_no_warning_after_the_recorder_is_gone(file: DatabaseFile, logged: Logged) -> None:
    record_traces(file.path, flush_on_sigterm=False).shutdown()
    set_trace_processors([])
    set_kantan_processors([])
    gc.collect()
    new_agent().run("not recorded")
    assert logged("E66") == []
