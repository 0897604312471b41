from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from agents import Agent as SDKAgent
from agents import ModelSettings, RunConfig, UserError
from openai.types.responses import ResponseCreatedEvent, ResponseTextDeltaEvent
from openai.types.shared import Reasoning

from kantan_agents import Agent
from kantan_agents.core.events import ModelCallFinished, ModelCallStarted
from kantan_agents.errors import BudgetExceededError, InvalidOptionError, ModelNotFoundError
from kantan_agents.middleware import Budget, Fallback
from kantan_agents.testing import (
    OfflineServer,
    Reply,
    ScriptedModel,
    ScriptedToolCall,
    assistant_message,
    function_call,
)


class Named(ScriptedModel):
    def __init__(self, name: str, *steps: Any) -> None:
        super().__init__(steps)
        self.name = name


def working(name: str = "spare") -> Named:
    return Named(name, [assistant_message(f"From {name}.")])


def failing(name: str = "first", error: Exception | None = None) -> Named:
    return Named(name, error or ConnectionError(f"{name} is down"))


async def output(agent: Agent, **options: Any) -> str:
    return str((await agent.run_async("Go", **options))["result"].final_output)


async def test_the_next_model_answers_if_one_fails() -> None:
    spare = working()
    agent = Agent("a", "Be brief.", model=failing(), middleware=[Fallback(spare)])
    assert await output(agent) == "From spare."
    assert spare.last_call is not None
    assert spare.last_call.system_instructions == "Be brief."


async def test_a_model_that_works_is_not_replaced() -> None:
    spare = working()
    agent = Agent("a", "x", model=working("first"), middleware=[Fallback(spare)])
    assert await output(agent) == "From first."
    assert spare.calls == ()


async def test_models_are_called_in_order() -> None:
    agent = Agent("a", "x", model=failing(), middleware=[Fallback(failing("second"), working("third"))])
    seen: list[Any] = []
    with agent.subscribe(seen.append):
        assert await output(agent) == "From third."
    assert [event.model for event in seen if isinstance(event, ModelCallStarted)] == [
        "first",
        "second",
        "third",
    ]
    outcomes = [event.outcome for event in seen if isinstance(event, ModelCallFinished)]
    assert outcomes == ["failed", "failed", "finished"]


def error_chain(error: BaseException | None) -> Iterator[str]:
    while error is not None:
        yield str(error)
        error = error.__cause__ or error.__context__


async def test_if_all_fail_the_last_error_is_raised_and_its_chain_holds_the_others() -> None:
    agent = Agent("a", "x", model=failing(), middleware=[Fallback(failing("second"), failing("third"))])
    with pytest.raises(ConnectionError, match="third") as caught:
        await agent.run_async("Go")
    assert list(error_chain(caught.value)) == ["third is down", "second is down", "first is down"]


async def test_an_error_keeps_its_own_cause() -> None:
    last = ConnectionError("last")
    last.__cause__ = TimeoutError("its cause")
    agent = Agent("a", "x", model=failing(), middleware=[Fallback(failing("second", last))])
    with pytest.raises(ConnectionError, match="last") as caught:
        await agent.run_async("Go")
    assert list(error_chain(caught.value)) == ["last", "its cause", "first is down"]


async def test_the_same_error_raised_twice_does_not_make_a_cycle() -> None:
    error = ConnectionError("the same")
    agent = Agent("a", "x", model=failing(error=error), middleware=[Fallback(failing("second", error))])
    with pytest.raises(ConnectionError) as caught:
        await agent.run_async("Go")
    assert list(error_chain(caught.value)) == ["the same"]


@pytest.mark.parametrize(
    "error", [UserError("the user's fault"), BudgetExceededError(what="x", limit=1, used=1)]
)
async def test_an_error_that_another_model_cannot_avoid_is_raised_at_once(error: Exception) -> None:
    spare = working()
    agent = Agent("a", "x", model=failing(error=error), middleware=[Fallback(spare)])
    with pytest.raises(type(error)):
        await agent.run_async("Go")
    assert spare.calls == ()


async def test_a_budget_inside_the_fallback_ends_the_run() -> None:
    spare = working()
    agent = Agent("a", "x", model=failing(), middleware=[Fallback(spare), Budget(max_model_calls=0)])
    with pytest.raises(BudgetExceededError):
        await agent.run_async("Go")
    assert spare.calls == ()


async def test_a_cancellation_does_not_trigger_the_fallback() -> None:
    class Cancelling(ScriptedModel):
        async def get_response(self, *_args: Any, **_kwargs: Any) -> Any:
            raise asyncio.CancelledError

    spare = working()
    agent = Agent("a", "x", model=Cancelling(), middleware=[Fallback(spare)])
    with pytest.raises(asyncio.CancelledError):
        await agent.run_async("Go")
    assert spare.calls == ()


@pytest.mark.parametrize("options", [{"previous_response_id": "resp_1"}, {"conversation_id": "conv_1"}])
async def test_a_conversation_stored_at_the_provider_is_not_moved_to_another_model(
    options: dict[str, Any],
) -> None:
    spare = working()
    agent = Agent("a", "x", model=failing(), middleware=[Fallback(spare)])
    with pytest.raises(ConnectionError):
        await agent.run_async("Go", **options)
    assert spare.calls == ()


