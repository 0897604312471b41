"""Which handlers receive which events: subscriptions, nested runs, and observers that fail or are slow."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from typing import Any

import agents
import anyio
import pytest
from agents import function_tool
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent, Event, subscribe
from kantan_agents.core.events import (
    Delegated,
    Emitter,
    ModelCallStarted,
    RunCancelled,
    RunStarted,
    TextDelta,
)
from kantan_agents.errors import DeadlineExceededError, InvalidOptionError
from kantan_agents.middleware import Deadline
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from tests.clocks import ENOUGH, let_pass
from tests.core.events.event_checks import check_whole
from tests.core.events.watched_runs import Playing


def nesting(*, in_thread: bool = False, blocking: bool = False) -> tuple[Agent, Agent]:
    inner = Agent("inner", "x", model=Playing("inner", []))

    async def ask() -> str:
        return str((await inner.run_async("inside"))["result"].final_output)

    def ask_in_thread() -> str:
        return str(inner.run("inside")["result"].final_output)

    async def ask_and_block() -> str:
        return ask_in_thread()

    tool = ask_in_thread if in_thread else ask_and_block if blocking else ask
    script: list[Any] = [[function_call("ask", {}, call_id="c")], [assistant_message("done")]]
    outer = Agent("outer", "x", model=ScriptedModel(script), tools=[function_tool(tool, name_override="ask")])
    return outer, inner


@pytest.mark.parametrize("way", ["async", "in_thread", "blocking"])
async def test_a_run_in_a_tool_emits_into_its_parents_stream(way: str) -> None:
    outer, _ = nesting(in_thread=way == "in_thread", blocking=way == "blocking")
    async with outer.stream("hi") as run:
        events = [event async for event in run]
    inside = [event for event in events if event.run_id != run.id]
    assert {(event.parent_run_id, event.agent) for event in inside} == {(run.id, "inner")}
    (delegated,) = [event for event in events if isinstance(event, Delegated)]
    assert (delegated.run_id, delegated.agent, delegated.to_agent) == (run.id, "outer", "inner")
    assert delegated.child_run_id == inside[0].run_id
    if way == "async":
        check_whole(events)
        assert events.index(delegated) < events.index(inside[0])
    else:  # from another event loop: in order within each run
        for of_run in (inside, [event for event in events if event.run_id == run.id]):
            check_whole(of_run)


async def test_a_sync_run_in_a_tool_emits_on_another_thread() -> None:
    outer, _ = nesting(in_thread=True)
    threads: dict[str, set[int]] = {}

    def note(event: Event) -> None:
        threads.setdefault(event.agent, set()).add(threading.get_ident())

    with outer.subscribe(note):
        await outer.run_async("hi")
    assert threads["outer"] == {threading.get_ident()}
    assert len(threads["inner"]) == 1
    assert threads["inner"].isdisjoint(threads["outer"])


async def test_text_deltas_are_those_of_this_run_only() -> None:
    inner = Agent("inner", "x", model=Playing("inner", []))

    async def ask() -> str:
        async with inner.stream("inside") as run:
            return "".join([piece async for piece in run.text_deltas()])

    script: list[Any] = [[function_call("ask", {}, call_id="c")], [assistant_message("done")]]
    async with Agent("outer", "x", model=ScriptedModel(script), tools=[ask]).stream("hi") as run:
        pieces = [event async for event in run if isinstance(event, TextDelta)]
    assert [piece.text for piece in pieces if piece.run_id != run.id] == ["inner0", "inner1", "inner2"]
    script = [[function_call("ask", {}, call_id="c")], [assistant_message("done")]]
    async with Agent("outer", "x", model=ScriptedModel(script), tools=[ask]).stream("hi") as run:
        assert [piece async for piece in run.text_deltas()] == ["done"]


async def test_a_handler_receives_each_event_once_even_if_subscribed_several_times() -> None:
    outer, inner = nesting()
    received: list[Event] = []
    with (
        outer.subscribe(received.append),
        outer.subscribe(received.append),
        inner.subscribe(received.append),
        subscribe(received.append),
    ):
        await outer.run_async("hi")
    check_whole(received)
    assert len({(event.run_id, event.sequence) for event in received}) == len(received)
    assert len({event.run_id for event in received}) == 2


async def test_a_subscriber_of_the_inner_agent_receives_only_its_runs() -> None:
    outer, inner = nesting()
    received: list[Event] = []
    with inner.subscribe(received.append):
        await outer.run_async("hi")
    check_whole(received)
    assert {event.agent for event in received} == {"inner"}
    assert received[0].parent_run_id is not None


async def test_events_of_agents_as_tools_are_those_of_the_run() -> None:
    target: Any = agents.Agent(name="helper", model=Playing("helper", []))
    script: list[Any] = [[function_call("help_me", {"input": "x"}, call_id="c")], [assistant_message("done")]]
    agent = Agent("a", "x", model=ScriptedModel(script), tools=[target.as_tool("help_me", "d")])
    received: list[Event] = []
    with agent.subscribe(received.append):
        await agent.run_async("hi")
    check_whole(received)
    assert [event.agent for event in received if event.type == "model_call_started"] == ["a", "helper", "a"]


async def test_subscriptions_end_when_they_are_cancelled() -> None:
    agent = Agent("a", "x", model=Playing("a", []))
    mine: list[Event] = []
    everybody: list[Event] = []
    first, second = agent.subscribe(mine.append), subscribe(everybody.append)
    await agent.run_async("hi")
    received = len(mine)
    assert received == len(everybody) > 0
    first.cancel()
    first.cancel()
    await agent.run_async("hi")
    assert (len(mine), len(everybody)) == (received, 2 * received)
    with second:
        pass
    await agent.run_async("hi")
    assert len(everybody) == 2 * received


async def test_two_subscriptions_of_one_handler_end_one_by_one() -> None:
    agent = Agent("a", "x", model=Playing("a", []))
    received: list[Event] = []
    first, second = agent.subscribe(received.append), agent.subscribe(received.append)
    first.cancel()
    await agent.run_async("hi")
    check_whole(received)
    second.cancel()
    count = len(received)
    await agent.run_async("hi")
    assert len(received) == count


@pytest.mark.parametrize("handler", [None, "print", 5])
def test_a_handler_must_be_callable(handler: Any) -> None:
    for attempt in (Agent("a", "x").subscribe, subscribe):
        with pytest.raises(InvalidOptionError, match="handler"):
            attempt(handler)


async def test_a_subscription_does_not_receive_runs_that_have_already_started() -> None:
    received: list[Event] = []
    agent: Agent

    async def late() -> str:
        agent.subscribe(received.append)
        return "x"

    script: list[Any] = [[function_call("late", {}, call_id="c")], [assistant_message("done")]]
    agent = Agent("a", "x", model=ScriptedModel(script), tools=[late])
    with agent.subscribe(lambda _: None):
        await agent.run_async("hi")
    assert received == []


async def test_an_observer_that_fails_is_logged_and_the_others_receive_all_events(caplog: Any) -> None:
    received: list[Event] = []

    def fails(event: Event) -> None:
        raise LookupError("no such dashboard")

    async def fails_later(event: Event) -> None:
        await asyncio.sleep(0)
        raise LookupError("no such dashboard")

    agent = Agent("a", "x", model=Playing("a", []))
    with agent.subscribe(fails), agent.subscribe(fails_later), agent.subscribe(received.append):
        context = await agent.run_async("hi")
    assert context["result"].final_output == "a0 a1 a2"
    check_whole(received)
    first, again = [record for record in caplog.records if record.message.startswith("observer failed")]
    for line in (first, again):
        assert line.levelname == "ERROR"
        assert line.error == "LookupError('no such dashboard')"
        assert line.run_id == received[0].run_id
    assert first.message == "observer failed"
    assert (again.message, again.times) == ("observer failed again", 2 * len(received) - 1)


@given(errors=st.lists(st.integers(0, 40), max_size=200))
def test_each_failure_of_an_observer_is_logged_or_counted(errors: list[int]) -> None:
    lines: list[Any] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record)

    async def emit_all() -> None:
        numbers = iter(errors)

        def fails(_: Event) -> None:
            raise LookupError(next(numbers))

        emitter = Emitter("r", None, "a", (fails,))
        for _ in errors:
            await emitter.emit(TextDelta, text="x", call_id="c")
        emitter.close()

    logger, kept = logging.getLogger("kantan_agents.events"), Kept()
    logger.addHandler(kept)
    try:
        anyio.run(emit_all)
    finally:
        logger.removeHandler(kept)
    assert sum(getattr(line, "times", 1) for line in lines) == len(errors)
    assert len(lines) <= 2 * 21


async def test_a_slow_observer_delays_the_run_and_misses_no_event() -> None:
    started: list[Event] = []
    ended: list[Event] = []

    async def slow(event: Event) -> None:
        assert len(started) == len(ended)
        started.append(event)
        for _ in range(5):
            await asyncio.sleep(0)
        ended.append(event)

    script: list[Any] = [
        [function_call("t", {}, call_id=f"c{n}") for n in range(5)],
        [assistant_message("done")],
    ]

    async def t() -> str:
        return "x"

    agent = Agent("a", "x", model=ScriptedModel(script), tools=[t])
    with agent.subscribe(slow):
        await agent.run_async("hi")
    check_whole(ended)


async def test_concurrent_runs_each_have_their_own_order() -> None:
    agent = Agent("a", "x", model=Playing("a", []))
    received: list[Event] = []
    with agent.subscribe(received.append):
        await asyncio.gather(*(agent.run_async("hi") for _ in range(50)))
    assert len({event.run_id for event in received}) == 50
    check_whole(received)


def test_a_sync_run_emits_events_too() -> None:
    received: list[Event] = []
    with subscribe(received.append):
        Agent("a", "x", model=Playing("a", [])).run("hi")
    check_whole(received)


async def test_a_run_started_outside_any_run_has_no_parent() -> None:
    received: list[Event] = []
    agent = Agent("a", "x", model=Playing("a", []))
    with agent.subscribe(received.append):
        await agent.run_async("hi")
        await agent.run_async("hi")
    assert [event.parent_run_id for event in received if isinstance(event, RunStarted)] == [None, None]
    assert not any(isinstance(event, Delegated) for event in received)


async def test_an_observer_may_run_another_agent() -> None:
    summarizer = Agent("summarizer", "x", model=Playing("s", []))
    received: list[Event] = []
    everywhere: list[Event] = []
    summaries: list[Any] = []

    async def summarize(event: Event) -> None:
        received.append(event)
        if isinstance(event, ModelCallStarted):
            summaries.append(await summarizer.run_async("sum up"))

    def summarize_at_once(event: Event) -> None:
        if isinstance(event, ModelCallStarted):
            summaries.append(summarizer.run("sum up"))

    agent = Agent("a", "x", model=Playing("a", []))
    agent.subscribe(summarize)
    agent.subscribe(summarize_at_once)
    with anyio.fail_after(60), subscribe(everywhere.append):
        await agent.run_async("hi")
    assert [summary["result"].final_output for summary in summaries] == ["s0 s1 s2"] * 2
    check_whole(received)
    assert {event.agent for event in received} == {"a"}
    check_whole([event for event in everywhere if event.agent == "summarizer"])
    assert sum(isinstance(event, RunStarted) for event in everywhere) == 3


async def test_a_run_that_an_observer_starts_on_a_delegation_is_not_part_of_the_parents_events() -> None:
    outer, _ = nesting()
    summarizer = Agent("summarizer", "x", model=Playing("s", []))
    received: list[Event] = []

    async def summarize(event: Event) -> None:
        received.append(event)
        if isinstance(event, Delegated):
            await summarizer.run_async("sum up")

    with outer.subscribe(summarize):
        await outer.run_async("hi")
    assert {event.agent for event in received} == {"outer", "inner"}
    check_whole(received)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="a task cannot be asked there whether it is cancelled")
async def test_an_observer_that_waits_for_something_cancelled_does_not_cancel_the_run() -> None:
    gone = asyncio.create_task(asyncio.sleep(60))
    gone.cancel()
    await asyncio.wait([gone])
    received: list[Event] = []

    async def wait(event: Event) -> None:
        await gone

    def look(event: Event) -> None:
        gone.result()

    agent = Agent("a", "x", model=Playing("a", []))
    with agent.subscribe(wait), agent.subscribe(look), agent.subscribe(received.append):
        context = await agent.run_async("hi")
    assert context["result"].final_output == "a0 a1 a2"
    check_whole(received)


async def test_a_cancelled_anyio_scope_does_not_interrupt_handlers_of_an_end() -> None:
    ended: list[Event] = []
    scope = anyio.CancelScope()

    async def slow(event: Event) -> None:
        if isinstance(event, ModelCallStarted):
            scope.cancel()
        if isinstance(event, RunCancelled):
            await asyncio.sleep(0)
        ended.append(event)

    agent = Agent("a", "x", model=Playing("a", []))
    with scope, agent.subscribe(slow):
        await agent.run_async("hi")
    assert scope.cancelled_caught
    check_whole(ended)


async def test_a_tool_that_outlives_its_run_emits_nothing_more() -> None:
    inner = Agent("inner", "x", model=Playing("inner", []))
    go_on, is_over = threading.Event(), threading.Event()

    loop = asyncio.get_running_loop()

    def ask() -> str:
        loop.call_soon_threadsafe(let_pass)
        go_on.wait(60)
        try:
            inner.run("inside")  # E82: its deadline is that of the outer run
        finally:
            is_over.set()
        return "late"

    call = function_call("ask", {}, call_id="c")
    agent = Agent("a", "x", model=ScriptedModel([[call]]), tools=[ask], middleware=[Deadline(ENOUGH)])
    received: list[Event] = []
    with agent.subscribe(received.append), pytest.raises(DeadlineExceededError):
        await agent.run_async("hi")
    emitted = len([event for event in received if event.agent == "a"])
    assert not is_over.is_set()
    go_on.set()
    await anyio.to_thread.run_sync(is_over.wait, 60)
    assert is_over.is_set()
    assert len([event for event in received if event.agent == "a"]) == emitted
