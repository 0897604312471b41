"""``agent.stream``: the same results as ``run_async``, and no leftovers of a stream that is left early."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import agents
import anyio
import pytest
from agents import ModelResponse, Usage, set_trace_processors
from agents.tracing import TracingProcessor, get_current_span, get_current_trace
from hypothesis import given
from pydantic import BaseModel

from kantan_agents import Agent, Event
from kantan_agents.agent.bridge.model_answers import completed_event
from kantan_agents.agent.running.stream import BUFFERED
from kantan_agents.core.events import TextDelta, ToolCallStarted
from kantan_agents.core.pipeline import current_run
from kantan_agents.errors import InputTypeError, StreamUsageError, ToolNotAllowedError
from kantan_agents.testing import (
    OfflineServer,
    ScriptedModel,
    ScriptedToolCall,
    assistant_message,
    function_call,
)
from tests.core.events.event_checks import check_whole
from tests.core.events.watched_runs import RULES, Passes, Playing, Script, built, delta, scripts


class Recording(TracingProcessor):
    """Collects the recorded spans and traces, and tracks those that have not ended."""

    def __init__(self) -> None:
        self.open: set[Any] = set()
        self.rows: list[tuple[str, str, bool]] = []

    def on_trace_start(self, trace: Any) -> None:
        self.open.add(trace)

    def on_trace_end(self, trace: Any) -> None:
        self.open.discard(trace)
        self.rows.append(("trace", trace.name, False))

    def on_span_start(self, span: Any) -> None:
        self.open.add(span)

    def on_span_end(self, span: Any) -> None:
        self.open.discard(span)
        data = span.export()["span_data"]
        metadata = data.get("data")
        if isinstance(metadata, dict):
            data["data"] = {key: value for key, value in metadata.items() if key != "agent_run_id"}
        self.rows.append(
            (data["type"], json.dumps(data, default=str, sort_keys=True), span.error is not None)
        )

    def shutdown(self) -> None: ...
    def force_flush(self) -> None: ...


def outcome(context: dict[str, Any]) -> dict[str, Any]:
    result = context["result"]
    return {
        "output": result.final_output,
        "last_agent": result.last_agent.name,
        "interruptions": [item.raw_item for item in result.interruptions],
        "items": [
            (type(item).__name__, getattr(item, "output", None), _text(item)) for item in result.new_items
        ],
        "usage": (result.context_wrapper.usage.requests, result.context_wrapper.usage.total_tokens),
        **{key: value for key, value in context.items() if key != "result"},
    }


def _text(item: Any) -> str:
    return agents.ItemHelpers.text_message_output(item) if isinstance(item, agents.MessageOutputItem) else ""


async def _finished(script: Script, *, streamed: bool) -> tuple[Any, Any]:
    context: dict[str, Any] = {"mine": 1, "tool_rules": RULES}
    recording = Recording()
    set_trace_processors([recording])
    ended: Any
    try:
        agent = built(script)
        if streamed:
            async with agent.stream("hi", context) as run:
                async for _ in run:
                    continue
            assert run.context is context
        else:
            assert await agent.run_async("hi", context) is context
        ended = outcome(context)
    except Exception as error:  # noqa: BLE001 - compared
        ended = (type(error), str(error), dict(context), error.kantan_run.agent.name)  # type: ignore[attr-defined]
    assert not recording.open
    # In a turn with several tools the order in which the spans end is random.
    return ended, sorted(recording.rows)


@given(scripts.filter(lambda script: not script.may_differ_in_order))
def test_a_script_has_the_same_result_with_and_without_streaming(script: Script) -> None:
    at_once = anyio.run(lambda: _finished(script, streamed=False))
    streamed = anyio.run(lambda: _finished(script, streamed=True))
    assert streamed == at_once


class Answer(BaseModel):
    city: str


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_over_http_a_stream_has_the_same_result_and_emits_each_piece(api: str) -> None:
    def ask(city: str) -> str:
        return f"sunny in {city}"

    answer = {"city": "a city with a name that is streamed in several pieces"}
    for streamed in (False, True):
        with OfflineServer([ScriptedToolCall("ask", {"city": "Oslo"}, "c1"), answer]) as server:
            agent = Agent(
                "a", "x", model=server.bundle(api=api), tools=[ask], output_type=Answer, output_dest="answer"
            )
            if not streamed:
                expected = outcome(await agent.run_async("hi"))
                continue
            async with agent.stream("hi") as run:
                pieces = [piece async for piece in run.text_deltas()]
            assert json.loads("".join(pieces)) == answer
            assert len(pieces) > 3
            assert outcome(run.context) == expected
            assert run.context["answer"] == answer


async def test_an_answer_that_waits_for_approval_can_be_resumed_in_a_stream() -> None:
    done: list[str] = []

    @agents.function_tool(needs_approval=True)
    def pay(amount: int) -> str:
        done.append(f"paid {amount}")
        return done[-1]

    script: list[Any] = [[function_call("pay", {"amount": 3}, call_id="c")], [assistant_message("Paid.")]]
    agent = Agent("a", "x", model=ScriptedModel(script), tools=[pay])
    async with agent.stream("hi") as run:
        events = [event async for event in run]
    assert [event.type for event in events if event.type == "approval_needed"] == ["approval_needed"]
    assert json.loads(events[-1].to_json())["waits_for_approval"] is True
    assert not any(isinstance(event, ToolCallStarted) for event in events)
    state = run.context["result"].to_state()
    stored = await agents.RunState.from_json(agent.sdk_agent, json.loads(json.dumps(state.to_json())))
    for item in stored.get_interruptions():
        stored.approve(item)
    async with agent.stream(stored, run.context) as resumed:
        events = [event async for event in resumed]
    assert (done, resumed.context["result"].final_output) == (["paid 3"], "Paid.")
    check_whole(events)


# --- leaving early ------------------------------------------------------------------------------------


async def tasks_now() -> set[Any]:
    for _ in range(5):
        await asyncio.sleep(0)
    return {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}


@pytest.mark.parametrize("after", ["run_started", "model_call_started", "text_delta", "tool_call_started"])
@pytest.mark.parametrize("way", ["break", "raise", "cancel", "cancel the task", "never read"])
async def test_leaving_a_stream_early_leaves_no_tasks_or_open_spans(after: str, way: str) -> None:
    recording = Recording()
    set_trace_processors([recording])
    before = await tasks_now()
    stuck = asyncio.Event()
    cleaned: list[str] = []

    async def wait() -> str:
        try:
            await stuck.wait()
        finally:
            await asyncio.sleep(0)
            cleaned.append("tool")
        return ""

    script: list[Any] = [[function_call("wait", {}, call_id="c1"), function_call("wait", {}, call_id="c2")]]
    if after == "text_delta":
        script = [[assistant_message("Hello.")]]
    agent = Agent("a", "x", model=ScriptedModel(script), tools=[wait])
    received: list[Event] = []
    arrived = asyncio.Event()

    def receive(event: Event) -> None:
        received.append(event)
        if event.type == after:
            arrived.set()

    async def consume() -> None:
        async with agent.stream("hi") as run:
            if way == "never read":
                await arrived.wait()
                return
            async for event in run:
                if event.type == after:
                    if way == "break":
                        break
                    if way == "raise":
                        raise LookupError
                    if way == "cancel":
                        run.cancel()
                    if way == "cancel the task":
                        consumer.cancel()

    with agent.subscribe(receive):
        consumer = asyncio.create_task(consume())
        await asyncio.wait([consumer])
    with suppress(LookupError, asyncio.CancelledError):
        consumer.result()
    assert consumer.cancelled() == (way == "cancel the task")
    assert await tasks_now() == before
    assert not recording.open
    assert recording.rows
    check_whole(received)
    assert received[-1].type == "run_cancelled"
    assert cleaned == ["tool"] * sum(isinstance(event, ToolCallStarted) for event in received)
    assert (current_run.get(), get_current_trace(), get_current_span()) == (None, None, None)


@pytest.mark.parametrize("api", ["responses", "chat"])
@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("after", ["run_started", "model_call_started", "text_delta"])
async def test_no_connection_is_left_open_when_a_stream_is_left(api: str, wrapped: bool, after: str) -> None:
    with OfflineServer(["word " * 5000]) as server:
        bundle = server.bundle(api=api)
        agent = Agent("a", "x", model=bundle, middleware=[Passes()] if wrapped else [])
        async with agent.stream("hi") as run:
            async for event in run:
                if event.type == after:
                    break
        transport: Any = bundle.client._client._transport
        assert transport._pool.connections == []


async def test_a_cancelled_run_is_recorded_with_an_end(traces: Any) -> None:
    agent = Agent("a", "x", model=Playing("a", [], words=200))
    async with agent.stream("hi") as run:
        async for event in run:
            if isinstance(event, TextDelta):
                break
    spans = traces.spans()
    assert len(traces.traces()) == 1
    assert spans
    assert all(span.ended_at is not None for span in spans)


async def test_a_second_cancellation_during_the_cleanup_leaves_nothing_behind() -> None:
    entered, released = asyncio.Event(), asyncio.Event()
    cleaned: list[str] = []

    async def wait() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            entered.set()
            await released.wait()
            cleaned.append("tool")
        return ""

    agent = Agent("a", "x", model=ScriptedModel([[function_call("wait", {}, call_id="c")]]), tools=[wait])
    before = await tasks_now()

    async def consume() -> None:
        async with agent.stream("hi") as run:
            async for event in run:
                if isinstance(event, ToolCallStarted):
                    break

    consumer = asyncio.create_task(consume())
    await entered.wait()
    for _ in range(3):
        consumer.cancel()
        await asyncio.sleep(0)
    assert not consumer.done()
    released.set()
    with pytest.raises(asyncio.CancelledError):
        await consumer
    assert cleaned == ["tool"]
    assert await tasks_now() == before


async def test_an_anyio_deadline_around_a_stream_ends_it() -> None:
    async def wait() -> str:
        await asyncio.Event().wait()
        return ""

    agent = Agent("a", "x", model=ScriptedModel([[function_call("wait", {}, call_id="c")]]), tools=[wait])
    before = await tasks_now()
    received: list[Event] = []
    with agent.subscribe(received.append), anyio.move_on_after(0.05) as scope:
        async with agent.stream("hi") as run:
            async for _ in run:
                continue
    assert scope.cancelled_caught
    assert await tasks_now() == before
    check_whole(received)


# --- slow consumers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("wrapped", [False, True])
async def test_the_model_is_never_more_than_the_buffer_ahead_of_its_reader(wrapped: bool) -> None:
    model = Playing("a", [], words=600)

    agent = Agent("a", "x", model=model, middleware=[Passes()] if wrapped else [])
    read, furthest = 0, 0
    async with agent.stream("hi") as run:
        async for event in run:
            for _ in range(10):
                await asyncio.sleep(0)
            read += isinstance(event, TextDelta)
            furthest = max(furthest, model.deltas - read)
    assert read == 600
    # Events in the buffer, one held by its sender and, with middleware, one between two tasks.
    assert BUFFERED // 2 < furthest <= BUFFERED + 3


async def test_an_unread_run_waits_and_continues_when_it_is_read() -> None:
    model = Playing("a", [], words=300)
    async with Agent("a", "x", model=model).stream("hi") as run:
        for _ in range(2000):
            await asyncio.sleep(0)
        assert model.deltas <= BUFFERED + 1
        assert len([piece async for piece in run.text_deltas()]) == 300


# --- misuse -------------------------------------------------------------------------------------------


async def test_wrong_use_of_a_stream_is_e81() -> None:
    run = Agent("a", "x", model=Playing("a", [])).stream("hi")
    for use in (lambda: run.context, lambda: run.id, run.cancel, run.__aiter__):
        with pytest.raises(StreamUsageError, match=r"\[E81\]"):
            use()
    with pytest.raises(StreamUsageError):
        await run.text_deltas().__anext__()
    async with run:
        with pytest.raises(StreamUsageError, match="not over"):
            _ = run.context
        events = [event async for event in run]
        with pytest.raises(StreamUsageError, match="read once"):
            run.__aiter__()
    with pytest.raises(StreamUsageError, match="entered once"):
        async with run:
            pass
    check_whole(events)
    assert run.context["result"].final_output == "a0 a1 a2"


async def test_two_loops_over_one_stream_share_nothing() -> None:
    async with Agent("a", "x", model=Playing("a", [])).stream("hi") as run:
        async for _ in run:
            break
        with pytest.raises(StreamUsageError, match="read once"):
            async for _ in run:
                pass


async def test_a_cancelled_run_has_no_context() -> None:
    async with Agent("a", "x", model=Playing("a", [])).stream("hi") as run:
        run.cancel()
        assert [event.type async for event in run] in ([], ["run_started", "run_cancelled"])
    with pytest.raises(StreamUsageError, match="cancelled"):
        _ = run.context


async def test_an_error_of_the_run_is_raised_after_the_last_event_and_by_the_context() -> None:
    agent = Agent("a", "x", model=ScriptedModel([LookupError("gone")]))
    events: list[Event] = []
    with pytest.raises(LookupError, match="gone"):
        async with agent.stream("hi") as run:
            async for event in run:
                events.append(event)
    check_whole(events)
    with pytest.raises(LookupError, match="gone"):
        _ = run.context


async def test_an_unread_error_causes_no_warning() -> None:
    agent = Agent("a", "x", model=ScriptedModel([LookupError("gone")]))
    async with agent.stream("hi") as run:
        for _ in range(500):
            await asyncio.sleep(0)
        assert repr(run).endswith("over>")
    del run
    gc.collect()


async def test_invalid_arguments_raise_on_entering() -> None:
    wrong: Any = 5
    with pytest.raises(InputTypeError):
        async with Agent("a", "x").stream(wrong):
            raise AssertionError


async def test_a_violation_with_the_raise_policy_ends_the_stream() -> None:
    script: list[Any] = [[function_call("hidden", {"value": "a"}, call_id="c")], [assistant_message("never")]]

    def hidden(value: str) -> str:
        raise AssertionError

    agent = Agent("a", "x", model=ScriptedModel(script), tools=[hidden], on_rule_violation="raise")
    with pytest.raises(ToolNotAllowedError) as caught:
        async with agent.stream("hi", {"tool_rules": {"deny": ["hidden"]}}) as run:
            async for _ in run:
                continue
    assert caught.value.kantan_run.id == run.id  # type: ignore[attr-defined]


async def test_its_repr_shows_its_state() -> None:
    run = Agent("a", "x", model=Playing("a", [])).stream("hi")
    assert repr(run) == "<RunStream, not begun>"
    async with run:
        assert "under way" in repr(run)
        async for _ in run:
            continue
    assert "over" in repr(run)


async def test_a_model_whose_stream_has_no_close_method_can_be_streamed() -> None:
    class Bare:
        def __init__(self) -> None:
            self._left = [
                delta("Hi"),
                completed_event(ModelResponse([assistant_message("Hi")], Usage(), None)),
            ]

        def __aiter__(self) -> AsyncIterator[Any]:
            return self

        async def __anext__(self) -> Any:
            if not self._left:
                raise StopAsyncIteration
            return self._left.pop(0)

    class Mine(Playing):
        def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
            return Bare().__aiter__()

    async with Agent("a", "x", model=Mine("a", [])).stream("hi") as run:
        assert [piece async for piece in run.text_deltas()] == ["Hi"]
    assert run.context["result"].final_output == "Hi"
