"""What the SDK sees of a stream: enough to go by, and all of it where somebody reads the SDK's own events."""

from __future__ import annotations

from typing import Any

import agents
import pytest
from agents import GuardrailFunctionOutput, InputGuardrail

from kantan_agents import Agent
from kantan_agents.events import TextDelta
from kantan_agents.middleware import Retry
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from tests.events.watched_runs import Passes, Playing

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("wrapped", [False, True])]

WORDS = 20


def is_delta(event: Any) -> bool:
    return bool(event.type == "raw_response_event" and event.data.type == "response.output_text.delta")


async def test_an_agent_as_a_tool_hands_each_delta_to_whoever_asked_for_it(wrapped: bool) -> None:
    read: list[Any] = []
    helper = agents.Agent(name="helper", instructions="x", model=Playing("helper", [], words=WORDS))
    tool = helper.as_tool("help", "x", on_stream=lambda told: read.append(told["event"]))
    call = function_call("help", {"input": "?"}, call_id="c")
    model = ScriptedModel([[call], [assistant_message("Done.")]])
    outer = Agent("outer", "x", model=model, tools=[tool], middleware=[Passes()] if wrapped else [])
    async with outer.stream("Go") as run:
        told = [event async for event in run if isinstance(event, TextDelta) and event.agent == "helper"]
    assert len(told) == WORDS
    assert len([event for event in read if is_delta(event)]) == WORDS


async def test_a_guardrail_reads_each_delta_of_what_it_streams(wrapped: bool) -> None:
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
    """Fails behind its first words, with what is tried again before them."""

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
async def test_an_answer_that_breaks_off_is_asked_for_again_unless_some_of_it_was_told(
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