class FailsMidStream(Named):
    """Fails in the middle of its stream, before or after its first text."""

    def __init__(self, *, after_text: bool) -> None:
        super().__init__("first", [assistant_message("I think")])
        self._after_text = after_text

    async def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        async for event in super().stream_response(*args, **kwargs):
            yield event
            if isinstance(event, ResponseTextDeltaEvent if self._after_text else ResponseCreatedEvent):
                raise ConnectionError("broken off")


@pytest.mark.parametrize("after_text", [False, True])
async def test_there_is_no_fallback_after_text_has_been_streamed(after_text: bool) -> None:
    agent = Agent("a", "x", model=FailsMidStream(after_text=after_text), middleware=[Fallback(working())])
    texts: list[str] = []
    failures: list[Exception] = []
    async with agent.stream("Go") as stream:
        try:
            async for text in stream.text_deltas():
                texts.append(text)
        except ConnectionError as error:
            failures.append(error)
    written = "".join(texts)
    assert ("I think" if after_text else "From spare.").startswith(written)
    assert written
    assert len(failures) == after_text


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(("first", "second"), [("responses", "chat"), ("chat", "responses")])
async def test_across_providers_in_the_middle_of_a_run(first: str, second: str, streamed: bool) -> None:
    def look() -> str:
        return "seen"

    down_from_now_on = [Reply("down", status=500)] * 3
    with (
        OfflineServer([ScriptedToolCall("look"), *down_from_now_on]) as down,
        OfflineServer(["Done."]) as up,
    ):
        agent = Agent(
            "a",
            "x",
            model=down.bundle("one", api=first),
            tools=[look],
            middleware=[Fallback(up.bundle("two", api=second))],
        )
        if streamed:
            async with agent.stream("Go") as stream:
                assert "".join([text async for text in stream.text_deltas()]) == "Done."
        else:
            assert await output(agent) == "Done."
    assert "seen" in json.dumps(up.requests[0].body)
    assert up.requests[0].model == "two"


async def test_names_are_resolved_by_kantan_llm(monkeypatch: pytest.MonkeyPatch) -> None:
    with OfflineServer(lambda request: request.model) as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        agent = Agent("a", "x", model=failing(), middleware=[Fallback("gemini-2.5-pro")])
        assert await output(agent) == "gemini-2.5-pro"


async def test_default_settings_of_one_model_are_not_sent_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    with OfflineServer([*[Reply("down", status=500)] * 3, "Done."]) as server:
        for name, value in server.environment().items():
            monkeypatch.setenv(name, value)
        agent = Agent("a", "x", model="gpt-5", middleware=[Fallback("gemini-2.5-pro")])
        config = RunConfig(model_settings=ModelSettings(temperature=0.5))
        assert await output(agent, run_config=config) == "Done."
    *_, failed, answered = server.requests
    assert "reasoning" in failed.body
    assert "reasoning_effort" not in answered.body
    assert "verbosity" not in answered.body
    assert answered.body["temperature"] == 0.5


async def test_explicit_settings_are_sent_to_the_substitute() -> None:
    spare = working()
    settings = ModelSettings(temperature=0.3, reasoning=Reasoning(effort="high"))
    agent = Agent("a", "x", model=failing("gpt-5"), model_settings=settings, middleware=[Fallback(spare)])
    await agent.run_async("Go")
    assert spare.last_call is not None
    assert spare.last_call.model_settings.temperature == 0.3
    assert spare.last_call.model_settings.reasoning.effort == "high"


async def test_each_fallback_is_recorded_in_the_trace(traces: Any) -> None:
    agent = Agent("a", "x", model=failing(), middleware=[Fallback(failing("second"), working("third"))])
    await agent.run_async("Go")
    spans = [span for span in traces.spans(span_type="custom") if span.name == "fallback"]
    recorded = sorted((span.raw["span_data"]["data"] for span in spans), key=lambda data: str(data["from"]))
    assert recorded == [
        {"from": "first", "to": "second", "error_type": "ConnectionError", "agent": "a"},
        {"from": "second", "to": "third", "error_type": "ConnectionError", "agent": "a"},
    ]


async def test_each_model_call_starts_with_the_agents_own_model() -> None:
    def look() -> str:
        return "seen"

    first = Named("first", ConnectionError("busy"), [assistant_message("From first.")])
    spare = Named("spare", [function_call("look", {}, call_id="1")])
    agent = Agent("a", "x", model=first, tools=[look], middleware=[Fallback(spare)])
    assert await output(agent) == "From first."


async def test_it_applies_to_handoff_targets_and_agents_used_as_tools() -> None:
    inner = SDKAgent(name="inner", model=failing("inner"))
    spare = Named("spare", [assistant_message("Inner.")], [assistant_message("Done.")])
    model = Named("b", [function_call("ask", {"input": "?"}, call_id="1")], ConnectionError("down"))
    target = Agent("b", "x", model=model, tools=[inner.as_tool("ask", "Ask.")])
    first = Named("a", [function_call("transfer_to_b", {}, call_id="0")])
    agent = Agent("a", "x", model=first, handoffs=[target], middleware=[Fallback(spare)])
    assert await output(agent) == "Done."
    assert spare.remaining_steps == 0


@pytest.mark.parametrize("models", [(), (None,), (working(), 3)])
def test_an_argument_that_is_not_a_model_is_an_error(models: Any) -> None:
    with pytest.raises(InvalidOptionError, match="model"):
        Fallback(*models)


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(ModelNotFoundError):
        Fallback("no-such-model")
