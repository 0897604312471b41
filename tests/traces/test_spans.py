"""What a run records in kantan-llm's database, read back with kantan-llm's own search."""

from __future__ import annotations

import dataclasses
from typing import Any

import agents
import attrs
import pytest
from agents import function_tool, trace
from kantan_llm.tracing.analysis import find_failed_judges, group_failed_by_bucket
from pydantic import BaseModel
from typing_extensions import TypedDict

from kantan_agents import DEFAULT_STAGES, RUBRIC, Agent, Next, Pipeline, Prompt, Run, judge
from kantan_agents.testing import (
    OfflineServer,
    Reply,
    ScriptedModel,
    ScriptedToolCall,
    assistant_message,
    function_call,
)


def replying(*texts: Any) -> Any:
    return ScriptedModel([[assistant_message(text)] for text in texts])


async def test_spec_4_1_the_standard_keys_are_in_the_trace_and_can_be_searched(traces: Any) -> None:
    prompt = Prompt("qa", "v3", "Answer.", meta={"tone": "warm", "skip": None})
    await Agent("support", prompt, model=replying("x"), metadata={"team": "one"}).run_async("hi")
    (record,) = traces.traces(metadata={"prompt_name": "qa", "prompt_version": "v3"})
    assert record.metadata.pop("agent_run_id") == record.trace_id.removeprefix("trace_")
    assert record.metadata == {
        "team": "one",
        "agent_name": "support",
        "prompt_name": "qa",
        "prompt_version": "v3",
        "prompt_id": prompt.resolve_id(),
        "prompt_meta_tone": "warm",
    }
    assert traces.traces(metadata={"prompt_version": "v4"}) == []


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_spec_5_3_a_text_run_is_found_by_a_word_of_its_input_or_output(traces: Any, api: Any) -> None:
    with OfflineServer(["Kyōto「みやこ」\nwas the capital."]) as server:
        await Agent("geo", "x", model=server.bundle(api=api)).run_async('Was it "Nara"?')
    span = traces.final_span()
    assert span.input == 'Was it "Nara"?'
    assert span.output == "Kyōto「みやこ」\nwas the capital."
    assert span.output_kind == "text"
    for word in ('"nara"', "「みやこ」\nwas"):
        assert len(traces.traces(keywords=[word])) == 1


async def test_the_newest_trace_comes_first(traces: Any) -> None:
    agent = Agent("a", "b", model=replying(*"123456"))
    for number in range(6):
        await agent.run_async(f"question {number}")
    newest = traces.traces(limit=2)
    inputs = [traces.spans(trace_id=t.trace_id, span_type="generation")[-1].input for t in newest]
    assert inputs == ["question 5", "question 4"]


class Report(BaseModel):
    title: str
    pages: int


class Scored(BaseModel):
    score: int


async def test_a_structured_output_is_recorded_as_structured(traces: Any) -> None:
    model = replying('{"title": "T", "pages": 9}')
    await Agent("a", "b", model=model, output_type=Report).run_async("hi")
    span = traces.final_span()
    assert (span.output_kind, span.structured) == ("structured", {"title": "T", "pages": 9})


class Graded(RUBRIC):
    tags: list[str]


class LooksLikeARubric(BaseModel):
    score: int
    comments: list[str]
    extra: str = "e"


@dataclasses.dataclass
class DataRubric:
    score: float
    comments: list[str]


class DictRubric(TypedDict):
    score: float
    comments: list[str]


