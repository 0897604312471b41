"""``run.cancel(mode="after_turn")``: the turn finishes, and the run ends as the SDK's does."""

from __future__ import annotations

import asyncio
from typing import Any

import agents
import pytest
from agents import Runner, RunState, SQLiteSession, function_tool, set_trace_processors
from agents.tracing import TracingProcessor
from pydantic import BaseModel

from kantan_agents import Agent, Event, subscribe
from kantan_agents.core.events import RunFinished
from kantan_agents.errors import InvalidOptionError, StreamUsageError
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from tests.core.events.event_checks import check_whole
from tests.core.events.watched_runs import Passes


def step(number: int) -> str:
    """Take a step."""
    return f"step {number}"


def context_of_caller() -> dict[str, Any]:
    return {"mine": 1}


def turn(*numbers: int) -> list[Any]:
    return [function_call("step", {"number": number}, call_id=f"c{number}") for number in numbers]


def scripted() -> ScriptedModel:
    return ScriptedModel([turn(1), turn(2, 3), [assistant_message("Done.")]])


def built(model: Any, **options: Any) -> Agent[Any]:
    return Agent("a", "x", model=model, tools=[step], **options)


async def stopped_at(agent: Agent[Any], kind: str, context: dict[str, Any], **options: Any) -> list[Event]:
    """Stream a run and stop it at the first event of a type; return its events."""
    async with agent.stream("Go", context, **options) as run:
        events = []
        async for event in run:
            events.append(event)
            if event.type == kind:
                run.cancel(mode="after_turn")
    return events


def end(events: list[Event]) -> RunFinished:
    assert isinstance(events[-1], RunFinished)
    return events[-1]


FIRST_TURN = ["model_call_started", "model_call_finished", "tool_call_started", "tool_call_finished"]


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("kind", FIRST_TURN)
async def test_a_run_stopped_at_any_event_of_a_turn_ends_after_it(kind: str, wrapped: bool) -> None:
    model, context = scripted(), context_of_caller()
    events = await stopped_at(built(model, middleware=[Passes()] if wrapped else []), kind, context)
    result: Any = context["result"]
    assert (len(model.calls), result.final_output, result.interruptions) == (1, None, [])
    assert [type(item).__name__ for item in result.new_items] == ["ToolCallItem", "ToolCallOutputItem"]
    assert (end(events).stopped, end(events).output, end(events).waits_for_approval) == (True, None, False)
    assert context == {"mine": 1, "result": result, "history": [], "tool_rules": context["tool_rules"]}
    check_whole(events)


async def test_the_result_and_the_session_are_those_of_the_sdk() -> None:
    async def read(session: Any, result: Any) -> Any:
        return (
            [type(item).__name__ for item in result.new_items],
            [item.get("type") or item["role"] for item in result.to_input_list()],
            [item.get("type") or item["role"] for item in await session.get_items()],
            result.final_output,
            result.is_complete,
            result.current_turn,
        )

    sessions = SQLiteSession("one"), SQLiteSession("two")
    plain = agents.Agent(name="a", instructions="x", model=scripted(), tools=[function_tool(step)])
    streamed = Runner.run_streamed(plain, "Go", session=sessions[0])
    async for event in streamed.stream_events():
        if event.type == "run_item_stream_event" and event.name == "tool_output":
            streamed.cancel(mode="after_turn")
    context: dict[str, Any] = {}
    await stopped_at(built(scripted()), "tool_call_finished", context, session=sessions[1])
    assert await read(sessions[1], context["result"]) == await read(sessions[0], streamed)
    for session in sessions:
        session.close()


@pytest.mark.parametrize("kind", ["run_started", "tool_call_finished"])
async def test_its_state_continues_it(kind: str) -> None:
    model, context = scripted(), context_of_caller()
    agent = built(model)
    await stopped_at(agent, kind, context)
    before = len(model.calls)
    state = context["result"].to_state()
    assert await agent.run_async(state, context) is context
    assert (before, len(model.calls)) == ({"run_started": 0, "tool_call_finished": 1}[kind], 3)
    assert context["result"].final_output == "Done."
    assert context["history"] == [{"role": "user", "text": "Go"}, {"role": "assistant", "text": "Done."}]


async def test_its_state_continues_it_in_another_stream_and_can_stop_there_again() -> None:
    model, context = scripted(), context_of_caller()
    agent = built(model)
    await stopped_at(agent, "tool_call_finished", context)
    async with agent.stream(context["result"].to_state(), context) as run:
        events = []
        async for event in run:
            events.append(event)
            if event.type == "tool_call_finished":
                run.cancel(mode="after_turn")
    assert (len(model.calls), end(events).stopped) == (2, True)
    await agent.run_async(context["result"].to_state(), context)
    assert context["result"].final_output == "Done."


