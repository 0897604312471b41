"""``agent.stream(..., raw_events=True)``: the events that the model streams, as the SDK gives them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import agents
import anyio
import pytest
from agents import ModelBehaviorError, ModelRefusalError, ModelResponse, Usage
from hypothesis import given, settings
from openai.types.responses import (
    ResponseFunctionCallArgumentsDeltaEvent,
    ResponseReasoningSummaryTextDeltaEvent,
)

from kantan_agents import (
    Agent,
    ContentSegment,
    Event,
    Middleware,
    Provider,
    ProviderModel,
    ProviderResponse,
    subscribe,
)
from kantan_agents.core.events import ModelCallFinished, ModelCallStarted, RawResponseEvent, TextDelta
from kantan_agents.middleware import Fallback, Redact
from kantan_agents.models.protocol import ProviderContext
from kantan_agents.testing import (
    OfflineServer,
    Reply,
    ScriptedModel,
    ScriptedToolCall,
    assistant_message,
    function_call,
)
from tests.core.events.event_checks import check_json, check_whole
from tests.core.events.watched_runs import Passes, Playing, Script, built, delta, scripts
from tests.core.events.wire_events import (
    ARGUMENTS,
    CODE,
    IMAGE,
    REASONING,
    REFUSAL,
    TEXT,
    call,
    deltas,
    exact,
    response,
    streamed,
    summary,
    text,
)


def look_up(word: str) -> str:
    """Look up a word."""
    return f"about {word}"


async def events_of(agent: Agent[Any], asked: Any = "Go", **options: Any) -> list[Event]:
    async with agent.stream(asked, {}, **{"raw_events": True, **options}) as run:
        return [event async for event in run]


async def read(stream: Any) -> tuple[list[Any], str | None]:
    """Return the events of a stream, and the model's refusal if it ends with one."""
    events: list[Any] = []
    try:
        async for event in stream:
            events.append(event)
    except ModelRefusalError as refusal:
        return events, str(refusal)
    return events, None


def raw(events: list[Event]) -> list[RawResponseEvent]:
    return [event for event in events if isinstance(event, RawResponseEvent)]


def pieces_of(events: list[Event], kind: str) -> list[str]:
    found: list[Any] = [event.data for event in raw(events)]
    return [data.delta for data in found if data.type == kind]


def kinds(events: list[Event]) -> list[str]:
    return [event.data.type for event in raw(events)]


REPLIES: dict[str, list[Any]] = {
    "text": [streamed(text("It is ", "sunny."))],
    "reasoning": [
        streamed(
            (summary("Hm."), deltas(REASONING, "H", "m.", item="rs_1", summary_index=0)),
            text("Yes.", index=1),
        )
    ],
    "arguments": [
        streamed(
            (call("look_up", '{"word": "x"}'), deltas(ARGUMENTS, '{"word": ', '"x"}', item="fc_call_1"))
        ),
        streamed(text("Found.")),
    ],
    "refusal": [
        streamed(
            (
                {**text()[0], "content": [{"type": "refusal", "refusal": "I cannot."}]},
                deltas(REFUSAL, "I can", "not.", content_index=0),
            )
        )
    ],
    "code": [
        streamed(
            (
                {
                    "id": "ci_1",
                    "type": "code_interpreter_call",
                    "status": "completed",
                    "code": "1 + 1",
                    "container_id": "c",
                    "outputs": None,
                },
                deltas(CODE, "1 +", " 1", item="ci_1"),
            ),
            text("2", index=1),
        )
    ],
    "image": [
        streamed(
            (
                {"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": "aGk="},
                [
                    {
                        "type": IMAGE,
                        "item_id": "ig_1",
                        "output_index": 0,
                        "partial_image_b64": "aA==",
                        "partial_image_index": 0,
                    }
                ],
            ),
            text("Drawn.", index=1),
        )
    ],
}