@pytest.mark.parametrize("output_type", [RUBRIC, LooksLikeARubric, DataRubric, DictRubric])
async def test_a_rubric_is_recognized_by_its_type_and_found_if_it_failed(
    traces: Any, output_type: Any
) -> None:
    text = '{"score": 0.25, "comments": ["tone too harsh", "late"], "extra": "e"}'
    if output_type in (RUBRIC, DataRubric, DictRubric):
        text = '{"score": 0.25, "comments": ["tone too harsh", "late"]}'
    if output_type is DataRubric:
        text = f'{{"response": {text}}}'  # the SDK wraps what is neither a model nor a dict
    if output_type is LooksLikeARubric:
        text = text.replace("0.25", "0")
    await Agent("judge", "b", model=replying(text), output_type=output_type).run_async("hi")
    assert traces.final_span().output_kind == "judge"
    (failed,) = find_failed_judges(traces.tracer, 0.5)
    assert failed.rubric["score"] < 0.5
    assert failed.rubric["comments"] == ["tone too harsh", "late"]
    assert list(group_failed_by_bucket([failed])) == ["tone"]
    assert find_failed_judges(traces.tracer, 0.0) == []


async def test_the_tags_of_an_extended_rubric_are_its_bucket(traces: Any) -> None:
    text = '{"score": 0.1, "comments": [], "tags": ["safety"]}'
    await Agent("judge", "b", model=replying(text), output_type=Graded).run_async("hi")
    failed = find_failed_judges(traces.tracer, 0.5)
    assert list(group_failed_by_bucket(failed)) == ["safety"]


async def test_a_model_with_only_a_score_is_not_a_rubric(traces: Any) -> None:
    await Agent("a", "b", model=replying('{"score": 0}'), output_type=Scored).run_async("hi")
    assert traces.spans(name="judge") == []


async def test_spec_5_the_judge_helper_has_kantan_llms_shape(traces: Any) -> None:
    assert judge(0.5, ["why"]) == {
        "output_kind": "judge",
        "rubric": {"score": 0.5, "comments": ["why"]},
    }

    async def decide(run: Any, call_next: Any) -> None:
        run.result = judge(0.5, ["why"])
        await call_next(run)

    await Agent("a", "b", model=replying(), middleware=[decide]).run_async("hi")
    (span,) = traces.spans(name="judge")
    assert span.rubric == {"score": 0.5, "comments": ["why"], "comment": "why"}


@attrs.frozen
class Point:
    x: int


async def test_other_outputs_are_recorded_as_data_or_text(traces: Any) -> None:
    for output in (Point(3), [1, Report(title="t", pages=1), None], 7, object()):

        async def answer(run: Any, call_next: Any, output: Any = output) -> None:
            run.result = output
            await call_next(run)

        await Agent("a", "b", model=replying(), middleware=[answer]).run_async("hi")
    spans = traces.spans(span_type="generation")
    assert spans[0].structured == {"x": 3}
    assert spans[1].structured == [1, {"title": "t", "pages": 1}, None]
    assert spans[2].output == "7"
    assert "object object" in spans[3].output


# Inside an open trace


async def test_a_run_inside_an_open_trace_keeps_its_metadata_on_a_span(traces: Any) -> None:
    with trace("outer workflow"):
        await Agent("a", Prompt("p", "v1", "t"), model=replying("x")).run_async("hi")
        await Agent("b", "t", model=replying("y")).run_async("hi")
    (record,) = traces.traces()
    assert record.workflow_name == "outer workflow"
    spans = traces.spans(name="agent_run")
    data = [span.raw["span_data"]["data"] for span in spans]
    assert [d["agent_name"] for d in data] == ["a", "b"]
    assert data[0]["prompt_version"] == "v1"
    generations = traces.spans(span_type="generation")
    assert {g.parent_id for g in generations} == {s.span_id for s in spans}


async def test_a_run_inside_a_tool_of_another_run_is_recorded_in_its_trace(traces: Any) -> None:
    inner = Agent("inner", "t", model=replying("inner answer"))

    async def ask() -> str:
        """Ask the other agent."""
        return (await inner.run_async("inner question"))["result"].final_output

    model = ScriptedModel([[function_call("ask", {}, call_id="c")], [assistant_message("outer answer")]])
    await Agent("outer", "t", model=model, tools=[ask]).run_async("hi")
    (record,) = traces.traces(keywords=["inner question"])
    assert record.metadata["agent_name"] == "outer"
    (span,) = traces.spans(name="agent_run")
    assert span.raw["span_data"]["data"]["agent_name"] == "inner"


