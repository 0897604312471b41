"""The final span of a run: messages for those who read the SDK's spans, texts in kantan-llm's database."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import GenerationSpanData, RunConfig, add_trace_processor
from agents.tracing import TracingProcessor
from hypothesis import given
from hypothesis import strategies as st
from kantan_llm.tracing import PrintTracer, SpanQuery, SQLiteTracer, TraceQuery
from pydantic import BaseModel

from kantan_agents import RUBRIC, Agent, SQLiteRecorder, TraceStore
from kantan_agents.middleware import Redact
from kantan_agents.testing import ScriptedModel, assistant_message
from kantan_agents.traces.final_span import input_messages, output_messages


class Reader(TracingProcessor):
    """Calls ``read`` with each final span when it ends, as an instrumentation reads spans."""

    def __init__(self, read: Callable[[Any], None]) -> None:
        self._read = read

    def on_trace_start(self, trace: Any) -> None: ...

    def on_trace_end(self, trace: Any) -> None: ...

    def on_span_start(self, span: Any) -> None: ...

    def on_span_end(self, span: Any) -> None:
        if isinstance(span.span_data, GenerationSpanData):
            self._read(span)

    def shutdown(self) -> None: ...

    def force_flush(self) -> None: ...


@pytest.fixture
def spans() -> list[Any]:
    """The final spans of the runs of a test."""
    seen: list[Any] = []
    add_trace_processor(Reader(seen.append))
    return seen


def replying(*texts: Any) -> Any:
    return ScriptedModel([[assistant_message(text)] for text in texts])


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def answer(content: str) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


class Report(BaseModel):
    title: str


async def test_input_and_output_are_messages(spans: list[Any]) -> None:
    await Agent("a", "b", model=replying("It is on its way.")).run_async('Where is "4711"?')
    (span,) = spans
    exported = span.export()["span_data"]
    for data in ({"input": span.span_data.input, "output": span.span_data.output}, exported):
        assert data["input"] == [user('Where is "4711"?')]
        assert data["output"] == [answer("It is on its way.")]
    assert exported["type"] == "generation"


async def test_the_items_of_an_input_are_its_messages(spans: list[Any]) -> None:
    items = [user([{"type": "input_text", "text": "What is this?"}]), answer("A cat."), user("Which color?")]
    await Agent("a", "b", model=replying("Black.")).run_async(items)
    assert spans[0].span_data.input == items


@pytest.mark.parametrize(
    ("output_type", "text", "content"),
    [
        (Report, '{"title": "T"}', {"title": "T"}),
        (list[Report], '{"response": [{"title": "T"}]}', [{"title": "T"}]),
        (
            RUBRIC,
            '{"score": 0.5, "comments": ["late"]}',
            {"rubric": {"score": 0.5, "comments": ["late"]}},
        ),
    ],
)
async def test_a_structured_output_is_one_message_in_json(
    spans: list[Any], output_type: Any, text: str, content: Any
) -> None:
    await Agent("a", "b", model=replying(text), output_type=output_type).run_async("hi")
    (message,) = spans[0].span_data.output
    assert message["role"] == "assistant"
    assert json.loads(message["content"]) == content


async def test_a_failed_run_has_its_input_as_messages_and_no_output(spans: list[Any]) -> None:
    with pytest.raises(Exception):  # noqa: B017 - whatever an exhausted script raises
        await Agent("a", "b", model=ScriptedModel([])).run_async("hi")
    assert (spans[0].span_data.input, spans[0].span_data.output) == ([user("hi")], None)
    assert spans[0].error is not None


async def test_a_run_without_sensitive_data_has_neither(spans: list[Any]) -> None:
    private = RunConfig(trace_include_sensitive_data=False)
    await Agent("a", "b", model=replying("x")).run_async("hi", run_config=private)
    assert (spans[0].span_data.input, spans[0].span_data.output) == (None, None)


async def test_redacted_texts_are_in_no_message(spans: list[Any]) -> None:
    agent = Agent("a", "b", model=replying("Ask max@example.com."), middleware=[Redact()])
    await agent.run_async("I am aiko@example.com.")
    read = json.dumps([span.export() for span in spans], default=str)
    assert "@example.com" not in read
    assert "I am " in read


async def test_the_model_is_the_agent_because_no_model_was_called_for_it(spans: list[Any]) -> None:
    """logfire warns about a span without a model; the name of a real one would be counted as its call."""
    await Agent("support", "b", model=replying("x")).run_async("hi")
    assert (spans[0].span_data.model, spans[0].span_data.usage) == ("support", None)


async def test_the_class_of_the_data_has_the_name_of_the_sdks_class(spans: list[Any]) -> None:
    """Some instrumentations decide by the name, without importing the SDK."""
    await Agent("a", "b", model=replying("x")).run_async("hi")
    assert type(spans[0].span_data).__name__ == "GenerationSpanData"


# What kantan-llm's database and tracers have.


async def recorded_by(name: str, path: Path, *runs: Any) -> None:
    recorder: Any = SQLiteRecorder(path) if name == "SQLiteRecorder" else SQLiteTracer(str(path))
    add_trace_processor(recorder)
    for run in runs:
        await run
    recorder.shutdown()


both = pytest.mark.parametrize("recorder", ["SQLiteRecorder", "SQLiteTracer"])


@both
async def test_the_database_has_texts_whoever_reads_the_messages_first(
    recorder: str, tmp_path: Path, spans: list[Any]
) -> None:
    read: list[Any] = []
    add_trace_processor(Reader(lambda span: read.append(span.export())))
    path = tmp_path / "traces.sqlite3"
    agent = Agent("a", "b", model=replying('{"not": "structured"}\nsays "x"'))
    await recorded_by(recorder, path, agent.run_async('Was it "Nara"?\nOr not?'))
    assert read[0]["span_data"]["input"] == [user('Was it "Nara"?\nOr not?')]

    search = SQLiteTracer(str(path))
    (span,) = search.search_spans(query=SpanQuery(span_type="generation"))
    assert (span.input, span.output) == ('Was it "Nara"?\nOr not?', '{"not": "structured"}\nsays "x"')
    assert (span.output_kind, span.structured) == ("text", None)
    assert span.raw["span_data"]["input"] == span.input
    assert span.raw["span_data"]["model"] is None
    for word in ('"nara"?\nor', 'says "x"'):
        assert len(search.search_traces(query=TraceQuery(keywords=[word]))) == 1
    search.shutdown()
    assert [(trace.input, trace.output) for trace in TraceStore(path).traces()] == [(span.input, span.output)]


@both
async def test_a_rubric_is_found_on_the_span_itself(recorder: str, tmp_path: Path, spans: list[Any]) -> None:
    path = tmp_path / "traces.sqlite3"
    agent = Agent("a", "b", model=replying('{"score": 0.5, "comments": ["late"]}'), output_type=RUBRIC)
    await recorded_by(recorder, path, agent.run_async("hi"))
    search = SQLiteTracer(str(path))
    (span,) = search.search_spans(query=SpanQuery(span_type="generation"))
    assert (span.output_kind, span.rubric) == ("judge", {"score": 0.5, "comments": ["late"]})
    search.shutdown()


def mask_in_place(span: Any) -> None:
    for message in [*span.span_data.input, *span.span_data.output]:
        message["content"] = "***"


def mask_by_assignment(span: Any) -> None:
    span.span_data.input = [user("***")]
    span.span_data.output = [answer("***")]


def clear(span: Any) -> None:
    span.span_data.input = span.span_data.output = None


@both
@pytest.mark.parametrize("change", [mask_in_place, mask_by_assignment, clear])
async def test_a_text_that_an_earlier_processor_removes_is_not_stored(
    recorder: str, change: Callable[[Any], None], tmp_path: Path
) -> None:
    add_trace_processor(Reader(change))
    path = tmp_path / "traces.sqlite3"
    await recorded_by(
        recorder, path, Agent("a", "b", model=replying("secret answer")).run_async("secret question")
    )
    search = SQLiteTracer(str(path))
    (span,) = search.search_spans(query=SpanQuery(span_type="generation"))
    assert "secret" not in f"{span.input}{span.output}{span.raw}"
    assert ("***" in str(span.input)) is (change is not clear)
    search.shutdown()


def mask_each_text(span: Any) -> None:
    for message in (*span.span_data.input, *span.span_data.output):
        if isinstance(message["content"], str):
            message["content"] = "***"
        else:
            message["content"][0]["text"] = "***"


@both
async def test_a_processor_that_changes_messages_in_place_changes_no_item_of_the_caller(
    recorder: str, tmp_path: Path
) -> None:
    add_trace_processor(Reader(mask_each_text))
    asked = [user("secret"), user([{"type": "input_text", "text": "secret"}])]
    before = copy.deepcopy(asked)
    path = tmp_path / "traces.sqlite3"
    agent = Agent("a", "b", model=replying("secret answer"))
    context: dict[str, Any] = {}
    await recorded_by(recorder, path, agent.run_async(asked, context))
    assert asked == context["result"].input == before
    search = SQLiteTracer(str(path))
    (span,) = search.search_spans(query=SpanQuery(span_type="generation"))
    assert "***" in str(span.input)
    assert "secret" not in f"{span.input}{span.output}{span.raw}"
    search.shutdown()


async def test_the_print_tracer_prints_texts() -> None:
    printed = io.StringIO()
    add_trace_processor(PrintTracer(stream=printed))
    agent = Agent("a", "b", model=replying('Yes, "4711".', "No."))
    await agent.run_async("Is it?\nReally?")
    await agent.run_async("And now?")
    assert printed.getvalue() == (
        'INPUT:\nIs it?\nReally?\nOUTPUT(text):\nYes, "4711".\nINPUT:\nAnd now?\nOUTPUT(text):\nNo.\n'
    )


async def test_other_spans_reach_kantan_llms_tracers_as_they_are() -> None:
    printed = io.StringIO()
    add_trace_processor(PrintTracer(stream=printed))
    Agent("a", "b", model=replying("x"))
    with agents.trace("w"), agents.generation_span(input=[user("hi")]):
        pass
    assert json.loads(printed.getvalue().removeprefix("INPUT:\n")) == [user("hi")]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, st.text() | st.lists(st.dictionaries(st.text(), JSON) | st.text()))
def test_messages_have_the_sdks_type_and_lose_nothing(output: Any, asked: Any) -> None:
    (*said,) = output_messages(output) or ()
    assert [message["role"] for message in said] == ["assistant"] * (output is not None)
    for message in said:
        content = message["content"]
        assert content == output if isinstance(output, str) else json.loads(content) == output
    messages = input_messages(asked)
    assert messages is not None
    assert all(isinstance(message, Mapping) for message in messages)
    items = asked if isinstance(asked, list) else [asked]
    contents = [
        m if isinstance(item, dict) else m["content"] for m, item in zip(messages, items, strict=True)
    ]
    assert contents == items
