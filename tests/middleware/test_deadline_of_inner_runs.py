"""Runs that begin inside a run have its deadline, however they were started and however long they live."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent
from kantan_agents.errors import DeadlineExceededError
from kantan_agents.middleware import Budget, Deadline
from kantan_agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from tests.clocks import ENOUGH, MORE, let_pass


async def never(_call: Any = None) -> Any:
    await asyncio.Event().wait()


def calling(*tools: str, end: Any = None) -> ScriptedModel:
    steps: list[Any] = [[function_call(tool, {}, call_id=tool)] for tool in tools]
    return ScriptedModel([*steps, end or [assistant_message("Done.")]])


class Inner:
    """An agent without a deadline of its own, whose tools report when they begin."""

    def __init__(self, middleware: Any = ()) -> None:
        self.begun: list[str] = []
        self.waits = asyncio.Event()
        self.goes_on = asyncio.Event()
        self.model = calling("wait", "late")
        self.agent = Agent(
            "inner", "x", model=self.model, tools=[self.wait, self.late], middleware=middleware
        )
        self.task: asyncio.Task[Any] | None = None

    async def wait(self) -> str:
        self.begun.append("wait")
        self.waits.set()
        try:
            await self.goes_on.wait()
        except asyncio.CancelledError:
            self.begun.append("cancelled")
            raise
        return "went on"

    async def late(self) -> str:
        self.begun.append("late")
        return "too late"

    def start(self) -> asyncio.Task[Any]:
        self.task = asyncio.create_task(self.agent.run_async("Go"))
        return self.task


async def error_of(task: Awaitable[Any] | None) -> BaseException | None:
    assert task is not None
    try:
        await task
    except BaseException as error:  # noqa: BLE001
        return error
    return None


async def test_a_run_that_a_tool_started_as_a_task_ends_with_the_outer_run() -> None:
    inner = Inner()

    async def start() -> str:
        inner.start()
        await inner.waits.wait()
        return "started"

    async def late() -> str:
        let_pass()
        await never()
        return ""

    agent = Agent(
        "outer", "x", model=calling("start", "late"), tools=[start, late], middleware=[Deadline(ENOUGH)]
    )
    with pytest.raises(DeadlineExceededError) as caught:
        await agent.run_async("Go")
    # At this point, and not some time later:
    assert inner.begun == ["wait", "cancelled"]
    inner.goes_on.set()
    error = await error_of(inner.task)
    assert isinstance(error, DeadlineExceededError)
    assert (caught.value.agent, error.agent, error.seconds) == ("outer", "inner", ENOUGH)
    assert (error.model_calls, error.tool_calls) == (1, 1)
    assert inner.begun == ["wait", "cancelled"]


async def started_by_a_run_that_is_over() -> Inner:
    """Return an agent whose run a tool of an outer run has started; the outer one has ended in time."""
    inner = Inner()

    async def start() -> str:
        inner.start()
        return "started"

    agent = Agent("outer", "x", model=calling("start"), tools=[start], middleware=[Deadline(ENOUGH)])
    await agent.run_async("Go")
    return inner


async def test_a_run_that_outlives_the_outer_one_ends_at_the_same_instant() -> None:
    inner = await started_by_a_run_that_is_over()
    await inner.waits.wait()
    assert inner.task is not None and not inner.task.done()
    let_pass()
    error = await error_of(inner.task)
    assert isinstance(error, DeadlineExceededError)
    assert inner.begun == ["wait", "cancelled"]


async def test_a_run_that_outlives_the_outer_one_may_finish_before_the_deadline() -> None:
    inner = await started_by_a_run_that_is_over()
    inner.goes_on.set()
    assert inner.task is not None
    assert (await inner.task)["result"].final_output == "Done."


async def test_a_run_that_begins_after_the_deadline_calls_no_model() -> None:
    inner = Inner()
    begin = asyncio.Event()
    waiting: list[asyncio.Task[Any]] = []

    async def later() -> Any:
        await begin.wait()
        return await inner.agent.run_async("Go")

    async def start() -> str:
        waiting.append(asyncio.create_task(later()))
        let_pass()
        await never()
        return ""

    agent = Agent("outer", "x", model=calling("start"), tools=[start], middleware=[Deadline(ENOUGH)])
    with pytest.raises(DeadlineExceededError):
        await agent.run_async("Go")
    begin.set()
    assert isinstance(await error_of(waiting[0]), DeadlineExceededError)
    assert inner.model.last_call is None


async def test_a_run_in_a_thread_has_the_deadline_too() -> None:
    ended: list[Any] = []
    done = threading.Event()
    hanging = Agent("inner", "x", model=ScriptedModel([ModelStep.respond(lambda _call: hang())]))
    loop = asyncio.get_running_loop()

    async def hang() -> Any:
        let_pass()  # on the loop of the thread's run
        loop.call_soon_threadsafe(let_pass)
        await never()

    def in_thread() -> None:
        try:
            hanging.run("Go")
        except DeadlineExceededError as error:
            ended.append(error)
        finally:
            done.set()

    async def start() -> str:
        await asyncio.to_thread(in_thread)
        return "never"

    agent = Agent("outer", "x", model=calling("start"), tools=[start], middleware=[Deadline(ENOUGH)])
    with pytest.raises(DeadlineExceededError):
        await agent.run_async("Go")
    await asyncio.to_thread(done.wait, 60)
    assert [(error.agent, error.seconds) for error in ended] == [("inner", ENOUGH)]


async def test_a_stream_inside_a_run_has_the_deadline_too() -> None:
    inner = Inner()

    async def start() -> str:
        async with inner.agent.stream("Go") as stream:
            async for event in stream:
                if event.type == "tool_call_started":
                    let_pass()
        return "never"

    agent = Agent("outer", "x", model=calling("start"), tools=[start], middleware=[Deadline(ENOUGH)])
    with pytest.raises(DeadlineExceededError):
        await agent.run_async("Go")
    assert "late" not in inner.begun


async def test_after_a_cancellation_of_the_outer_run_the_deadline_of_its_runs_stays() -> None:
    inner = Inner()

    async def start() -> str:
        inner.start()
        await inner.waits.wait()
        outer.cancel()
        await never()
        return ""

    agent = Agent("outer", "x", model=calling("start"), tools=[start], middleware=[Deadline(ENOUGH)])
    outer = asyncio.create_task(agent.run_async("Go"))
    assert isinstance(await error_of(outer), asyncio.CancelledError)
    assert inner.task is not None and not inner.task.done()
    let_pass()
    assert isinstance(await error_of(inner.task), DeadlineExceededError)


async def test_an_error_of_an_inner_run_is_its_own() -> None:
    failing = Agent("inner", "x", model=ScriptedModel([LookupError("gone")]))
    errors: list[Any] = []

    async def start() -> str:
        errors.append(await error_of(failing.run_async("Go")))
        return "started"

    agent = Agent("outer", "x", model=calling("start"), tools=[start], middleware=[Deadline(ENOUGH)])
    await agent.run_async("Go")
    assert [type(error) for error in errors] == [LookupError]


async def test_a_budget_counts_only_the_runs_of_agents_that_have_it() -> None:
    inner = Inner()
    inner.goes_on.set()

    async def start() -> str:
        await inner.agent.run_async("Go")
        return "started"

    agent = Agent("outer", "x", model=calling("start"), tools=[start], middleware=[Budget(max_model_calls=2)])
    await agent.run_async("Go")
    assert inner.begun == ["wait", "late"]


@given(
    durations=st.lists(st.sampled_from([None, 10.0, 30.0, 90.0]), min_size=1, max_size=4).filter(any),
    how=st.sampled_from(["await", "task"]),
)
def test_no_run_goes_on_after_the_earliest_deadline_around_it(durations: list[Any], how: str) -> None:
    """Each agent starts the next one in its tool; the innermost one waits until all deadlines are over."""
    first = next(number for number, seconds in enumerate(durations) if seconds)
    late_calls: list[int] = []
    tasks: list[asyncio.Task[Any]] = []

    def build(number: int) -> Agent:
        async def act() -> str:
            if number == len(durations) - 1:
                all_begun.set()
                await never()
            tasks.append(asyncio.create_task(build(number + 1).run_async("Go")))
            await (tasks[-1] if how == "await" else never())
            return ""

        async def late() -> str:
            late_calls.append(number)
            return ""

        middleware = [Deadline(durations[number])] if durations[number] else []
        return Agent("a", "x", model=calling("act", "late"), tools=[act, late], middleware=middleware)

    async def main() -> None:
        tasks.append(asyncio.create_task(build(0).run_async("Go")))
        await all_begun.wait()
        let_pass(MORE)
        for task in tasks[first:]:
            error = await error_of(task)
            assert isinstance(error, (DeadlineExceededError, asyncio.CancelledError))
        assert isinstance(tasks[first].exception(), DeadlineExceededError)
        tasks[0].cancel()
        await error_of(tasks[0])

    all_begun = asyncio.Event()
    asyncio.run(main())
    assert all(number < first for number in late_calls)
