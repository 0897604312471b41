"""Answers that were cut off, of every API: the sign in results, events, logs, records and errors."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import ModelSettings, OpenAIResponsesModel, OpenAIResponsesWSModel, Runner
from openai import AsyncOpenAI
from openai.types.responses import Response, ResponseIncompleteEvent
from pydantic import BaseModel

from kantan_agents import (
    Agent,
    Recording,
    SQLiteRecorder,
    StructuredOutputError,
    TraceStore,
    answer_cut_off,
    finish_reason,
    replay_async,
    subscribe,
    to_provider_response,
)
from kantan_agents.core.answers import CUT_SPAN, answer_items, answer_text, finish_reason_of, why_cut_off
from kantan_agents.testing import OfflineServer, Reply
from kantan_agents.testing.wire import response_body
from tests.answers_of_apis import APIS, Answer, look, model_of
from tests.recorders import end_recorder

HOW = pytest.mark.parametrize("is_streamed", [False, True], ids=["run", "stream"])
API = pytest.mark.parametrize("api", APIS)
LIMIT = ModelSettings(max_tokens=5)


async def ask(agent: Agent[Any], *, is_streamed: bool, question: str = "Tell me a story.") -> Any:
    if not is_streamed:
        return (await agent.run_async(question))["result"]
    async with agent.stream(question) as stream:
        async for _ in stream:
            pass
    return stream.context["result"]


@pytest.fixture
def store(tmp_path: Path) -> Any:
    recorder = SQLiteRecorder(tmp_path / "traces.sqlite3")
    agents.set_trace_processors([recorder])

    def read() -> TraceStore:
        assert recorder.force_flush()
        return TraceStore(recorder.path)

    yield read
    agents.set_trace_processors([])
    end_recorder(recorder)


@API
@HOW
@pytest.mark.parametrize("text", ["Once upon", ""], ids=["text", "empty"])
async def test_an_answer_that_was_cut_off_says_so_everywhere(
    api: str, is_streamed: bool, text: str, store: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kantan_agents")
    events: list[Any] = []
    with (
        model_of(api, Answer(text, is_cut=True), Answer("The end."), is_streamed=is_streamed) as model,
        subscribe(events.append),
    ):
        agent = Agent("teller", "Answer.", model=model, model_settings=LIMIT)
        result = await ask(agent, is_streamed=is_streamed)
        whole = await ask(agent, is_streamed=is_streamed)
    assert (result.final_output or "") == text
    assert (finish_reason(result), finish_reason(whole)) == ("length", "stop")
    assert answer_cut_off({"result": result}) and not answer_cut_off(whole)
    assert to_provider_response(result).metadata["finish_reason"] == "length"
    for kind in ("model_call_finished", "run_finished"):
        found = [event for event in events if event.type == kind]
        assert [one.finish_reason for one in found] == ["length", "stop"]
        assert [one.answer_cut_off for one in found] == [True, False]
        assert found[0].to_dict()["finish_reason"] == "length"
    said = [record for record in caplog.records if CUT_SPAN in record.getMessage()]
    assert len(said) == 1
    assert "finish_reason" in str(vars(said[0])) and "max_tokens" in str(vars(said[0]))
    complete, cut = store().traces()
    assert (complete.cut_answers, cut.cut_answers) == (0, 1)
    assert store().traces(has_cut_answer=True) == [cut]
    assert store().traces(has_cut_answer=False) == [complete]
    (call,) = store().trace(cut.trace_id).model_calls
    assert (call.answer.finish_reason, call.answer.answer_cut_off) == ("length", True)
    (span,) = (one for one in store().trace(cut.trace_id).spans if one.name == CUT_SPAN)
    parents = {one.span_id: one.span_type for one in store().trace(cut.trace_id).spans}
    assert parents[span.parent_id] in ("response", "generation")
    assert span.raw["span_data"]["data"]["max_tokens"] == 5
    assert not any(one.error for one in store().trace(cut.trace_id).spans)


@API
@HOW
async def test_a_replay_has_the_sign_too(api: str, is_streamed: bool, store: Any) -> None:
    with model_of(api, Answer(is_cut=True), is_streamed=is_streamed) as model:
        agent = Agent("teller", "Answer.", model=model)
        await ask(agent, is_streamed=is_streamed)
        recording = Recording.from_trace(store(), "LAST")
        replayed = await replay_async(recording, agent, traced=True)
    assert not replayed.output
    assert len(store().traces(has_cut_answer=True)) == 2


class Story(BaseModel):
    text: str


@API
@HOW
@pytest.mark.parametrize("text", ['{"text": "Once', "Once upon", ""], ids=["JSON", "prose", "empty"])
async def test_the_error_of_a_structured_output_names_the_limit(
    api: str, is_streamed: bool, text: str
) -> None:
    answers = [Answer(text, is_cut=True)] * 2
    with model_of(api, *answers, is_streamed=is_streamed) as model:
        agent = Agent("teller", "x", model=model, output_type=Story, output_repairs=0, model_settings=LIMIT)
        with pytest.raises(StructuredOutputError, match="the answer was cut off at max_tokens=5"):
            await ask(agent, is_streamed=is_streamed)


async def test_without_a_limit_of_ones_own_it_is_that_of_the_model() -> None:
    with OfflineServer([Reply('{"text": "Once', is_cut=True)]) as server:
        agent = Agent("teller", "x", model=server.bundle(), output_type=Story, output_repairs=0)
        with pytest.raises(StructuredOutputError, match="cut off at the limit of its tokens"):
            await agent.run_async("Go")


@HOW
async def test_a_model_of_the_application_says_it_too(is_streamed: bool) -> None:
    with OfflineServer([Reply("Once", is_cut=True)] * 2) as server:
        model = OpenAIResponsesModel("m", server.bundle().client)
        result = await ask(Agent("teller", "x", model=model), is_streamed=is_streamed)
        assert (result.final_output, finish_reason(result)) == ("Once", "length")
        # By the SDK's own runner as well.
        plain: Any = Agent("teller", "x", model=server.bundle()).sdk_agent
        if is_streamed:
            streamed = Runner.run_streamed(plain, "Go")
            async for _ in streamed.stream_events():
                pass
            again: Any = streamed
        else:
            again = await Runner.run(plain, "Go")
        assert (again.final_output, finish_reason(again)) == ("Once", "length")


@API
@HOW
async def test_a_call_that_was_cut_off_is_no_complete_answer(api: str, is_streamed: bool, store: Any) -> None:
    answers = (Answer(calls=True, is_cut=True), Answer("Sunny."))
    with model_of(api, *answers, is_streamed=is_streamed) as model:
        result = await ask(Agent("a", "x", model=model, tools=[look]), is_streamed=is_streamed)
    assert [finish_reason(one) for one in result.raw_responses] == ["length", "stop"]
    assert finish_reason(result) == "stop"
    assert store().traces(has_cut_answer=True)[0].cut_answers == 1


async def test_calls_and_other_ends() -> None:
    with model_of("responses", Answer(calls=True), Answer("Sunny."), is_streamed=False) as model:
        context = await Agent("a", "x", model=model, tools=[look]).run_async("Weather?")
    assert [finish_reason(one) for one in context["result"].raw_responses] == ["tool_call", "stop"]
    assert finish_reason({"result": None}) is None
    assert finish_reason("text") is None


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("length", "length"),
        ("MAX_TOKENS", "length"),
        ("max_output_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("content_filter", "content_filter"),
        ("stop", None),
        ("end_turn", None),
        (None, None),
        (5, None),
    ],
)
def test_the_words_of_providers(said: Any, reason: str | None) -> None:
    assert why_cut_off(said) == reason


THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
CHAT_CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
RESPONSE: dict[str, Any] = {"object": "response", "output": [CALL], "incomplete_details": None}
CUT_RESPONSE = {**RESPONSE, "incomplete_details": {"reason": "max_output_tokens"}}


@pytest.mark.parametrize(
    ("output", "types", "text", "reason"),
    [
        (None, [], "", "stop"),
        ("hi", ["message"], "hi", "stop"),
        ({"role": "assistant", "content": "hi", "tool_calls": None}, ["message"], "hi", "stop"),
        ({"role": "assistant", "content": [{"type": "text", "text": "hi"}]}, ["message"], "hi", "stop"),
        ({"role": "assistant", "content": None, "refusal": "no"}, ["message"], "no", "stop"),
        ([{"content": "", "tool_calls": [CHAT_CALL]}], ["function_call"], "", "tool_call"),
        ([{"role": "assistant", "content": "", "finish_reason": "length"}], ["message"], "", "length"),
        (
            {"role": "assistant", "reasoning_content": "hm", "content": "hi", "finish_reason": "length"},
            ["reasoning", "message"],
            "hi",
            "length",
        ),
        ({"tool_calls": [CALL]}, ["function_call"], "", "tool_call"),
        ({"tool_calls": ["odd", 5]}, [None, None], "", "stop"),
        ([RESPONSE], ["function_call"], "", "tool_call"),
        ([CUT_RESPONSE], ["function_call"], "", "length"),
        ([THOUGHT, CALL], ["reasoning", "function_call"], "", "tool_call"),
        ([{"type": "web_search_call"}, 5, {"a": 1}], ["web_search_call", None, None], "", "stop"),
    ],
)
def test_the_forms_of_answers(output: Any, types: list[Any], text: str, reason: str) -> None:
    items = answer_items(output)
    assert [one.get("type") if isinstance(one, dict) else None for one in items] == types
    assert (answer_text(items), finish_reason_of(items)) == (text, reason)


async def test_over_a_websocket_a_stream_that_was_cut_off_is_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = response_body(Reply("Once", is_cut=True), "m")

    async def events(_self: Any, _request: Any) -> Any:
        response = Response.model_validate(body)
        yield ResponseIncompleteEvent(type="response.incomplete", response=response, sequence_number=0)

    monkeypatch.setattr(OpenAIResponsesWSModel, "_iter_websocket_response_events", events)
    model = OpenAIResponsesWSModel("m", openai_client=AsyncOpenAI(api_key="k"))
    result = await ask(Agent("teller", "x", model=model), is_streamed=True)
    assert (result.final_output, finish_reason(result)) == ("Once", "length")
