"""Middleware around model calls: reading, replacing, answering and repeating them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import agents
import pytest
from agents import ModelProvider, ModelResponse, ModelSettings, RunConfig, SQLiteSession, Usage

from kantan_agents import Agent, Event, Middleware
from kantan_agents.core.events import TextDelta
from kantan_agents.errors import MiddlewareResultError, ModelNotFoundError
from kantan_agents.testing import OfflineServer, ScriptedModel, assistant_message, function_call
from tests.core.events.event_checks import check_whole
from tests.core.interception.streams import SaysItInItems
from tests.core.interception.test_middleware import finish, greet

both = pytest.mark.parametrize("streamed", [False, True])

Wrap = Callable[[Any, Any], Any]


class Around(Middleware):
    """A middleware with a function as its only level."""

    def __init__(self, wrap: Wrap) -> None:
        self.wrap = wrap

    async def model_call(self, call: Any, call_next: Any) -> Any:
        return await self.wrap(call, call_next)


def saying(*texts: str) -> ScriptedModel:
    return ScriptedModel([[assistant_message(text)] for text in texts])


def response(text: str, requests: int = 0) -> ModelResponse:
    return ModelResponse([assistant_message(text)], Usage(requests=requests), None)


async def texts_and_context(agent: Agent, **options: Any) -> tuple[list[str], dict[str, Any]]:
    async with agent.stream("hi", **options) as run:
        pieces = [piece async for piece in run.text_deltas()]
    return pieces, run.context


@both
async def test_the_model_receives_every_replaced_attribute(streamed: bool) -> None:
    async def replace(call: Any, call_next: Any) -> Any:
        assert (call.agent, call.instructions, call.is_streamed) == ("a", "Be nice.", streamed)
        assert [tool.name for tool in call.tools] == ["greet"]
        call.instructions = "Be brief."
        call.input = [{"role": "user", "content": "Bonjour"}]
        call.settings = dataclasses.replace(call.settings, temperature=0.5)
        call.tools = []
        return await call_next(call)

    model = saying("x")
    agent = Agent("a", "Be nice.", model=model, tools=[greet], middleware=[Around(replace)])
    context = await finish(agent, streamed=streamed)
    asked: Any = model.last_call
    assert (asked.system_instructions, asked.input) == ("Be brief.", [{"role": "user", "content": "Bonjour"}])
    assert (asked.model_settings.temperature, asked.tools) == (0.5, [])
    assert agent.sdk_agent.model_settings.temperature is None
    assert context["history"][0]["text"] == "hi"


@both
async def test_the_model_can_be_replaced(streamed: bool) -> None:
    other = saying("from the other")

    async def replace(call: Any, call_next: Any) -> Any:
        call.model = other
        return await call_next(call)

    model = saying("never")
    agent = Agent("a", "x", model=model, middleware=[Around(replace)])
    context = await finish(agent, streamed=streamed)
    assert context["result"].final_output == "from the other"
    assert model.calls == ()
    assert agent.sdk_agent.model is model


@both
async def test_a_model_name_is_resolved_by_kantan_llm(streamed: bool, monkeypatch: Any) -> None:
    async def replace(call: Any, call_next: Any) -> Any:
        call.model = "compat/other-model"
        return await call_next(call)

    with OfflineServer(["from the server"]) as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        agent = Agent("a", "x", model=saying("never"), middleware=[Around(replace)])
        context = await finish(agent, streamed=streamed)
        assert [request.model for request in server.requests] == ["other-model"]
    assert context["result"].final_output == "from the server"


@both
async def test_an_unknown_model_name_is_e19(streamed: bool) -> None:
    async def replace(call: Any, call_next: Any) -> Any:
        call.model = "no-such-model"
        return await call_next(call)

    with pytest.raises(ModelNotFoundError):
        await finish(Agent("a", "x", model=saying("x"), middleware=[Around(replace)]), streamed=streamed)


@both
async def test_an_answer_can_be_replaced(streamed: bool) -> None:
    async def shout(call: Any, call_next: Any) -> Any:
        answer = await call_next(call)
        return dataclasses.replace(answer, output=[assistant_message("LOUD")])

    agent = Agent("a", "x", model=saying("quiet"), middleware=[Around(shout)])
    context = await finish(agent, streamed=streamed)
    assert context["result"].final_output == "LOUD"
    assert context["history"][-1]["text"] == "LOUD"


@both
async def test_an_answer_can_be_computed_without_a_model_call(streamed: bool) -> None:
    async def answer(call: Any, call_next: Any) -> Any:
        return response("computed")

    model = saying("never")
    received: list[Event] = []
    agent = Agent("a", "x", model=model, middleware=[Around(answer)])
    with agent.subscribe(received.append):
        context = await finish(agent, streamed=streamed)
    assert (context["result"].final_output, model.calls) == ("computed", ())
    assert context["result"].context_wrapper.usage.requests == 0
    assert [event.text for event in received if isinstance(event, TextDelta)] == (
        ["computed"] if streamed else []
    )
    assert not any(event.type == "model_call_started" for event in received)
    check_whole(received)


@both
async def test_a_computed_answer_may_call_tools(streamed: bool) -> None:
    async def answer(call: Any, call_next: Any) -> Any:
        if len(call.input) > 1 and isinstance(call.input, list):
            return await call_next(call)
        return ModelResponse([function_call("greet", {"name": "Bo"}, call_id="c")], Usage(), None)

    model = saying("done")
    context = await finish(
        Agent("a", "x", model=model, tools=[greet], middleware=[Around(answer)]), streamed=streamed
    )
    assert model.last_call is not None
    assert model.last_call.input[-1]["output"] == "Hello Bo."
    assert context["result"].final_output == "done"


@both
async def test_the_model_may_be_called_again(streamed: bool) -> None:
    async def twice(call: Any, call_next: Any) -> Any:
        first = await call_next(call)
        second = await call_next(call)
        assert first is not second
        return second

    agent = Agent("a", "x", model=saying("one", "two"), middleware=[Around(twice)])
    received: list[Event] = []
    with agent.subscribe(received.append):
        context = await finish(agent, streamed=streamed)
    assert context["result"].final_output == "two"
    ids = [event.to_dict()["call_id"] for event in received if event.type == "model_call_started"]
    assert ids == ["model_1", "model_2"]
    check_whole(received)


@both
async def test_the_first_of_two_answers_may_be_returned(streamed: bool) -> None:
    async def twice(call: Any, call_next: Any) -> Any:
        first = await call_next(call)
        await call_next(call)
        return first

    agent = Agent("a", "x", model=saying("one", "two"), middleware=[Around(twice)])
    assert (await finish(agent, streamed=streamed))["result"].final_output == "one"


@both
async def test_a_failure_can_be_handled(streamed: bool) -> None:
    async def handle(call: Any, call_next: Any) -> Any:
        try:
            return await call_next(call)
        except ConnectionError:
            return response("out of order")

    received: list[Event] = []
    agent = Agent("a", "x", model=ScriptedModel([ConnectionError("gone")]), middleware=[Around(handle)])
    with agent.subscribe(received.append):
        context = await finish(agent, streamed=streamed)
    assert context["result"].final_output == "out of order"
    (ended,) = [event.to_dict() for event in received if event.type == "model_call_finished"]
    assert (ended["outcome"], ended["error_type"], ended["message"]) == ("failed", "ConnectionError", "gone")


@both
async def test_an_error_of_a_middleware_ends_the_run_unchanged(streamed: bool) -> None:
    raised = LookupError("mine")

    async def fail(call: Any, call_next: Any) -> Any:
        await call_next(call)
        raise raised

    with pytest.raises(LookupError) as caught:
        await finish(Agent("a", "x", model=saying("x"), middleware=[Around(fail)]), streamed=streamed)
    assert caught.value is raised


@both
@pytest.mark.parametrize("wrong", [None, "text", [assistant_message("x")]])
async def test_a_result_that_is_not_a_response_is_e80(streamed: bool, wrong: Any) -> None:
    async def answer(call: Any, call_next: Any) -> Any:
        return wrong

    with pytest.raises(MiddlewareResultError, match=r"\[E80\].*ModelResponse"):
        await finish(Agent("a", "x", model=saying("x"), middleware=[Around(answer)]), streamed=streamed)


@both
@pytest.mark.parametrize("wrong", [None, "call", 5])
async def test_passing_on_something_other_than_a_call_is_e80(streamed: bool, wrong: Any) -> None:
    async def pass_on(call: Any, call_next: Any) -> Any:
        return await call_next(wrong)

    with pytest.raises(MiddlewareResultError, match=r"\[E80\].*ModelCall"):
        await finish(Agent("a", "x", model=saying("x"), middleware=[Around(pass_on)]), streamed=streamed)


@both
async def test_an_invalid_model_is_e80(streamed: bool) -> None:
    async def replace(call: Any, call_next: Any) -> Any:
        call.model = 5
        return await call_next(call)

    with pytest.raises(MiddlewareResultError, match=r"call\.model"):
        await finish(Agent("a", "x", model=saying("x"), middleware=[Around(replace)]), streamed=streamed)


async def test_internal_calls_are_marked_and_not_streamed() -> None:
    async def summarize(call: Any, call_next: Any) -> Any:
        summary = await call_next(call.internally(instructions="Summarize.", tools=[]))
        call.instructions = f"{call.instructions} {summary.output[0].content[0].text}"
        return await call_next(call)

    model = saying("a summary", "the answer")
    received: list[Event] = []
    agent = Agent("a", "Be nice.", model=model, tools=[greet], middleware=[Around(summarize)])
    with agent.subscribe(received.append):
        async with agent.stream("hi") as run:
            events = [event async for event in run]
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["the answer"]
    assert not any(event.internal for event in events)
    assert [event.type for event in received if event.internal] == [
        "model_call_started",
        "model_call_finished",
    ]
    check_whole(received)
    first, second = model.calls
    assert (first.system_instructions, first.tools, first.streamed) == ("Summarize.", [], False)
    assert (second.system_instructions, second.streamed) == ("Be nice. a summary", True)
    assert [tool.name for tool in second.tools] == ["greet"]


async def test_has_streamed_is_set_once_text_has_been_passed_on() -> None:
    said: list[bool] = []

    async def look(call: Any, call_next: Any) -> Any:
        said.append(call.has_streamed)
        answer = await call_next(call)
        said.append(call.has_streamed)
        return answer

    await texts_and_context(Agent("a", "x", model=saying("Hi"), middleware=[Around(look)]))
    script = ScriptedModel([[function_call("greet", {"name": "Bo"}, call_id="c")], [assistant_message("Hi")]])
    await texts_and_context(Agent("a", "x", model=script, tools=[greet], middleware=[Around(look)]))
    assert said == [False, True, False, False, False, True]


@both
async def test_a_copy_of_the_call_may_be_passed_on(streamed: bool) -> None:
    import attrs

    async def copy(call: Any, call_next: Any) -> Any:
        return await call_next(attrs.evolve(call, instructions="Copied."))

    model = saying("x")
    await finish(Agent("a", "x", model=model, middleware=[Around(copy)]), streamed=streamed)
    assert model.last_call is not None
    assert model.last_call.system_instructions == "Copied."


# --- models from all sources --------------------------------------------------------------------------


class Provider(ModelProvider):
    def __init__(self, model: Any) -> None:
        self.model = model
        self.asked: list[str | None] = []

    def get_model(self, model_name: str | None) -> Any:
        self.asked.append(model_name)
        return self.model


def watching() -> tuple[list[str], Around]:
    seen: list[str] = []

    async def look(call: Any, call_next: Any) -> Any:
        seen.append(call.agent)
        return await call_next(call)

    return seen, Around(look)


@both
@pytest.mark.parametrize("ours", [False, True])
@pytest.mark.parametrize("way", ["own model", "provider", "run config"])
async def test_the_models_of_hand_off_targets_are_wrapped(streamed: bool, ours: bool, way: str) -> None:
    seen, around = watching()
    script: list[Any] = [[function_call("transfer_to_b", {}, call_id="c")], [assistant_message("from b")]]
    one = ScriptedModel(script)
    target_model: Any = {"own model": saying("from b"), "provider": "some-name", "run config": None}[way]
    target: Any = agents.Agent(name="b", model=target_model)
    config: Any = {"provider": RunConfig(model_provider=Provider(saying("from b")))}.get(way)
    if way == "run config":
        config = RunConfig(model=one)
    if ours:
        target = Agent("b", "y", model=None if way != "own model" else target_model)
    own: Any = None if way == "run config" else ScriptedModel(script[:1])
    agent = Agent("a", "x", model=own, handoffs=[target], middleware=[around])
    received: list[Event] = []
    with agent.subscribe(received.append):
        context = await finish(agent, streamed=streamed, run_config=config)
    assert seen == ["a", "b"]
    assert context["result"].final_output == "from b"
    assert [event.agent for event in received if event.type == "model_call_started"] == ["a", "b"]
    assert [
        (event.agent, event.to_dict()["to_agent"]) for event in received if event.type == "handed_off"
    ] == [("a", "b")]
    check_whole(received)


@both
@pytest.mark.parametrize("ours", [False, True])
@pytest.mark.parametrize("named", [False, True])
async def test_the_models_of_agents_as_tools_are_wrapped(streamed: bool, ours: bool, named: bool) -> None:
    seen, around = watching()
    provider = Provider(saying("from b"))
    helper: Any = agents.Agent(name="b", model="some-name" if named else saying("from b"))
    if ours:
        helper = Agent("b", "y", model=None if named else saying("from b")).sdk_agent
    script: list[Any] = [[function_call("ask", {"input": "x"}, call_id="c")], [assistant_message("done")]]
    agent = Agent(
        "a", "x", model=ScriptedModel(script), tools=[helper.as_tool("ask", "d")], middleware=[around]
    )
    config = RunConfig(model_provider=provider) if named else None
    await finish(agent, streamed=streamed, run_config=config)
    assert seen == ["a", "b", "a"]


@both
async def test_a_model_name_of_a_run_config_is_wrapped_and_resolved_once(streamed: bool) -> None:
    seen, around = watching()
    provider = Provider(saying("from the provider"))
    agent = Agent("a", "x", middleware=[around])
    config = RunConfig(model="some-name", model_provider=provider)
    context = await finish(agent, streamed=streamed, run_config=config)
    assert (seen, provider.asked) == (["a"], ["some-name"])
    assert context["result"].final_output == "from the provider"
    assert config.model_provider is provider
    assert config.model == "some-name"


@both
async def test_user_code_sees_the_users_own_model_everywhere(streamed: bool) -> None:
    model = saying("x")
    looked: list[Any] = []

    class Hooks(agents.RunHooks[Any]):
        async def on_llm_start(self, context: Any, agent: Any, *_: Any) -> None:
            looked.append(agent.name)

    async def look(call: Any, call_next: Any) -> Any:
        looked.append(call.model is model)
        return await call_next(call)

    agent = Agent("a", "x", model=model, middleware=[Around(look)])
    await finish(agent, streamed=streamed, hooks=Hooks())
    assert looked == ["a", True]
    assert agent.sdk_agent.model is model


@both
async def test_sessions_and_previous_responses_are_unaffected(streamed: bool) -> None:
    session = SQLiteSession("s")
    _, around = watching()
    options: list[Any] = []

    async def look(call: Any, call_next: Any) -> Any:
        options.append(call.options["previous_response_id"])
        return await call_next(call)

    model = saying("one", "two")
    agent = Agent("a", "x", model=model, middleware=[around, Around(look)])
    await finish(agent, streamed=streamed, session=session)
    await finish(agent, streamed=streamed, session=session)
    assert [item.get("content") for item in model.calls[1].input if item["role"] == "user"] == ["hi", "hi"]
    assert len(await session.get_items()) == 4
    session.close()
    model = saying("three")
    agent = Agent("a", "x", model=model, middleware=[around, Around(look)])
    await finish(agent, streamed=streamed, previous_response_id="resp_1")
    assert model.last_call is not None
    assert model.last_call.previous_response_id == "resp_1"
    assert options == [None, None, "resp_1"]


@both
async def test_settings_of_the_agent_reach_the_call(streamed: bool) -> None:
    found: list[Any] = []

    async def look(call: Any, call_next: Any) -> Any:
        found.append(call.settings.temperature)
        return await call_next(call)

    settings = ModelSettings(temperature=0.25)
    agent = Agent("a", "x", model=saying("x"), model_settings=settings, middleware=[Around(look)])
    await finish(agent, streamed=streamed)
    assert found == [0.25]


# --- resuming -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("paused_streamed", [False, True])
@pytest.mark.parametrize("resumed_streamed", [False, True])
async def test_agents_of_the_same_name_are_found_again_with_and_without_observers(
    paused_streamed: bool, resumed_streamed: bool
) -> None:
    paid: list[str] = []

    def twins(*, watched: bool) -> Agent:
        def pay_of(number: int) -> Any:
            @agents.function_tool(needs_approval=True, name_override="pay")
            def pay() -> str:
                paid.append(f"by {number}")
                return "paid"

            return pay

        twin: Any = agents.Agent(
            name="twin", model=saying("never"), tools=[pay_of(1)], handoff_description="1"
        )
        script: list[Any] = [[function_call("pay", {}, call_id="p")], [assistant_message("done")]]
        other: Any = agents.Agent(
            name="twin", model=ScriptedModel(script), tools=[pay_of(2)], handoff_description="2"
        )
        hand_over = ScriptedModel([[function_call("to_second", {}, call_id="h")]])
        handoffs = [agents.handoff(twin), agents.handoff(other, tool_name_override="to_second")]
        return Agent(
            "start", "x", model=hand_over, handoffs=handoffs, middleware=[watching()[1]] if watched else []
        )

    agent = twins(watched=True)
    context = await finish(agent, streamed=paused_streamed)
    text = json.dumps(context["result"].to_state().to_json())
    for watched in (True, False):
        paid.clear()
        other = twins(watched=watched)
        state = await agents.RunState.from_json(other.sdk_agent, json.loads(text))
        (item,) = state.get_interruptions()
        state.approve(item)
        if resumed_streamed:
            async with other.stream(state) as run:
                async for _ in run:
                    continue
        else:
            await other.run_async(state)
        assert paid == ["by 2"]


async def test_an_answer_only_in_the_items_of_the_stream_is_received() -> None:
    seen: list[Any] = []

    async def look(call: Any, call_next: Any) -> Any:
        answer = await call_next(call)
        seen.append(answer.output[0].content[0].text)
        return answer

    agent = Agent("a", "x", model=SaysItInItems([[assistant_message("Hello.")]]), middleware=[Around(look)])
    _, context = await texts_and_context(agent)
    assert (context["result"].final_output, seen) == ("Hello.", ["Hello."])