@pytest.mark.parametrize("replies", REPLIES.values(), ids=REPLIES)
@pytest.mark.parametrize("wrapped", [False, True])
async def test_they_are_those_of_the_sdk_in_the_same_order(replies: list[Any], wrapped: bool) -> None:
    with OfflineServer(replies) as server:
        plain = agents.Agent(
            name="a",
            instructions="x",
            tools=[agents.function_tool(look_up)],
            model=agents.OpenAIResponsesModel("offline-model", server.bundle().client),
        )
        result = agents.Runner.run_streamed(plain, "Go")
        of_the_sdk, refused = await read(result.stream_events())
    expected = [event.data for event in of_the_sdk if event.type == "raw_response_event"]
    with OfflineServer(replies) as server:
        around = [Passes()] if wrapped else []
        agent = Agent("a", "x", model=server.bundle(), tools=[look_up], middleware=around)
        async with agent.stream("Go", raw_events=True) as run:
            events, refused_too = await read(run)
    assert refused == refused_too
    assert [event.data.type for event in raw(events)] == [data.type for data in expected]
    assert [event.data for event in raw(events)] == expected
    for event in events:
        check_json(event)
    check_whole(events)


async def test_over_chat_completions_they_have_the_form_of_the_responses_api() -> None:
    with OfflineServer([ScriptedToolCall("look_up", {"word": "x"}), "Found it at last."]) as server:
        events = await events_of(Agent("a", "x", model=server.bundle(api="chat"), tools=[look_up]))
    arguments = pieces_of(events, ARGUMENTS)
    words = pieces_of(events, TEXT)
    assert json.loads("".join(arguments)) == {"word": "x"}
    assert "".join(words) == "Found it at last."
    assert kinds(events).count("response.completed") == 2


class Whole(Provider):
    """A provider of the protocol."""

    id, name = "whole", "Whole"

    async def generate(self, prompt: str, context: ProviderContext) -> ProviderResponse:
        return ProviderResponse([ContentSegment.of_text("One answer.")])


async def test_those_of_a_custom_provider_are_those_that_the_sdk_gives_for_it() -> None:
    plain = agents.Agent(name="a", instructions="x", model=ProviderModel(Whole()))
    result = agents.Runner.run_streamed(plain, "Go")
    expected = [
        event.data.type async for event in result.stream_events() if event.type == "raw_response_event"
    ]
    events = await events_of(Agent("a", "x", model=Whole()))
    assert kinds(events) == expected
    assert "".join(pieces_of(events, TEXT)) == "One answer."


async def test_each_comes_before_the_event_that_is_made_of_it_and_within_its_model_call() -> None:
    replies = [*REPLIES["arguments"][:1], *REPLIES["reasoning"]]
    with OfflineServer(replies) as server:
        events = await events_of(Agent("a", "x", model=server.bundle(), tools=[look_up]))
    made_of = {"text_delta": TEXT, "reasoning_delta": REASONING, "tool_arguments_delta": ARGUMENTS}
    for place, event in enumerate(events):
        if event.type in made_of:
            before = events[place - 1]
            assert isinstance(before, RawResponseEvent)
            assert before.data.type == made_of[event.type]
    open_call = None
    for event in events:
        if isinstance(event, ModelCallStarted):
            open_call = event.call_id
        elif isinstance(event, RawResponseEvent):
            assert event.call_id == open_call
        elif isinstance(event, ModelCallFinished):
            open_call = None


async def test_only_those_who_ask_receive_them() -> None:
    with OfflineServer(["One two three four."] * 3) as server:
        agent = Agent("a", "x", model=server.bundle())
        assert not raw(await events_of(agent, raw_events=False))
        some: list[Event] = []
        every: list[Event] = []
        with agent.subscribe(some.append), subscribe(every.append), subscribe(some.append):
            assert raw(await events_of(agent))
        assert len(some) == len(every) > 0
        assert not raw(some)
        some.clear()
        with agent.subscribe(every.append, raw_events=True), subscribe(every.append), subscribe(some.append):
            every.clear()
            streamed = await events_of(agent, raw_events=False)
    assert raw(every)
    assert [event for event in every if event.type != "raw_response_event"] == some == streamed
    check_whole(every)


