"""The summary of a trace."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import agents
import pytest

from kantan_agents import RUBRIC, Agent, TraceStore, TraceSummary
from kantan_agents.testing import (
    OfflineServer,
    ScriptedModel,
    ScriptedToolCall,
    assistant_message,
    function_call,
)
from tests.traces.store.sample_database import SampleDatabase


def newest(traces: Any) -> TraceSummary:
    return TraceStore(traces.path).trace("LAST").summary


def replying(*texts: str) -> Any:
    return ScriptedModel([[assistant_message(text)] for text in texts])


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_the_summary_of_a_run_has_its_question_and_answer(traces: Any, api: Any) -> None:
    def fail() -> str:
        """Fail."""
        raise RuntimeError("tool broke")

    with OfflineServer([ScriptedToolCall("fail", {}), "The answer."]) as server:
        await Agent("a", "b", model=server.bundle(api=api), tools=[fail]).run_async("The question?")
    summary = newest(traces)
    assert (summary.input, summary.output) == ("The question?", "The answer.")
    assert summary.error is None  # the tool's error was recovered from
    assert summary.workflow_name == "Agent workflow"
    assert (summary.input_tokens, summary.output_tokens, summary.total_tokens) == (20, 10, 30)
    assert summary.metadata["usage_total"]["total_tokens"] == summary.total_tokens
    assert summary.spans == len(TraceStore(traces.path).trace("LAST").spans)
    assert summary.duration is not None and summary.duration > 0
    assert summary.started_at is not None and summary.started_at.utcoffset() == timedelta(0)


async def test_the_summary_of_a_failed_run_has_its_error_and_question(traces: Any) -> None:
    with pytest.raises(ConnectionError):
        await Agent("a", "b", model=ScriptedModel([ConnectionError("gone")])).run_async("Hello?")
    summary = newest(traces)
    assert (summary.input, summary.output, summary.error) == ("Hello?", None, "gone")


async def test_a_verdict_is_in_the_summary_of_the_judges_run(traces: Any) -> None:
    model = replying('{"score": 0.25, "comments": ["tone harsh"]}')
    await Agent("judge", "b", model=model, output_type=RUBRIC).run_async("Judge.")
    assert newest(traces).rubric == {"score": 0.25, "comments": ["tone harsh"], "comment": "tone harsh"}


async def test_several_runs_in_an_open_trace_give_first_question_last_answer_and_first_error(
    traces: Any,
) -> None:
    with agents.trace("request"):
        await Agent("a", "b", model=replying("one")).run_async("first?")
        with pytest.raises(ConnectionError):
            await Agent("a", "b", model=ScriptedModel([ConnectionError("gone")])).run_async("second?")
        await Agent("a", "b", model=replying("three")).run_async("third?")
    summary = newest(traces)
    assert (summary.input, summary.output, summary.error) == ("first?", "three", "gone")


async def test_a_run_inside_a_tool_is_not_confused_with_the_run_around_it(traces: Any) -> None:
    async def ask() -> str:
        """Ask another."""
        inner = Agent("inner", "t", model=ScriptedModel([ConnectionError("inner failure")]))
        with pytest.raises(ConnectionError):
            await inner.run_async("inner question")
        return "nobody there"

    model = ScriptedModel([[function_call("ask", {}, call_id="c")], [assistant_message("outer answer")]])
    agent = Agent("outer", "t", model=model, tools=[ask])
    await agent.run_async("outer question")
    summary = newest(traces)
    assert (summary.input, summary.output, summary.error) == ("outer question", "outer answer", None)

    model = ScriptedModel([[function_call("ask", {}, call_id="c")], [assistant_message("outer answer")]])
    with agents.trace("request"):
        await Agent("outer", "t", model=model, tools=[ask]).run_async("outer question")
    summary = newest(traces)
    assert (summary.input, summary.output, summary.error) == ("outer question", "outer answer", None)


async def test_without_sensitive_data_there_is_no_input_or_output(traces: Any) -> None:
    private = {"trace_include_sensitive_data": False}
    await Agent("a", "b", model=replying("secret")).run_async("secret", run_config=private)
    assert (newest(traces).input, newest(traces).output) == (None, None)


def test_the_summary_of_a_trace_without_spans_has_what_is_recorded(
    db: SampleDatabase, store: TraceStore
) -> None:
    empty = store.trace(db.trace(metadata={"agent_run_id": "r"}, group="chat-7")).summary
    texts = (empty.input, empty.output, empty.error)
    assert (empty.spans, empty.started_at, empty.duration, texts) == (0, None, None, (None, None, None))
    assert (empty.group_id, empty.total_tokens) == ("chat-7", 0)


def test_errors_of_any_shape_have_a_message(db: SampleDatabase, store: TraceStore) -> None:
    for error, message in [
        ("text", "text"),
        ({"message": "m"}, "m"),
        ({"data": 1}, "{'data': 1}"),
        (["x"], "['x']"),
    ]:
        assert store.trace(db.run(error=error)).summary.error == message


def test_the_valid_numbers_of_any_usage_are_summed(db: SampleDatabase, store: TraceStore) -> None:
    trace_id = db.trace()
    for usage in (
        {"input_tokens": 3, "output_tokens": 4},
        {"prompt_tokens": 1},
        {"input_tokens": "many"},
        {"output_tokens": float("nan"), "total_tokens": float("inf")},
        {},
    ):
        db.span(trace_id, usage=usage)
    summary = store.trace(trace_id).summary
    assert (summary.input_tokens, summary.output_tokens, summary.total_tokens) == (4, 4, 7)


@pytest.mark.file_only
def test_a_cycle_of_parents_is_handled(db: SampleDatabase, store: TraceStore) -> None:
    trace_id = db.trace()
    first = db.span(trace_id, input="a", output="b", parent="none yet")
    second = db.span(trace_id, "response", parent=first)
    with db.tracer._conn as connection:
        connection.execute("UPDATE spans SET parent_id = ? WHERE id = ?", (second, first))
    db.inner_run(trace_id, agent_run_id="r", prompt_name="p")
    assert store.trace(trace_id).summary.output == "b"
    assert [stats.runs for stats in store.prompts()] == [1]


async def test_the_summary_of_a_trace_around_a_single_run_has_its_metadata(traces: Any) -> None:
    agent = Agent("a", "b", model=replying("x", "y", "z"), metadata={"tenant": "acme", "place": "run"})
    with agents.trace("request", metadata={"place": "trace"}):
        await agent.run_async("one")
    summary = newest(traces)
    assert (summary.metadata["agent_name"], summary.metadata["tenant"]) == ("a", "acme")
    assert summary.metadata["place"] == "trace"
    with agents.trace("request"):
        await agent.run_async("two")
        await agent.run_async("three")
    assert "agent_name" not in newest(traces).metadata  # two runs, so neither's name is used
