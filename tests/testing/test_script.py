"""One script language: what ``ScriptedModel`` plays, ``OfflineServer`` plays, with the same result."""

from __future__ import annotations

import json
from typing import Any

import agents
import attrs
import httpx
import openai
import pydantic
import pytest
from agents import ModelResponse, Usage
from hypothesis import given, settings
from hypothesis import strategies as st
from kantan_llm import AsyncClientBundle

from kantan_agents import Agent
from kantan_agents.errors import InvalidOptionError
from kantan_agents.testing import (
    InvalidScriptError,
    ModelStep,
    OfflineServer,
    Reply,
    ScriptedModel,
    ScriptedToolCall,
    assistant_message,
    function_call,
)

WAYS = ["model", "responses", "chat"]


class City(pydantic.BaseModel):
    name: str
    rank: int = 1


@attrs.frozen
class Played:
    """What a run made of a script."""

    outputs: list[Any]
    calls: list[Any]
    history: Any


async def play(script: Any, way: str, *, streamed: bool = False, runs: int = 1) -> Played:
    """Run an agent on a script, in one of the ways, and return what the runs gave."""
    if way == "model":
        return await _run(ScriptedModel(script), streamed=streamed, runs=runs)
    with OfflineServer(script) as server:
        return await _run(with_retries(server.bundle(api=way), 0), streamed=streamed, runs=runs)


def with_retries(bundle: AsyncClientBundle, count: int) -> AsyncClientBundle:
    client = bundle.client.with_options(max_retries=count)
    return AsyncClientBundle(client, bundle.model, bundle.provider, bundle.base_url)


async def _run(model: Any, *, streamed: bool, runs: int) -> Played:
    calls: list[Any] = []
    outputs: list[Any] = []
    context: dict[str, Any] = {}

    def look(city: str) -> str:
        """Look at a city."""
        calls.append(("look", city))
        return f"{city} is there"

    def add(a: int, b: int = 1) -> int:
        """Add two numbers."""
        calls.append(("add", a, b))
        return a + b

    agent = Agent("a", "b", model=model, tools=[look, add])
    for _ in range(runs):
        try:
            if streamed:
                async with agent.stream("hi", context) as run:
                    async for _event in run:
                        pass
            else:
                await agent.run_async("hi", context)
            outputs.append(context["result"].final_output)
        except Exception as error:  # noqa: BLE001 - what the run gave
            outputs.append((type(error).__name__, str(error)))
    return Played(outputs, sorted(calls, key=repr), context.get("history"))


# What is allowed


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("reply", "output"),
    [
        ("hi", "hi"),
        ({"city": "Oslo"}, '{"city": "Oslo"}'),
        ({"status": "open"}, '{"status": "open"}'),
        ({"tool": "a saw", "price": 3}, '{"tool": "a saw", "price": 3}'),
        ({"output": "text"}, '{"output": "text"}'),
        ({"error": "none"}, '{"error": "none"}'),
        ({}, "{}"),
        (City(name="Oslo"), '{"name": "Oslo", "rank": 1}'),
        (["hi"], "hi"),
        ([assistant_message("hi")], "hi"),
        (assistant_message("hi"), "hi"),
        ([{"type": "message", **assistant_message("hi").model_dump()}], "hi"),
        (Reply("hi"), "hi"),
        (Reply("hi", delay=0.001), "hi"),
        (ModelStep(output=[assistant_message("hi")]), "hi"),
        ({"output": [assistant_message("hi")]}, "hi"),
        (ModelStep.respond(lambda _call: "hi"), "hi"),
        (lambda _call: ["hi"], "hi"),
        (ModelResponse(output=[assistant_message("hi")], usage=Usage(), response_id=None), "hi"),
    ],
)
async def test_every_form_of_an_answer_is_played_by_both(way: str, reply: Any, output: str) -> None:
    played = await play([reply], way)
    assert played.outputs == [output]
    assert played.history == [{"role": "user", "text": "hi"}, {"role": "assistant", "text": output}]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "reply",
    [
        {"tool": "look", "arguments": {"city": "Oslo"}},
        {"tool": "look", "arguments": '{"city": "Oslo"}', "id": "call_1"},
        ScriptedToolCall("look", {"city": "Oslo"}),
        [{"tool": "look", "arguments": {"city": "Oslo"}}],
        ["Let me see.", ScriptedToolCall("look", {"city": "Oslo"})],
        [function_call("look", {"city": "Oslo"}, call_id="1")],
        ["Let me see.", function_call("look", {"city": "Oslo"}, call_id="1")],
        Reply("Let me see.", [ScriptedToolCall("look", {"city": "Oslo"})]),
    ],
)
async def test_every_form_of_a_tool_call_is_played_by_both(way: str, reply: Any) -> None:
    played = await play([reply, "done"], way)
    assert (played.outputs, played.calls) == (["done"], [("look", "Oslo")])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("script_is_async", [False, True])
