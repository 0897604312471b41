"""A cancelled request gives back its place in the connection pool, wherever it is cancelled."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import httpx
import pytest
from hypothesis import settings
from kantan_llm import AsyncClientBundle
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from kantan_agents import Agent, connection_stats
from kantan_agents.models.http_pools import reclaim_connections
from kantan_agents.testing import OfflineServer

PLACES = 5
AT_ONCE = 8
STEPS = 150
"""A run of this file takes about as many steps of the event loop."""
CANCELLATIONS = {"fast": 60, "ci": 120}.get(settings.get_current_profile_name() or "", 1_250)
"""For each of eight tests: 10,000 in the long profile."""


async def steps(number: int) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def cancelled_once(run: Callable[[], Awaitable[Any]], random: random.Random) -> None:
    task = asyncio.ensure_future(run())
    await steps(random.randrange(STEPS))
    task.cancel()
    await asyncio.wait([task])


async def cancelled_twice(run: Callable[[], Awaitable[Any]], random: random.Random) -> None:
    task = asyncio.ensure_future(run())
    await steps(random.randrange(STEPS))
    task.cancel()
    await steps(random.randrange(4))
    task.cancel()
    await asyncio.wait([task])


async def cancelled_by_a_scope(run: Callable[[], Awaitable[Any]], random: random.Random) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await steps(random.randrange(STEPS))
        group.cancel_scope.cancel()


async def cancelled_by_a_timeout(run: Callable[[], Awaitable[Any]], random: random.Random) -> None:
    async def limited() -> None:
        try:
            async with asyncio.timeout(None) as limit:  # new in Python 3.11
                limits.append(limit)
                await run()
        except TimeoutError:
            pass

    limits: list[Any] = []
    task = asyncio.ensure_future(limited())
    await steps(random.randrange(1, STEPS))
    if not task.done():
        limits[0].reschedule(asyncio.get_running_loop().time())
    await asyncio.wait([task])


WAYS = [cancelled_once, cancelled_twice, cancelled_by_a_scope]
if sys.version_info >= (3, 11):
    WAYS.append(cancelled_by_a_timeout)


def limited_bundle(server: OfflineServer) -> AsyncClientBundle:
    """Return a client with few connections, in which a run fails at once if it gets none."""
    bundle = server.bundle()
    limits = httpx.Limits(max_connections=PLACES)
    http: Any = DefaultAsyncHttpxClient(trust_env=False, verify=False, limits=limits, timeout=60.0)
    client = AsyncOpenAI(api_key="x", base_url=server.base_url, http_client=http, max_retries=0)
    return AsyncClientBundle(client, bundle.model, bundle.provider, bundle.base_url)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("keep_alive", [False, True])
async def test_every_place_is_free_after_runs_were_cancelled_at_random_points(
    way: Callable[..., Awaitable[None]], keep_alive: bool
) -> None:
    drawn = random.Random(f"{way.__name__} {keep_alive}")
    with OfflineServer(lambda _: "It is sunny.", keep_alive=keep_alive) as server:
        bundle = limited_bundle(server)
        agent = Agent("a", "x", model=bundle)

        async def streamed() -> None:
            async with agent.stream("hi") as stream:
                async for _ in stream:
                    continue

        async def answered() -> None:
            await agent.run_async("hi")

        for _ in range(0, CANCELLATIONS, AT_ONCE):
            async with anyio.create_task_group() as group:
                for _ in range(AT_ONCE):
                    group.start_soon(way, drawn.choice((answered, streamed)), drawn)

        [stats] = [stats for stats in connection_stats() if stats.base_url == server.base_url]
        assert (stats.active, stats.opening, stats.pending_requests) == (0, 0, 0)
        async with anyio.create_task_group() as group:
            for _ in range(PLACES):
                group.start_soon(answered)
        await bundle.client.close()


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
@pytest.mark.parametrize("way", WAYS)
async def test_both_http_libraries_of_the_openai_client_give_every_place_back(
    way: Callable[..., Awaitable[None]], library: str
) -> None:
    drawn = random.Random(f"{way.__name__} {library}")
    http: Any = pytest.importorskip(library)
    with OfflineServer(lambda _: "It is sunny.", keep_alive=True) as server:
        limits = http.Limits(max_connections=PLACES)
        async with http.AsyncClient(trust_env=False, verify=False, limits=limits) as client:
            reclaim_connections(client, server.base_url)

            async def post() -> None:
                await client.post(f"{server.base_url}/chat/completions", json={"model": "m", "messages": []})

            for _ in range(0, CANCELLATIONS, AT_ONCE):
                async with anyio.create_task_group() as group:
                    for _ in range(AT_ONCE):
                        group.start_soon(way, post, drawn)

            [stats] = [stats for stats in connection_stats() if stats.base_url == server.base_url]
            assert (stats.active, stats.opening, stats.pending_requests) == (0, 0, 0)
            await post()