async def test_its_items_continue_it() -> None:
    model, context = scripted(), context_of_caller()
    agent = built(model)
    await stopped_at(agent, "tool_call_finished", context)
    asked = [*context["result"].to_input_list(), {"role": "user", "content": "Go on"}]
    await agent.run_async(asked, context)
    assert context["result"].final_output == "Done."
    assert [entry["text"] for entry in context["history"]] == ["Go on", "Done."]


async def test_parallel_tool_calls_finish() -> None:
    model, context = ScriptedModel([turn(1, 2), [assistant_message("Done.")]]), context_of_caller()
    events = await stopped_at(built(model), "tool_call_started", context)
    outputs = [item.output for item in context["result"].new_items if item.type == "tool_call_output_item"]
    assert outputs == ["step 1", "step 2"]
    assert end(events).stopped
    check_whole(events)


@pytest.mark.parametrize("kind", ["text_delta", "model_call_finished", "stage_left"])
async def test_a_run_stopped_in_its_last_turn_finishes_as_usual(kind: str) -> None:
    model, context = ScriptedModel([[assistant_message("Done.")]]), context_of_caller()
    async with Agent("a", "x", model=model).stream("Go", context) as run:
        events = []
        started = False
        async for event in run:
            events.append(event)
            started = started or event.type == "model_call_started"
            if started and event.type == kind:
                run.cancel(mode="after_turn")
    assert (end(events).stopped, end(events).output) == (False, "Done.")
    assert context["result"].final_output == "Done."
    assert len(context["history"]) == 2


async def test_a_turn_that_hands_off_finishes_and_the_state_continues_with_the_new_agent() -> None:
    target = Agent("target", "x", model=ScriptedModel([[assistant_message("By target.")]]))
    entry = ScriptedModel([[function_call("transfer_to_target", {}, call_id="c")]])
    agent, context = Agent("entry", "x", model=entry, handoffs=[target]), context_of_caller()
    events = await stopped_at(agent, "model_call_started", context)
    assert end(events).stopped
    assert context["result"].last_agent.name == "target"
    await agent.run_async(context["result"].to_state(), context)
    assert context["result"].final_output == "By target."


async def test_a_turn_that_needs_an_approval_waits_for_it() -> None:
    @function_tool(needs_approval=True)
    def pay() -> str:
        return "paid"

    call = function_call("pay", {}, call_id="c")
    model = ScriptedModel([[call], [assistant_message("Done.")]])
    agent, context = Agent("a", "x", model=model, tools=[pay]), context_of_caller()
    events = await stopped_at(agent, "model_call_started", context)
    assert (end(events).waits_for_approval, end(events).stopped) == (True, False)
    state: RunState[Any] = context["result"].to_state()
    state.approve(state.get_interruptions()[0])
    async with agent.stream(state, context) as run:
        run.cancel(mode="after_turn")
        events = [event async for event in run]
    assert end(events).stopped
    outputs = [item.output for item in context["result"].new_items if item.type == "tool_call_output_item"]
    assert (outputs, len(model.calls)) == (["paid"], 1)


async def test_another_task_can_stop_a_run() -> None:
    started, release = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        started.set()
        await release.wait()
        return "waited"

    model = ScriptedModel([[function_call("wait", {}, call_id="c")], [assistant_message("Done.")]])
    async with Agent("a", "x", model=model, tools=[wait]).stream("Go") as run:

        async def press() -> None:
            await started.wait()
            run.cancel(mode="after_turn")
            release.set()

        pressed = asyncio.create_task(press())
        events = [event async for event in run]
        await pressed
    assert (end(events).stopped, len(model.calls)) == (True, 1)


async def test_the_next_turn_waits_until_a_slow_reader_has_read_the_last() -> None:
    model = scripted()
    async with built(model).stream("Go") as run:
        async for event in run:
            if event.type == "tool_call_finished":
                for _ in range(100):
                    await asyncio.sleep(0)
                assert len(model.calls) == 1
                run.cancel(mode="after_turn")
    assert len(model.calls) == 1


async def test_a_run_whose_events_nobody_reads_does_not_wait_for_a_reader() -> None:
    model, over = ScriptedModel([turn(1), [assistant_message("Done.")]]), asyncio.Event()
    agent = built(model)
    with agent.subscribe(lambda event: over.set() if isinstance(event, RunFinished) else None):
        async with agent.stream("Go") as run:
            await over.wait()
            async for _ in run:
                continue
    assert run.context["result"].final_output == "Done."


@pytest.mark.parametrize("times", [1, 2])
async def test_a_run_that_is_over_or_has_been_cancelled_is_not_affected(times: int) -> None:
    async with built(scripted()).stream("Go") as run:
        events = [event async for event in run]
        for _ in range(times):
            run.cancel(mode="after_turn")
    assert (end(events).stopped, run.context["result"].final_output) == (False, "Done.")
    async with built(scripted()).stream("Go") as run:
        run.cancel()
        run.cancel(mode="after_turn")
        assert [event.type async for event in run] in ([], ["run_started", "run_cancelled"])


