"""Checked by mypy and pyright in CI: what the types of events, streams and middleware infer to."""

from __future__ import annotations

from typing import Any

from openai.types.responses import ResponseReasoningSummaryTextDeltaEvent
from typing_extensions import assert_never, assert_type

from kantan_agents import (
    Agent,
    Event,
    Middleware,
    ModelCall,
    ModelNext,
    Next,
    Run,
    RunContext,
    RunStream,
    Subscription,
    ToolCall,
    ToolNext,
    subscribe,
)
from kantan_agents.core.events import (
    EventBase,
    ModelCallFinished,
    RawResponseEvent,
    ReasoningDelta,
    RunFinished,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallFinished,
    ToolCallStarted,
    event_schema,
)


class Counting(Middleware):
    async def run(self, run: Run, call_next: Next) -> None:
        run.state[self] = 0
        await call_next(run)

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> Any:
        assert_type(call.run, Run)
        assert_type(call.instructions, str | None)
        assert_type(call.internally(tools=[]), ModelCall)
        return await call_next(call)

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        assert_type(call.arguments, str)
        assert_type(call.refusal, Exception | None)
        return await call_next(call)


class Plain:
    """No ``Middleware``, but with the method of one level."""

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> str:
        return str(await call_next(call))


async def stage(run: Run, call_next: Next) -> None:
    await call_next(run)


def observe(event: Event) -> None:
    assert_type(event.sequence, int)
    assert_type(event.parent_run_id, str | None)
    assert_type(event.to_json(), str)
    assert_type(event.to_dict(), dict[str, Any])
    if isinstance(event, RunFinished):
        assert_type(event.usage, dict[str, int])
    if isinstance(event, ToolCallStarted):
        assert_type(event.tool, str)


def narrow(event: Event) -> str:
    if event.type == "text_delta":
        assert_type(event, TextDelta)
        return event.text
    if event.type == "reasoning_delta":
        assert_type(event, ReasoningDelta)
        return event.text
    if event.type == "tool_arguments_delta":
        assert_type(event, ToolArgumentsDelta)
        return event.tool + event.arguments
    if event.type == "raw_response_event":
        assert_type(event, RawResponseEvent)
        if event.data.type == "response.reasoning_summary_text.delta":
            assert_type(event.data, ResponseReasoningSummaryTextDeltaEvent)
            return event.data.delta
        return event.data.type
    match event.type:
        case "run_finished":
            assert_type(event, RunFinished)
            return str(event.output)
        case "tool_call_started":
            assert_type(event, ToolCallStarted)
            return event.arguments
        case _:
            return event.agent


def narrow_by_pattern(event: Event) -> str | None:
    match event:
        case RunFinished(output=output, usage=usage):
            assert_type(usage, dict[str, int])
            return str(output)
        case TextDelta(text=text):
            return text
        case _:
            return None


def know_all_outcomes(event: ModelCallFinished | ToolCallFinished) -> int:
    match event.outcome:
        case "finished":
            return 0
        case "failed":
            return 1
        case "cancelled":
            return 2
        case _:
            assert_never(event.outcome)


def misspell(event: Event) -> str:
    if event.type == "text_dleta":  # type: ignore[comparison-overlap]
        return ""
    return event.text  # type: ignore[union-attr]


def know_the_base(event: Event) -> EventBase:
    return event


async def observe_later(event: Event) -> None:
    observe(event)


agent = Agent("a", "b", middleware=[Counting(), stage, ("named", Counting())])
kept: list[Event] = []


async def check_streams() -> None:
    assert_type(agent.stream("hi"), RunStream[str])
    assert_type(agent.stream("hi", raw_events=True), RunStream[str])
    async with agent.stream("hi", {"k": 1}, max_turns=3) as run:
        assert_type(run, RunStream[str])
        assert_type(run.id, str)
        async for event in run:
            assert_type(event, Event)
            if isinstance(event, TextDelta):
                assert_type(event.text, str)
        run.cancel()
        run.cancel(mode="after_turn")
        run.cancel(mode="later")  # type: ignore[arg-type]
    async for piece in run.text_deltas():
        assert_type(piece, str)
    assert_type(run.context, RunContext[str])


def check_subscriptions() -> None:
    assert_type(agent.subscribe(observe), Subscription)
    assert_type(subscribe(observe_later), Subscription)
    with agent.subscribe(kept.append) as subscription:
        assert_type(subscription, Subscription)
    agent.subscribe("no function")  # type: ignore[arg-type]
    assert_type(event_schema(), dict[str, Any])
