from __future__ import annotations

import asyncio
import pickle
import threading
from typing import Any

import anyio
import pytest

from kantan_agents import Agent
from kantan_agents.core.events import RunFailed, TextDelta
from kantan_agents.errors import DeadlineExceededError, InvalidOptionError
from kantan_agents.middleware import Deadline, ToolErrors
from kantan_agents.testing import (
    ModelStep,
    OfflineServer,
    Reply,
    ScriptedModel,
    ScriptedToolCall,
    assistant_message,
    function_call,
)
from tests.clocks import ENOUGH, let_pass


def answering(text: str = "Done.") -> ScriptedModel:
    return ScriptedModel([[assistant_message(text)]])


def calling(tool: str) -> ScriptedModel:
    return ScriptedModel([[function_call(tool, {}, call_id="1")], [assistant_message("Done.")]])


async def never_returns(_call: Any = None) -> Any:
    let_pass()
    await asyncio.Event().wait()


def waiting_model() -> ScriptedModel:
    """Return a model that calls a tool and never answers the next request."""
    return ScriptedModel([[function_call("look", {}, call_id="1")], ModelStep.respond(never_returns)])


def look() -> str:
    return "seen"


async def test_a_run_that_is_complete_in_time_is_not_affected() -> None:
    agent = Agent("a", "x", model=answering(), middleware=[Deadline(60)])
    context = await agent.run_async("Go")
    assert context["result"].final_output == "Done."


async def test_a_run_that_takes_too_long_fails_and_reports_its_progress() -> None:
    agent = Agent("slow", "x", model=waiting_model(), tools=[look], middleware=[Deadline(ENOUGH)])
    context: dict[str, Any] = {}
    with pytest.raises(DeadlineExceededError) as caught:
        await agent.run_async("Go", context)
    error = caught.value
    assert (error.code, error.agent, error.seconds) == ("E82", "slow", ENOUGH)
    assert (error.model_calls, error.tool_calls, error.text) == (1, 1, "")
    assert error.kantan_run.agent is agent  # type: ignore[attr-defined]
    assert context["history"] == []
    assert context["result"] is None
    assert isinstance(error, TimeoutError)
    assert pickle.loads(pickle.dumps(error)).seconds == ENOUGH


async def test_a_streamed_run_reports_the_text_so_far() -> None:
    model = ScriptedModel(
        [
            [assistant_message("I look."), function_call("look", {}, call_id="1")],
            ModelStep.respond(never_returns),
        ]
    )
    agent = Agent("a", "x", model=model, tools=[look], middleware=[Deadline(ENOUGH)])
    seen: list[Any] = []
    with pytest.raises(DeadlineExceededError) as caught:
        async with agent.stream("Go") as stream:
            async for event in stream:
                seen.append(event)
    assert caught.value.text == "I look."
    assert "".join(event.text for event in seen if isinstance(event, TextDelta)) == "I look."
    assert isinstance(seen[-1], RunFailed)
    assert seen[-1].code == "E82"


async def test_tools_are_cancelled() -> None:
    ended: list[str] = []

    async def work() -> str:
        try:
            await never_returns()
        finally:
            ended.append("work")
        return ""

    agent = Agent("a", "x", model=calling("work"), tools=[work], middleware=[Deadline(ENOUGH)])
    with pytest.raises(DeadlineExceededError):
        await agent.run_async("Go")
    assert ended == ["work"]


async def test_runs_started_by_tools_are_cancelled() -> None:
    inner = Agent("inner", "x", model=ScriptedModel([ModelStep.respond(never_returns)]))
    seen: list[Any] = []

    async def ask() -> str:
        await inner.run_async("Go")
        return "never"

    agent = Agent("a", "x", model=calling("ask"), tools=[ask], middleware=[Deadline(ENOUGH)])
    with inner.subscribe(seen.append), pytest.raises(DeadlineExceededError) as caught:
        await agent.run_async("Go")
    assert caught.value.agent == "a"
    assert seen[-1].type == "run_cancelled"


async def test_a_nested_run_uses_the_earlier_deadline() -> None:
    failures: list[BaseException] = []
    inner = Agent("inner", "x", model=waiting_model(), tools=[look], middleware=[Deadline(ENOUGH + 1)])
    loop = asyncio.get_running_loop()

    def ask() -> str:  # in a thread, which the outer run cannot cancel
        loop.call_soon_threadsafe(let_pass)
        try:
            inner.run("Go")
        except DeadlineExceededError as error:
            failures.append(error)
            done.set()
        over.wait(60)  # both end at the same moment, and this one must not let the other finish
        return "too late"

    done, over = threading.Event(), threading.Event()
    agent = Agent("a", "x", model=calling("ask"), tools=[ask], middleware=[Deadline(ENOUGH)])
    with pytest.raises(DeadlineExceededError) as caught:
        await agent.run_async("Go")
    over.set()
    assert caught.value.agent == "a"
    await asyncio.to_thread(done.wait, 60)
    assert [getattr(error, "seconds", None) for error in failures] == [ENOUGH]


