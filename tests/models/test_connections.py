"""Cancelling a run leaves no HTTP connection in use."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kantan_agents import Agent
from kantan_agents.models.client_pool import sdk_model
from kantan_agents.testing import OfflineServer


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_a_run_cancelled_while_a_response_is_closed_leaves_no_connection_in_use(
    api: str, streamed: bool
) -> None:
    closing, times = asyncio.Event(), 3

    async def close_slowly(response: Any) -> None:
        close = response.stream.aclose

        async def slow() -> None:
            closing.set()
            await asyncio.sleep(0.01)
            await close()

        response.stream.aclose = slow

    with OfflineServer(["It is sunny."] * times) as server:
        bundle = server.bundle(api=api)
        http: Any = bundle.client._client
        http.event_hooks = {"response": [close_slowly]}
        agent = Agent("a", "x", model=bundle)

        async def run() -> None:
            if not streamed:
                await agent.run_async("hi")
                return
            async with agent.stream("hi") as stream:
                async for _ in stream:
                    continue

        for _ in range(times):
            closing.clear()
            task = asyncio.create_task(run())
            await closing.wait()
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            assert all(connection.is_idle() for connection in http._transport._pool.connections)
        assert len(server.requests) == times


def test_a_client_gets_each_hook_once_and_keeps_its_own() -> None:
    async def mine(_response: Any) -> None: ...

    with OfflineServer() as server:
        bundle = server.bundle()
        http: Any = bundle.client._client
        http.event_hooks = {"response": [mine], "request": []}
        sdk_model(bundle)
        sdk_model(bundle)
    assert http.event_hooks["response"][0] is mine
    assert len(http.event_hooks["response"]) == len(set(http.event_hooks["response"])) == 4