async def test_the_stronger_mode_wins() -> None:
    context: dict[str, Any] = {"mine": 1}
    async with built(scripted()).stream("Go", context) as run:
        events = []
        async for event in run:
            events.append(event)
            if event.type == "tool_call_started":
                run.cancel(mode="after_turn")
                run.cancel(mode="after_turn")
                run.cancel()
    assert events[-1].type == "run_cancelled"
    assert context.get("result") is None
    check_whole(events)


@pytest.mark.parametrize("requested", [False, True])
async def test_leaving_the_block_cancels_the_run_at_once(requested: bool) -> None:
    model = scripted()
    async with built(model).stream("Go") as run:
        async for event in run:
            if event.type == "tool_call_started":
                if requested:
                    run.cancel(mode="after_turn")
                break
    with pytest.raises(StreamUsageError, match="cancelled"):
        _ = run.context
    assert len(model.calls) == 1


async def test_the_mode_is_checked_and_a_run_must_have_begun() -> None:
    run = built(scripted()).stream("Go")
    with pytest.raises(StreamUsageError, match="E81"):
        run.cancel(mode="after_turn")
    async with run:
        for mode in ("later", None, True):
            with pytest.raises(InvalidOptionError, match=r"E75.*mode: must be immediate or after_turn"):
                run.cancel(mode=mode)  # type: ignore[arg-type]


async def test_an_error_in_the_turn_fails_the_run() -> None:
    @function_tool(failure_error_function=None)
    def breaks() -> str:
        raise LookupError("broken")

    model = ScriptedModel([[function_call("breaks", {}, call_id="c")]])
    with pytest.raises(agents.UserError, match="broken"):
        await stopped_at(Agent("a", "x", model=model, tools=[breaks]), "model_call_started", {})


async def test_a_run_inside_a_tool_runs_to_its_end() -> None:
    inner_model = ScriptedModel([turn(1), turn(2), [assistant_message("Inner.")]])
    inner = built(inner_model)

    async def ask() -> str:
        return str((await inner.run_async("?"))["result"].final_output)

    model = ScriptedModel([[function_call("ask", {}, call_id="c")], [assistant_message("Done.")]])
    context: dict[str, Any] = {}
    await stopped_at(Agent("outer", "x", model=model, tools=[ask]), "tool_call_started", context)
    assert (len(inner_model.calls), len(model.calls)) == (3, 1)
    assert context["result"].new_items[-1].output == "Inner."


class Answer(BaseModel):
    city: str


async def test_no_output_is_stored() -> None:
    context: dict[str, Any] = {"answer": "of before"}
    agent = built(scripted(), output_type=Answer, output_dest="answer")
    await stopped_at(agent, "tool_call_finished", context)
    assert context["answer"] == "of before"


async def test_the_repair_of_an_answer_belongs_to_the_turn() -> None:
    model = ScriptedModel([[assistant_message("Oslo?")], [assistant_message('{"city": "Oslo"}')]])
    context: dict[str, Any] = {}
    agent = Agent("a", "x", model=model, output_type=Answer)
    events = await stopped_at(agent, "model_call_started", context)
    assert (end(events).stopped, context["result"].final_output) == (False, Answer(city="Oslo"))


class Spans(TracingProcessor):
    def __init__(self) -> None:
        self.spans: list[Any] = []

    def on_span_end(self, span: Any) -> None:
        self.spans.append(span)

    def on_span_start(self, span: Any) -> None: ...
    def on_trace_start(self, trace: Any) -> None: ...
    def on_trace_end(self, trace: Any) -> None: ...
    def shutdown(self) -> None: ...
    def force_flush(self) -> None: ...


async def test_the_trace_says_that_it_was_stopped_and_has_its_input() -> None:
    recorded, seen = Spans(), list[Event]()
    set_trace_processors([recorded])
    with subscribe(seen.append):
        async with built(scripted()).stream("Go") as run:
            async for event in run:
                if event.type == "tool_call_finished":
                    run.cancel(mode="after_turn")
    assert not [span for span in recorded.spans if span.error]
    (marked,) = [
        span for span in recorded.spans if getattr(span.span_data, "name", "") == "stopped_after_turn"
    ]
    assert marked.span_data.data == {"agent_run_id": run.id, "turns": 1}
    (final,) = [span for span in recorded.spans if span.span_data.type == "generation"]
    assert final.span_data.input == [{"role": "user", "content": "Go"}]
    assert end(seen).stopped


async def test_the_run_says_that_it_was_stopped() -> None:
    runs = []

    async def keep(run: Any, call_next: Any) -> None:
        runs.append(run)
        await call_next(run)

    await stopped_at(built(scripted(), middleware=[keep]), "tool_call_finished", {})
    await built(scripted(), middleware=[keep]).run_async("Go")
    assert [(run.outcome, run.is_stopped) for run in runs] == [("finished", True), ("finished", False)]