@settings(max_examples=15)
@given(scripts.filter(lambda script: not script.may_differ_in_order))
def test_a_run_is_the_same_with_them(script: Script) -> None:
    async def run(*, raw_events: bool) -> list[Any]:
        found: list[Any] = []
        try:
            async with built(script).stream("hi", {"mine": 1}, raw_events=raw_events) as stream:
                async for event in stream:
                    if not isinstance(event, RawResponseEvent):
                        found.append((event.type, event.agent, event.parent_run_id is None))
            found.append(stream.context["result"].final_output)
        except Exception as error:  # noqa: BLE001 - compared
            found.append(repr(error))
        return found

    assert anyio.run(lambda: run(raw_events=True)) == anyio.run(lambda: run(raw_events=False))


SECRET = "anna@example.com"


def leaking(pieces: list[str], **fields: Any) -> Reply:
    """Return a reply with a secret in every place that a stream has."""
    thought = (summary(f"Mail {SECRET}"), deltas(REASONING, "Mail ", SECRET, item="rs_1", summary_index=0))
    called = (
        call("look_up", json.dumps({"word": SECRET})),
        deltas(ARGUMENTS, '{"word": "', f'{SECRET}"}}', item="fc_call_1", index=1),
    )
    item, words = text(*pieces, index=2)
    for word in words:
        word |= {"logprobs": [{"token": SECRET, "logprob": 0.0, "top_logprobs": []}], "seen": SECRET}
    return streamed(thought, called, (item, words), instructions=f"Write to {SECRET}.", **fields)


@pytest.mark.parametrize("pieces", [["Mail ", SECRET, "."], ["Mail anna@exa", "mple", ".com."], list(SECRET)])
@pytest.mark.parametrize("mode", ["mask", "hash"])
async def test_what_is_redacted_is_in_none_of_them(pieces: list[str], mode: Any) -> None:
    with OfflineServer([leaking(pieces), streamed(text("Done ", SECRET))]) as server:
        agent = Agent("a", "x", model=server.bundle(), tools=[look_up], middleware=[Redact(mode=mode)])
        events = await events_of(agent)
    assert not any("anna" in event.to_json() or "anna" in repr(event) for event in events)
    assert set(kinds(events)) == {TEXT}
    assert "[email" in "".join(pieces_of(events, TEXT))


async def test_nothing_of_a_blocked_answer_is_in_them() -> None:
    with OfflineServer([leaking(["Mail ", SECRET])]) as server:
        agent = Agent("a", "x", model=server.bundle(), tools=[look_up], middleware=[Redact(mode="block")])
        events: list[Event] = []
        with pytest.raises(Exception, match="E84"):
            async with agent.stream("Go", raw_events=True) as run:
                async for event in run:
                    events.append(event)
    assert not any("anna" in event.to_json() for event in events)


async def test_the_error_of_a_failed_stream_is_one_of_them() -> None:
    failed = response(status="failed", error={"code": "server_error", "message": "broken"}, usage=None)
    reply = exact({"type": "response.failed", "sequence_number": 0, "response": failed})
    events: list[Event] = []
    with OfflineServer([reply]) as server, pytest.raises(ModelBehaviorError):
        async with Agent("a", "x", model=server.bundle()).stream("Go", raw_events=True) as run:
            async for event in run:
                events.append(event)
    assert kinds(events) == ["response.failed"]


class Breaking(Playing):
    """Breaks off after its reasoning."""

    async def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        yield ResponseReasoningSummaryTextDeltaEvent(
            type="response.reasoning_summary_text.delta",
            item_id="rs_1",
            output_index=0,
            summary_index=0,
            delta="Hm",
            sequence_number=0,
        )
        raise TimeoutError