async def test_a_function_of_the_call_is_a_script_in_both(way: str, script_is_async: bool) -> None:
    def answer(call: Any) -> Any:
        if len(call.input) == 1:
            return {"tool": "look", "arguments": {"city": call.input[0]["content"]}}
        return f"{call.system_instructions} {call.streamed}"

    async def later(call: Any) -> Any:
        return answer(call)

    played = await play(later if script_is_async else answer, way)
    assert (played.outputs, played.calls) == (["b False"], [("look", "hi")])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("status", [400, 401, 404, 418, 429, 503])
async def test_an_http_error_is_the_same_error_in_both(way: str, streamed: bool, status: int) -> None:
    reply = {"status": status, "text": "no"}
    played = await play([reply], way, streamed=streamed)
    expected = await play([reply], "responses")
    assert played.outputs == expected.outputs
    assert "no" in played.outputs[0][1]


@pytest.mark.parametrize("way", ["responses", "chat"])
async def test_an_api_error_arrives_over_http_as_it_is(way: str) -> None:
    request = httpx.Request("POST", "http://127.0.0.1")
    response = httpx.Response(429, headers={"retry-after": "7"}, request=request)
    error = openai.RateLimitError("slow down", response=response, body={"message": "slow down", "type": "x"})
    with OfflineServer([error, "not reached"]) as server:
        with pytest.raises(openai.RateLimitError, match="slow down") as caught:
            await Agent("a", "b", model=server.bundle(api=way)).run_async("hi")
        assert len(server.requests) == 1
    assert caught.value.response.headers["retry-after"] == "7"


@pytest.mark.parametrize("way", ["responses", "chat"])
async def test_a_connection_error_closes_the_connection_and_is_one_model_call(way: str) -> None:
    with OfflineServer([ConnectionError("gone"), "back"]) as server:
        agent = Agent("a", "b", model=with_retries(server.bundle(api=way), 1))
        with pytest.raises(openai.APIConnectionError):
            await agent.run_async("hi")
        assert len(server.requests) == 2  # the client's own retry has received the same
        assert (await agent.run_async("hi"))["result"].final_output == "back"


@pytest.mark.parametrize("way", ["responses", "chat"])
async def test_the_error_of_a_function_reaches_the_client(way: str) -> None:
    def answer(_request: Any) -> Any:
        raise LookupError("no such case")

    with OfflineServer(answer) as server:
        with pytest.raises(openai.InternalServerError, match="LookupError: no such case"):
            await Agent("a", "b", model=server.bundle(api=way)).run_async("hi")
        assert len(server.requests) == 1


async def test_an_exception_is_raised_as_it_is_by_the_model() -> None:
    error = LookupError("gone")
    with pytest.raises(LookupError) as caught:
        await Agent("a", "b", model=ScriptedModel([error])).run_async("hi")
    assert caught.value is error


@pytest.mark.parametrize("way", WAYS)
async def test_the_usage_of_a_step_is_reported_by_both(way: str) -> None:
    usage = Usage(requests=1, input_tokens=2, output_tokens=3, total_tokens=5)
    script = [ModelStep(output=[assistant_message("x")], usage=usage)]
    if way == "model":
        context = await Agent("a", "b", model=ScriptedModel(script)).run_async("hi")
    else:
        with OfflineServer(script) as server:
            context = await Agent("a", "b", model=server.bundle(api=way)).run_async("hi")
    reported = context["result"].context_wrapper.usage
    assert (reported.input_tokens, reported.output_tokens, reported.total_tokens) == (2, 3, 5)


@pytest.mark.parametrize("way", ["model", "responses"])
async def test_exact_stream_events_are_sent_by_both(way: str) -> None:
    model = ScriptedModel(["one two three four five six"])
    agent = Agent("a", "b", model=model)
    streamed = agents.Runner.run_streamed(agent.sdk_agent, "hi", context={})
    events = [event.data async for event in streamed.stream_events() if event.type == "raw_response_event"]
    played = await play([ModelStep(stream_events=events)], way, streamed=True)
    assert played.outputs == ["one two three four five six"]


async def test_items_that_chat_completions_does_not_have_are_an_error_there() -> None:
    several = [assistant_message("one"), assistant_message("two")]
    assert (await play([several], "responses")).outputs == ["two"]
    ((kind, message),) = (await play([several], "chat")).outputs
    assert kind == "BadRequestError"
    assert "cannot send this reply of the script: a reply has one message, not 2" in message


async def test_a_structured_answer_of_a_profile_may_be_a_pydantic_object() -> None:
    with OfflineServer([City(name="Oslo")], profile="anthropic") as server:
        agent: Any = Agent("a", "b", model=server.bundle(), output_type=City)
        assert (await agent.run_async("hi"))["result"].final_output == City(name="Oslo")


# What is not


