"""``RetryScheduled``: who observes a run sees that a request waits to be sent again, and for how long."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from kantan_llm import AsyncClientBundle
from openai import AsyncOpenAI

from kantan_agents import Agent, Event
from kantan_agents.core.events import ModelCallStarted, RetryScheduled
from kantan_agents.middleware import Retry
from kantan_agents.models.client_retries import client_retry_listener, report_client_retries
from kantan_agents.testing import OfflineServer, Reply, ScriptedToolCall
from tests.core.events.event_checks import check_whole

BUSY = Reply("slow down", status=429, headers={"retry-after-ms": "7"})


async def _no_wait(*_: Any, **__: Any) -> None:
    pass


async def retries(agent: Agent[Any], *, streamed: bool) -> list[tuple[Any, ...]]:
    """Run an agent, and return what its events say about retries, each with its model call."""
    seen: list[Event] = []
    with agent.subscribe(seen.append):
        if streamed:
            async with agent.stream("Go") as run:
                async for _ in run:
                    pass
        else:
            await agent.run_async("Go")
    check_whole(seen)
    return [
        (event.agent, event.call_id, event.status, event.attempt, event.attempts)
        for event in seen
        if isinstance(event, RetryScheduled)
    ]


@pytest.mark.parametrize("api", ["responses", "chat"])
@pytest.mark.parametrize("streamed", [False, True])
async def test_retries_of_the_client_belong_to_its_call(api: str, streamed: bool) -> None:
    with OfflineServer([BUSY, Reply("away", status=503, headers={"retry-after-ms": "1"}), "Done."]) as server:
        agent = Agent("office", "x", model=server.bundle(api=api))
        seen = await retries(agent, streamed=streamed)
    assert seen == [("office", "model_1", 429, 2, 3), ("office", "model_1", 503, 3, 3)]


@pytest.mark.parametrize("streamed", [False, True])
async def test_retries_of_the_middleware_follow_the_call_that_failed(streamed: bool) -> None:
    with OfflineServer([BUSY, BUSY, "Done."]) as server:
        retry = Retry(4, initial_delay=0, max_delay=0)
        agent = Agent("office", "x", model=server.bundle(), middleware=[retry])
        seen = await retries(agent, streamed=streamed)
    assert seen == [("office", "model_1", 429, 2, 4), ("office", "model_2", 429, 3, 4)]


async def test_the_delay_is_the_one_that_is_waited_for() -> None:
    with OfflineServer([BUSY, "Done."]) as server:
        agent = Agent("office", "x", model=server.bundle())
        seen: list[Event] = []
        with agent.subscribe(seen.append):
            await agent.run_async("Go")
    (event,) = [event for event in seen if isinstance(event, RetryScheduled)]
    assert event.delay == 0.007


async def test_a_lost_connection_has_no_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AsyncOpenAI, "_sleep_for_retry", _no_wait)
    with OfflineServer([ConnectionResetError("gone"), "Done."]) as server:
        bundle = server.bundle()
        client = bundle.client.with_options(max_retries=1)
        agent = Agent("office", "x", model=AsyncClientBundle(client, "m", "openai", server.base_url))
        seen: list[Event] = []
        with agent.subscribe(seen.append), pytest.raises(Exception, match="Connection error"):
            await agent.run_async("Go")
    scheduled = [(event.status, event.attempt) for event in seen if isinstance(event, RetryScheduled)]
    assert scheduled == [(None, 2)]


async def test_an_error_that_no_wait_helps_is_no_retry() -> None:
    with OfflineServer([Reply("no", status=401)]) as server:
        agent = Agent("office", "x", model=server.bundle())
        seen: list[Event] = []
        with agent.subscribe(seen.append), pytest.raises(Exception, match="no"):
            await agent.run_async("Go")
    assert any(isinstance(event, ModelCallStarted) for event in seen)
    assert not any(isinstance(event, RetryScheduled) for event in seen)


async def test_two_runs_of_one_client_know_their_own_retries() -> None:
    waits = {"one": BUSY, "other": BUSY}

    def reply(request: Any) -> Any:
        return waits.pop(request.body["input"][-1]["content"], "Done.")

    with OfflineServer(reply) as server:
        agent = Agent("office", "x", model=server.bundle())
        seen: dict[str, list[str]] = {"one": [], "other": []}

        async def ask(question: str) -> None:
            async with agent.stream(question) as run:
                async for event in run:
                    seen[question] += [event.run_id] if event.type == "retry_scheduled" else []
            assert seen[question] == [run.id]

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "one")
            tasks.start_soon(ask, "other")


async def test_requests_of_a_tool_are_no_retries_of_the_model_call() -> None:
    with OfflineServer([ScriptedToolCall("ask", {}), BUSY, "Inner.", "Done."]) as server:
        bundle = server.bundle()

        async def ask() -> str:
            """Ask the model directly."""
            return (await bundle.client.responses.create(model="m", input="Go")).output_text

        agent = Agent("office", "x", model=bundle, tools=[ask])
        assert await retries(agent, streamed=True) == []
    assert len(server.requests) == 4


async def test_a_run_that_is_cancelled_does_not_wait_any_longer() -> None:
    with OfflineServer([Reply("slow down", status=429, headers={"retry-after": "100"})]) as server:
        agent = Agent("office", "x", model=server.bundle())
        with anyio.fail_after(20):
            async with agent.stream("Go") as run:
                async for event in run:
                    if event.type == "retry_scheduled":
                        run.cancel()
    assert len(server.requests) == 1


async def test_a_client_that_waits_in_another_way_still_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    async def wait(*_: Any, **__: Any) -> None:
        waits.append(True)

    waits: list[bool] = []
    monkeypatch.setattr(AsyncOpenAI, "_sleep_for_retry", wait)
    with OfflineServer([BUSY, "Done."]) as server:
        agent = Agent("office", "x", model=server.bundle())
        assert await retries(agent, streamed=True) == [("office", "model_1", 429, 2, 3)]
        await server.bundle().client.close()
    assert waits == [True]

    class Other(AsyncOpenAI):
        async def _send(self) -> None:
            await self._sleep_for_retry(3)  # type: ignore[call-arg]

    client = Other(api_key="x")
    report_client_retries(client)
    token = client_retry_listener.set(_unexpected)
    await client._send()
    client_retry_listener.reset(token)
    assert waits == [True, True]


async def _unexpected(**_: Any) -> None:
    raise AssertionError("it cannot be reported")