async def test_concurrent_runs_have_one_trace_each(traces: Any) -> None:
    import asyncio

    agent = Agent("a", "b", model=ScriptedModel([[assistant_message("x")]] * 20))
    await asyncio.gather(*(agent.run_async(f"question {n}") for n in range(20)))
    assert len(traces.traces()) == 20
    assert {s.input for s in traces.spans(span_type="generation")} == {f"question {n}" for n in range(20)}


# RunConfig


async def test_the_trace_settings_of_the_run_config_apply(traces: Any) -> None:
    config = agents.RunConfig(
        workflow_name="mine",
        trace_id="trace_" + "a" * 32,
        group_id="chat-7",
        trace_metadata={"ticket": "T1", "agent_name": "evil"},
    )
    await Agent("a", "b", model=replying("x")).run_async("hi", run_config=config)
    (record,) = traces.traces()
    assert (record.trace_id, record.workflow_name, record.group_id) == (
        config.trace_id,
        "mine",
        "chat-7",
    )
    assert (record.metadata["ticket"], record.metadata["agent_name"]) == ("T1", "a")


async def test_with_tracing_disabled_nothing_is_recorded(traces: Any) -> None:
    context = await Agent("a", "b", model=replying("x")).run_async(
        "hi", run_config={"tracing_disabled": True}
    )
    assert context["result"].final_output == "x"
    assert traces.traces() == [] and traces.spans() == []


async def test_without_sensitive_data_no_input_output_or_rubric_is_recorded(traces: Any) -> None:
    config = {"trace_include_sensitive_data": False}
    texts = ("secret answer", '{"score": 0.1, "comments": ["secret comment"]}')
    await Agent("a", "b", model=replying(texts[0])).run_async("secret question", run_config=config)
    await Agent("a", "b", model=replying(texts[1]), output_type=RUBRIC).run_async("x", run_config=config)
    failing = Agent("a", "b", model=ScriptedModel([RuntimeError("secret failure")]))
    with pytest.raises(RuntimeError):
        await failing.run_async("secret question", run_config=config)
    assert len(traces.traces()) == 3
    assert traces.spans(keywords=["secret"]) == []
    assert [s for s in traces.spans() if "secret" in str(s.raw)] == []
    assert traces.spans(name="judge") == []


# Failure


async def test_a_failed_run_closes_its_trace_with_the_error_and_its_input(traces: Any) -> None:
    with pytest.raises(ConnectionError):
        await Agent("a", "b", model=ScriptedModel([ConnectionError("gone")])).run_async("my question")
    (record,) = traces.traces(keywords=["my question"], has_error=True)
    span = traces.final_span()
    assert (span.input, span.output) == ("my question", None)
    assert span.error == {"message": "gone", "data": {"error_type": "ConnectionError"}}
    assert agents.get_current_trace() is None
    assert record.metadata["agent_name"] == "a"


async def test_an_error_of_this_library_is_recorded_with_its_code(traces: Any) -> None:
    with pytest.raises(ValueError):
        await Agent("a", "b", model=replying()).run_async("hi", [])
    assert traces.final_span().error["data"] == {"error_type": "ContextTypeError", "code": "E5"}


async def test_inside_an_open_trace_the_failure_is_on_the_runs_own_span(traces: Any) -> None:
    with trace("outer"):
        with pytest.raises(ConnectionError):
            await Agent("a", "b", model=ScriptedModel([ConnectionError("gone")])).run_async("hi")
        await Agent("b", "b", model=replying("fine")).run_async("hi")
    spans = {s.raw["span_data"]["data"]["agent_name"]: s for s in traces.spans(name="agent_run")}
    assert spans["a"].error["message"] == "gone"
    assert spans["b"].error is None