@pytest.mark.parametrize("player", [ScriptedModel, OfflineServer])
@pytest.mark.parametrize(
    ("script", "position"),
    [
        (["fine", 3], "[1]: 3, of type int, is not a reply"),
        ([None], "[0]: None is not a reply"),
        ([str], "[0]: <class 'str'>, of type type, is not a reply"),
        (["a", ["text", "text"]], "[1][1]: 'text' is not at the start"),
        ([[{"tool": "look"}, "text"]], "[0][1]: 'text' is not at the start"),
        ([[{"city": "Oslo"}]], "[0][0]: {'city': 'Oslo'}, of type dict, cannot be part of a list"),
        ([[{"type": "message"}]], "[0][0]: 'message' is not an output item"),
        ([{"tool": "look", "arguments": [1]}], '[0]: "arguments" of a tool call are a dict'),
        ([{"when": object()}], "[0]: a structured answer and the arguments of a call must be JSON"),
        ("hi", ": a script is a list of replies or a function of the call, not 'hi'"),
        ({"a": 1}, ": a script is a list of replies or a function of the call, not {'a': 1}"),
        (3, ": a script is a list of replies or a function of the call, not 3"),
    ],
)
def test_a_wrong_script_is_the_same_error_in_both_with_its_position(
    player: Any, script: Any, position: str
) -> None:
    with pytest.raises(InvalidScriptError) as caught:
        player(script)
    assert caught.value.code == "E75"
    assert position in str(caught.value)
    assert isinstance(caught.value, (InvalidOptionError, TypeError))


@pytest.mark.parametrize("player", [ScriptedModel, OfflineServer])
def test_the_error_says_what_is_allowed(player: Any) -> None:
    with pytest.raises(InvalidScriptError) as caught:
        player([3])
    for allowed in ("a str", "a dict", '{"tool": name', '{"status": 401', "an exception", "a function"):
        assert allowed in str(caught.value)


@pytest.mark.parametrize("way", WAYS)
async def test_a_wrong_return_value_of_a_function_names_the_function(way: str) -> None:
    def forgot_to_return(_call: Any) -> Any:
        pass

    ((_kind, message),) = (await play(forgot_to_return, way)).outputs
    assert "return value of forgot_to_return: None is not a reply" in message


def test_a_body_that_only_http_can_carry_is_an_error_of_the_model() -> None:
    OfflineServer([Reply(body=b"not json")])
    with pytest.raises(InvalidScriptError, match="needs HTTP; play this script with an OfflineServer"):
        ScriptedModel([Reply(body=b"not json")])


async def test_a_wrong_reply_adds_nothing_to_a_model() -> None:
    model = ScriptedModel(["one"])
    with pytest.raises(InvalidScriptError, match=r"steps\[1\]"):
        model.extend(["two", 3])
    with pytest.raises(InvalidScriptError, match="step: 3"):
        model.enqueue(3)
    assert model.remaining_steps == 1


# The property

texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=40)
calls = st.one_of(
    st.builds(lambda city: {"tool": "look", "arguments": {"city": city}}, texts),
    st.builds(lambda a: {"tool": "add", "arguments": {"a": a}}, st.integers(-9, 9)),
    st.builds(lambda a, b: ScriptedToolCall("add", {"a": a, "b": b}), st.integers(-9, 9), st.integers(-9, 9)),
    st.just({"tool": "add", "arguments": '{"a": '}),
    st.just({"tool": "look", "arguments": {"city": 3}}),
    st.just({"tool": "unknown"}),
)
turns = st.one_of(
    calls,
    st.lists(calls, min_size=1, max_size=3),
    st.tuples(texts, calls).map(list),
    st.builds(lambda city: [function_call("look", {"city": city}, call_id="c1")], texts),
)
answers = st.one_of(
    texts,
    texts.map(lambda text: [assistant_message(text)]),
    st.dictionaries(st.sampled_from("abc"), texts | st.integers(), max_size=2),
    st.builds(City, name=texts),
    st.builds(lambda text: Reply(refusal=text), texts),
    st.fixed_dictionaries({"status": st.sampled_from([400, 401, 429, 500]), "text": texts}),
)
scripts = st.lists(
    st.builds(lambda turns, answer: [*turns, answer], st.lists(turns, max_size=2), answers),
    min_size=1,
    max_size=2,
)


@settings(max_examples=15)
@given(scripts)
async def test_a_script_gives_the_same_runs_in_both(runs: list[list[Any]]) -> None:
    script = [reply for run in runs for reply in run]
    expected = await play(script, "model", runs=len(runs))
    assert len(expected.outputs) == len(runs)
    for way in WAYS:
        for streamed in (False, True):
            assert await play(script, way, streamed=streamed, runs=len(runs)) == expected, (way, streamed)


def test_a_script_is_plain_json() -> None:
    text = '["hi", {"tool": "look", "arguments": {"city": "Oslo"}}, {"status": 401, "text": "no"}, {"a": 1}]'
    ScriptedModel(json.loads(text))
    OfflineServer(json.loads(text))