async def test_a_call_that_another_model_repeats_has_an_id_of_its_own() -> None:
    agent = Agent("a", "x", model=Breaking("a", []), middleware=[Fallback(Playing("spare", [], words=1))])
    events = await events_of(agent)
    assert [(event.call_id, event.data.type) for event in raw(events)] == [
        ("model_1", REASONING),
        ("model_2", TEXT),
        ("model_2", "response.completed"),
    ]


async def test_after_a_hand_off_they_have_the_name_of_the_new_agent() -> None:
    target = Agent("target", "x", model=ScriptedModel([[assistant_message("Done.")]]))
    to_target = [function_call("transfer_to_target", {}, call_id="c")]
    events = await events_of(Agent("entry", "x", model=ScriptedModel([to_target]), handoffs=[target]))
    assert list(dict.fromkeys(event.agent for event in raw(events))) == ["entry", "target"]


async def test_those_of_streamed_runs_inside_are_in_the_outer_stream() -> None:
    helper = agents.Agent(name="helper", instructions="x", model=Playing("helper", [], words=2))
    tool = helper.as_tool("help", "x", on_stream=lambda _: None)
    quiet = Agent("quiet", "x", model=ScriptedModel([[assistant_message("Quiet.")]]))
    loud = Agent("loud", "x", model=Playing("loud", [], words=2))

    async def ask_both() -> str:
        await quiet.run_async("?")
        async with loud.stream("?") as inner:  # which does not ask for them itself
            assert not raw([event async for event in inner])
        return "asked"

    calls = [function_call("help", {"input": "?"}, call_id="c1"), function_call("ask_both", {}, call_id="c2")]
    model = ScriptedModel([calls, [assistant_message("Done.")]])
    events = await events_of(Agent("outer", "x", model=model, tools=[tool, ask_both]))
    assert {event.agent for event in raw(events)} == {"outer", "helper", "loud"}
    assert {event.parent_run_id is None for event in raw(events) if event.agent == "loud"} == {False}
    check_whole(events)


class Answers(Middleware):
    async def model_call(self, call: Any, call_next: Any) -> ModelResponse:
        return ModelResponse(output=[assistant_message("By itself.")], usage=Usage(), response_id=None)


async def test_an_answer_without_the_model_has_none() -> None:
    events = await events_of(Agent("a", "x", model=ScriptedModel(), middleware=[Answers()]))
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["By itself."]
    assert not raw(events)


async def test_a_slow_reader_of_them_slows_down_the_model() -> None:
    model = Playing("a", [], words=2000)
    async with Agent("a", "x", model=model).stream("Go", raw_events=True) as run:
        async for event in run:
            if isinstance(event, RawResponseEvent):
                break
        for _ in range(500):
            await asyncio.sleep(0)
        assert model.deltas < 200


async def test_an_event_of_a_model_that_is_not_of_openai_s_classes_is_passed_on() -> None:
    class Odd(Playing):
        async def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            yield {"type": "vendor.ping", "n": 1}
            yield delta("Hi")
            async for event in super().stream_response(*args, **kwargs):
                yield event

    events = await events_of(Agent("a", "x", model=Odd("a", [], words=0)))
    ping: Any = raw(events)[0].data
    assert ping == {"type": "vendor.ping", "n": 1}
    assert json.loads(raw(events)[0].to_json())["data"] == {"type": "vendor.ping", "n": 1}


async def test_a_check_of_the_type_of_the_data_narrows_it() -> None:
    with OfflineServer([ScriptedToolCall("look_up", {"word": "x"}), "Found."]) as server:
        events = await events_of(Agent("a", "x", model=server.bundle(), tools=[look_up]))
    found = ""
    for event in events:
        if event.type == "raw_response_event" and event.data.type == "response.function_call_arguments.delta":
            assert isinstance(event.data, ResponseFunctionCallArgumentsDeltaEvent)
            found += event.data.delta
    assert json.loads(found) == {"word": "x"}
