"""The events of the SDK in a stream: complete if user code reads them, else only those it needs."""

from __future__ import annotations

import dataclasses
from typing import Any

import agents
import pytest
from agents import GuardrailFunctionOutput, InputGuardrail, RawResponsesStreamEvent
from openai.types.responses import ResponseReasoningSummaryTextDeltaEvent

from kantan_agents import Agent, Middleware
from kantan_agents.core.events import TextDelta
from kantan_agents.middleware import Fallback, Retry
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from tests.core.events.watched_runs import Passes, Playing

pytestmark = pytest.mark.parametrize("wrapped", [False, True])

WORDS = 20


def is_delta(event: Any) -> bool:
    return bool(event.type == "raw_response_event" and event.data.type == "response.output_text.delta")


async def test_an_agent_as_a_tool_passes_each_delta_to_its_on_stream_callback(wrapped: bool) -> None:
    read: list[Any] = []
    helper = agents.Agent(name="helper", instructions="x", model=Playing("helper", [], words=WORDS))
    tool = helper.as_tool("help", "x", on_stream=lambda streamed: read.append(streamed["event"]))
    call = function_call("help", {"input": "?"}, call_id="c")
    model = ScriptedModel([[call], [assistant_message("Done.")]])
    outer = Agent("outer", "x", model=model, tools=[tool], middleware=[Passes()] if wrapped else [])
    async with outer.stream("Go") as run:
        deltas = [event async for event in run if isinstance(event, TextDelta) and event.agent == "helper"]
    assert len(deltas) == WORDS
    assert len([event for event in read if is_delta(event)]) == WORDS


async def test_a_guardrail_reads_each_delta_of_its_own_stream(wrapped: bool) -> None:
    read: list[Any] = []
    judge = Agent(
        "judge", "x", model=Playing("judge", [], words=WORDS), middleware=[Passes()] if wrapped else []
    )

    async def check(_context: Any, _agent: Any, _asked: Any) -> GuardrailFunctionOutput:
        streamed = agents.Runner.run_streamed(judge.sdk_agent, "?")
        read.extend([event async for event in streamed.stream_events()])
        return GuardrailFunctionOutput(None, tripwire_triggered=False)

    guarded = Agent(
        "outer",
        "x",
        model=Playing("outer", []),
        input_guardrails=[InputGuardrail(check)],
        middleware=[Passes()] if wrapped else [],
    )
    async with guarded.stream("Go") as run:
        async for _ in run:
            continue
    assert len([event for event in read if is_delta(event)]) == WORDS


class BreakingOff(Playing):
    """Fails in its first call after some words, with an error that ``Retry`` retries."""

    def __init__(self, words_before: int) -> None:
        super().__init__("a", [], words=WORDS)
        self.asked = 0
        self._words_before = words_before

    async def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        self.asked += 1
        words = 0
        async for event in super().stream_response(*args, **kwargs):
            if event.type == "response.output_text.delta":
                if words == self._words_before and self.asked == 1:
                    raise TimeoutError
                words += 1
            yield event


@pytest.mark.parametrize("words_before", [0, 1, 5])
async def test_an_answer_that_breaks_off_is_requested_again_unless_some_of_it_was_emitted(
    wrapped: bool, words_before: int
) -> None:
    model = BreakingOff(words_before)
    middleware = [Retry(3, initial_delay=0), *([Passes()] if wrapped else [])]
    read: list[str] = []
    failures: list[TimeoutError] = []
    async with Agent("a", "x", model=model, middleware=middleware).stream("Go") as run:
        try:
            async for text in run.text_deltas():
                read.append(text)
        except TimeoutError as error:
            failures.append(error)
    assert model.asked == (1 if words_before else 2)
    assert len(read) == (words_before or WORDS)
    assert bool(failures) == bool(words_before)


class Thinking(Playing):
    """Streams reasoning before its first word, and then fails if ``fails`` is set."""

    def __init__(self, *, fails: bool) -> None:
        super().__init__("a", [], words=1)
        self._fails = fails

    async def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        yield ResponseReasoningSummaryTextDeltaEvent(
            type="response.reasoning_summary_text.delta",
            item_id="r",
            output_index=0,
            summary_index=0,
            delta="Hm",
            sequence_number=0,
        )
        async for event in super().stream_response(*args, **kwargs):
            if event.type == "response.completed" and self._fails:
                raise ConnectionError
            yield event


class Copies(Middleware):
    async def model_call(self, call: Any, call_next: Any) -> Any:
        answer = await call_next(call)
        return dataclasses.replace(answer, output=list(answer.output))


async def test_text_after_other_deltas_is_emitted_once(wrapped: bool) -> None:
    around = [Passes()] if wrapped else []
    agent = Agent("a", "x", model=Thinking(fails=False), middleware=[*around, Copies()])
    async with agent.stream("Go") as run:
        assert [text async for text in run.text_deltas()] == ["a0"]


async def test_no_fallback_answers_after_text_that_followed_other_deltas(wrapped: bool) -> None:
    around = [Passes()] if wrapped else []
    spare = ScriptedModel([[assistant_message("Spare.")]])
    agent = Agent("a", "x", model=Thinking(fails=True), middleware=[*around, Fallback(spare)])
    with pytest.raises(ConnectionError):
        async with agent.stream("Go") as run:
            async for _ in run:
                continue
    assert spare.calls == ()


async def test_the_sdk_receives_only_the_first_delta_if_nothing_reads_its_events(
    wrapped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed_on: list[Any] = []

    def record(data: Any) -> RawResponsesStreamEvent:
        passed_on.append(data)
        return RawResponsesStreamEvent(data=data)

    monkeypatch.setattr("agents.run_internal.run_loop.RawResponsesStreamEvent", record)
    middleware = [Passes()] if wrapped else []
    model = Playing("a", [], words=WORDS)
    async with Agent("a", "x", model=model, middleware=middleware).stream("Go") as run:
        assert len([text async for text in run.text_deltas()]) == WORDS
    assert [event.type for event in passed_on] == ["response.output_text.delta", "response.completed"]


async def test_a_custom_runner_receives_all_deltas(wrapped: bool) -> None:
    read: list[Any] = []

    class Reading(agents.Runner):
        @classmethod
        def run_streamed(cls, *args: Any, **kwargs: Any) -> Any:
            streamed = super().run_streamed(*args, **kwargs)
            stream_events = streamed.stream_events

            async def reading() -> Any:
                async for event in stream_events():
                    read.append(event)
                    yield event

            streamed.stream_events = reading  # type: ignore[method-assign]
            return streamed

    middleware = [Passes()] if wrapped else []
    model = Playing("a", [], words=WORDS)
    async with Agent("a", "x", model=model, middleware=middleware, runner=Reading).stream("Go") as run:
        async for _ in run:
            continue
    assert len([event for event in read if is_delta(event)]) == WORDS