async def test_a_nested_run_with_a_shorter_deadline_fails_alone() -> None:
    inner = Agent("inner", "x", model=waiting_model(), tools=[look], middleware=[Deadline(ENOUGH)])

    async def ask() -> str:
        await inner.run_async("Go")
        return "never"

    model = calling("ask")
    middleware = [Deadline(3600), ToolErrors(lambda error, _call: type(error).__name__)]
    await Agent("a", "x", model=model, tools=[ask], middleware=middleware).run_async("Go")
    assert model.last_call is not None
    assert model.last_call.input[-1]["output"] == "DeadlineExceededError"


async def test_a_sync_tool_does_not_delay_the_end_of_the_run() -> None:
    release = threading.Event()
    loop = asyncio.get_running_loop()
    ended: list[str] = []

    def hold() -> str:
        loop.call_soon_threadsafe(let_pass)
        release.wait(60)
        ended.append("hold")
        return ""

    agent = Agent("a", "x", model=calling("hold"), tools=[hold], middleware=[Deadline(ENOUGH)])
    try:
        with pytest.raises(DeadlineExceededError):
            await agent.run_async("Go")
        assert ended == []
    finally:
        release.set()


async def test_a_cancellation_from_outside_is_passed_on() -> None:
    entered = asyncio.Event()

    async def wait_here(_call: Any) -> Any:
        entered.set()
        await asyncio.Event().wait()

    model = ScriptedModel([ModelStep.respond(wait_here)])
    agent = Agent("a", "x", model=model, middleware=[Deadline(3600)])
    before = asyncio.all_tasks()
    task = asyncio.create_task(agent.run_async("Go"))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == before


async def test_a_timeout_of_the_caller_is_not_reported_as_the_deadline() -> None:
    agent = Agent("a", "x", model=waiting_model(), tools=[look], middleware=[Deadline(3600)])
    with pytest.raises(TimeoutError) as caught:
        with anyio.fail_after(ENOUGH):
            await agent.run_async("Go")
    assert not isinstance(caught.value, DeadlineExceededError)


async def test_an_error_of_the_run_is_passed_on() -> None:
    agent = Agent("a", "x", model=ScriptedModel([LookupError("gone")]), middleware=[Deadline(60)])
    with pytest.raises(LookupError, match="gone"):
        await agent.run_async("Go")


async def test_each_run_has_its_own_deadline_and_counts() -> None:
    steps = [
        ModelStep([function_call("look", {}, call_id="1")]),
        ModelStep([assistant_message("Done.")]),
        ModelStep.respond(never_returns),
    ]
    agent = Agent("a", "x", model=ScriptedModel(steps), tools=[look], middleware=[Deadline(ENOUGH)])
    await agent.run_async("Go")
    with pytest.raises(DeadlineExceededError) as caught:
        await agent.run_async("Go")
    assert (caught.value.model_calls, caught.value.tool_calls) == (0, 0)


async def test_a_handoff_target_has_the_same_deadline() -> None:
    target = Agent("b", "x", model=waiting_model(), tools=[look])
    first = ScriptedModel([[function_call("transfer_to_b", {}, call_id="0")]])
    agent = Agent("a", "x", model=first, handoffs=[target], middleware=[Deadline(ENOUGH)])
    with pytest.raises(DeadlineExceededError) as caught:
        await agent.run_async("Go")
    assert (caught.value.model_calls, caught.value.tool_calls) == (2, 1)


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_request_to_a_slow_server_is_cancelled(streamed: bool) -> None:
    loop = asyncio.get_running_loop()

    def answer(_request: Any) -> Any:
        if len(server.requests) == 1:
            return ScriptedToolCall("look")
        loop.call_soon_threadsafe(let_pass)
        return Reply("late", delay=30)

    with OfflineServer(answer) as server:
        agent = Agent("a", "x", model=server.bundle(), tools=[look], middleware=[Deadline(ENOUGH)])
        with pytest.raises(DeadlineExceededError) as caught:
            if streamed:
                async with agent.stream("Go") as stream:
                    _ = [event async for event in stream]
            else:
                await agent.run_async("Go")
    assert caught.value.model_calls == 1


def test_it_works_in_a_sync_run() -> None:
    agent = Agent("a", "x", model=waiting_model(), tools=[look], middleware=[Deadline(ENOUGH)])
    with pytest.raises(DeadlineExceededError):
        agent.run("Go")


@pytest.mark.parametrize("seconds", [0, -1, True, float("nan"), float("inf"), "5", None, 10**400])
def test_an_invalid_duration_is_an_error(seconds: Any) -> None:
    with pytest.raises(InvalidOptionError, match="seconds"):
        Deadline(seconds)