async def test_a_cancelled_run_is_recorded_and_restores_the_context(traces: Any) -> None:
    import anyio

    context = {"k": 1}
    with OfflineServer([Reply("late", delay=30)]) as server:
        bundle = server.bundle()
        agent = Agent("a", "b", model=bundle)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.run_async, "my question", context)
            while not server.requests:  # noqa: ASYNC110 - another thread fills it
                await anyio.sleep(0.01)
            tasks.cancel_scope.cancel()
        await bundle.client.close()
        await anyio.wait_all_tasks_blocked()
    assert traces.final_span().error["data"]["error_type"] == "CancelledError"
    assert context["history"] == [] and context["result"] is None
    assert agents.get_current_trace() is None


async def test_a_tool_turn_is_recorded_with_its_tool_call(traces: Any) -> None:
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    with OfflineServer([ScriptedToolCall("add", {"a": 1, "b": 2}), "3"]) as server:
        await Agent("a", "b", model=server.bundle(), tools=[add]).run_async("1+2")
    (span,) = traces.spans(span_type="function")
    assert (span.name, span.output) == ("add", "3")


async def test_with_tracing_disabled_a_run_inside_an_open_trace_records_nothing(traces: Any) -> None:
    seen = []

    async def look(run: Any, call_next: Any) -> None:
        seen.append(run.trace_id)
        await call_next(run)

    agent = Agent("a", "b", model=replying("secret answer"), middleware=[look])
    with trace("outer"):
        await agent.run_async("secret question", run_config={"tracing_disabled": True})
    assert traces.spans() == []
    await Agent("a", "b", model=replying("x"), middleware=[look]).run_async(
        "hi", run_config={"tracing_disabled": True}
    )
    assert seen[1] is None


async def test_a_file_with_nan_in_metadata_stays_searchable(traces: Any) -> None:
    bad = {"x": float("nan"), "deep": {"list": [1.5, float("inf")]}}
    for metadata in (bad, lambda context: bad):
        await Agent("a", "b", model=replying("x"), metadata=metadata).run_async("hi")
    await Agent("a", "b", model=replying("x")).run_async("hi", run_config={"trace_metadata": bad})
    records = traces.traces(metadata={"agent_name": "a"})
    assert len(records) == 3
    assert {str((r.metadata["x"], r.metadata["deep"])) for r in records} == {"(None, {'list': [1.5, None]})"}


async def test_the_tracing_configuration_of_the_run_config_is_used() -> None:
    keys = []

    async def look(run: Any, call_next: Any) -> None:
        keys.append(agents.get_current_trace().tracing_api_key)
        await call_next(run)

    agent = Agent("a", "b", model=replying("x"), middleware=[look])
    await agent.run_async("hi", run_config={"tracing": {"api_key": "mine"}})
    assert keys == ["mine"]


async def test_an_error_of_a_metadata_function_is_recorded_and_propagates_unchanged(traces: Any) -> None:
    agent = Agent("a", "b", model=replying(), metadata=lambda context: context["missing"])
    with pytest.raises(KeyError, match="missing") as caught:
        await agent.run_async("my question")
    assert caught.value.kantan_run.metadata["agent_name"] == "a"
    assert len(traces.traces(keywords=["my question"], has_error=True)) == 1


@function_tool(needs_approval=True)
def pay() -> str:
    """Pay."""
    return "paid"


async def answer_at_once(run: Run, _call_next: Next) -> None:
    run.result = "cached"


WITHOUT_RECORD = Pipeline(DEFAULT_STAGES).without("emit_metadata")


@pytest.mark.parametrize(
    ("options", "given"),
    [
        ({"tools": [pay]}, "Pay!"),
        ({"middleware": [answer_at_once]}, None),
        ({"pipeline": WITHOUT_RECORD}, None),
    ],
    ids=["waits for an approval", "a stage ends it", "no stage records it"],
)
async def test_a_run_that_ended_without_an_answer_has_a_final_span(
    traces: Any, options: Any, given: str | None
) -> None:
    model = (
        ScriptedModel([[function_call("pay", {}, call_id="c")]]) if "tools" in options else replying("done")
    )
    await Agent("a", "b", model=model, **options).run_async("Pay!")
    (final,) = traces.spans(span_type="generation", name=None)
    assert (final.parent_id, final.input, final.output, final.error) == (None, given, None, None)
