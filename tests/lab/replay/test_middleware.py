"""Middleware that waits, counts or asks elsewhere: in a replay, the recording decides."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import openai
import pytest
from agents import Usage

from kantan_agents import Agent, replay_async
from kantan_agents.middleware import Budget, Deadline, Fallback, Retry, ToolErrors
from kantan_agents.testing import Reply
from kantan_agents.testing import ScriptedToolCall as Call
from tests.lab.replay.kinds_of_runs import failing, scripted, tool
from tests.lab.replay.taping import RAN, Case, Tapes


def slow_down(**headers: str) -> openai.RateLimitError:
    request = httpx.Request("POST", "http://x/")
    return openai.RateLimitError(
        "slow", response=httpx.Response(429, request=request, headers=headers), body=None
    )


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The delays of more than 0 seconds, none of which really passes."""
    delays: list[float] = []
    sleep = asyncio.sleep

    async def noted(delay: float, *rest: Any) -> Any:
        if delay > 0:
            delays.append(delay)
        return await sleep(0, *rest)

    monkeypatch.setattr(asyncio, "sleep", noted)
    monkeypatch.setattr("anyio.sleep", noted)
    return delays


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
async def test_a_retried_model_call_does_not_wait(tapes: Tapes, waited: list[float], streamed: bool) -> None:
    def agent(live: bool) -> Agent[Any]:
        model = scripted(live, slow_down(), slow_down(), "Yes")
        return Agent("a", "Hi", model=model, middleware=[Retry(3, initial_delay=100, max_delay=500)])

    taped = await tapes.record(Case(agent(live=True)), streamed=streamed)
    assert len(waited) == 2
    assert (await tapes.replays(taped, agent(live=False))).output == "Yes"
    assert len(waited) == 2


async def test_a_call_that_was_not_retried_is_not_retried(tapes: Tapes) -> None:
    def agent(live: bool) -> Agent[Any]:
        model = scripted(live, slow_down(**{"retry-after": "4000"}))
        return Agent("a", "Hi", model=model, middleware=[Retry(3, longest_wait=60)])

    taped = await tapes.record(Case(agent(live=True)))
    replayed = await tapes.replays(taped, agent(live=False))
    assert isinstance(replayed.error, openai.RateLimitError)


@pytest.mark.parametrize("fails", [1, 2], ids=["the last attempt returns", "all attempts fail"])
async def test_a_retried_tool_is_answered_once(tapes: Tapes, waited: list[float], fails: int) -> None:
    def agent(live: bool) -> Agent[Any]:
        left = [fails]

        def shaky(x: str) -> str:
            """Fail at first."""
            RAN.append("shaky")
            left[0] -= 1
            if left[0] >= 0:
                raise ConnectionError("lost")
            return f"shaky {x}"

        model = scripted(live, Call("shaky", {"x": "1"}), "Yes")
        return Agent("a", "Hi", model=model, tools=[shaky], middleware=[Retry(2, tools=["shaky"])])

    taped = await tapes.record(Case(agent(live=True)))
    delays = len(waited)
    assert delays == 1
    await tapes.replays(taped, agent(live=False))
    assert len(waited) == delays


async def test_a_deadline_does_not_expire_in_a_replay(tapes: Tapes) -> None:
    def agent(live: bool, seconds: float) -> Agent[Any]:
        model = scripted(live, Call("t1", {}), "Yes")
        return Agent("a", "Hi", model=model, tools=[tool("t1")], middleware=[Deadline(seconds)])

    taped = await tapes.record(Case(agent(live=True, seconds=600)))
    assert (await tapes.replays(taped, agent(live=False, seconds=1e-9))).output == "Yes"


def spending(live: bool, budget: Budget) -> Agent[Any]:
    used = Usage(requests=1, input_tokens=60, output_tokens=0, total_tokens=60)
    replies = [Reply(tool_calls=[Call("t1", {})], usage=used) for _ in range(3)]
    return Agent("a", "Hi", model=scripted(live, *replies), tools=[tool("t1")], middleware=[budget])


async def test_a_budget_runs_out_as_it_did_and_is_not_used_up_by_replays(tapes: Tapes) -> None:
    taped = await tapes.record(Case(spending(True, Budget(max_tokens=100))))
    assert taped.recording.root.error is not None
    assert taped.recording.root.error.code == "E83"
    budget = Budget(max_tokens=100)
    for _ in range(3):
        replayed = await tapes.replays(taped, spending(False, budget))
        assert "[E83]" in str(replayed.error)
    assert budget.used().tokens == 0


async def test_a_limit_of_one_tool_refuses_the_same_calls(tapes: Tapes) -> None:
    def agent(live: bool) -> Agent[Any]:
        model = scripted(live, Call("t1", {}), Call("t1", {}), "Yes")
        budget = Budget(max_tool_calls=9, per_tool={"t1": 1})
        return Agent("a", "Hi", model=model, tools=[tool("t1")], middleware=[budget])

    ran = len(RAN)
    taped = await tapes.record(Case(agent(live=True)))
    assert RAN[ran:] == ["t1"]
    assert (await tapes.replays(taped, agent(live=False))).output == "Yes"


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
async def test_the_next_model_answers_again(tapes: Tapes, streamed: bool) -> None:
    def agent(live: bool) -> Agent[Any]:
        other = scripted(live, "from the other")
        return Agent("a", "Hi", model=scripted(live, slow_down()), middleware=[Fallback(other)])

    taped = await tapes.record(Case(agent(live=True)), streamed=streamed)
    assert (await tapes.replays(taped, agent(live=False))).output == "from the other"


async def test_errors_of_tools_are_put_as_they_were(tapes: Tapes) -> None:
    def agent(live: bool) -> Agent[Any]:
        model = scripted(live, Call("failing", {"x": "1"}), "Yes")
        return Agent("a", "Hi", model=model, tools=[failing], middleware=[ToolErrors()])

    taped = await tapes.record(Case(agent(live=True)))
    assert (await tapes.replays(taped, agent(live=False))).output == "Yes"


class NotEnoughError(Exception):
    """An error of the user's code."""


async def test_middleware_catches_the_errors_of_its_own_classes(tapes: Tapes) -> None:
    from kantan_agents import Middleware

    class Pay(Middleware):
        async def tool_call(self, call: Any, call_next: Any) -> Any:
            try:
                return await call_next(call)
            except (NotEnoughError, KeyError) as error:
                return f"not paid: {error!r}"

    def agent(live: bool) -> Agent[Any]:
        def pay(x: str) -> str:
            """Pay."""
            RAN.append("pay")
            if x == "1":
                raise NotEnoughError("too little")
            raise KeyError(x)

        model = scripted(live, Call("pay", {"x": "1"}), Call("pay", {"x": "2"}), "Yes")
        return Agent("a", "Hi", model=model, tools=[pay], middleware=[Pay()])

    taped = await tapes.record(Case(agent(live=True)))
    outputs = [call.output for call in taped.recording.root.tool_calls]
    assert outputs == ["not paid: NotEnoughError('too little')", "not paid: KeyError('2')"]
    await tapes.replays(taped, agent(live=False))


async def test_a_retry_that_was_taken_away_is_noticed(tapes: Tapes) -> None:
    def agent(live: bool, *middleware: Any) -> Agent[Any]:
        return Agent("a", "Hi", model=scripted(live, slow_down(), "Yes"), middleware=middleware)

    taped = await tapes.record(Case(agent(True, Retry(2, initial_delay=0.001))))
    with pytest.raises(openai.RateLimitError):
        await replay_async(taped.recording, agent(False))
