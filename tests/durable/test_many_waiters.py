"""Many who wait for durable runs in one process."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from kantan_agents import Agent, Durable, DurableRuns
from kantan_agents.errors import DurableRunNotFoundError
from kantan_agents.testing import OfflineServer

MANY = 30


def _pollers() -> int:
    return sum(thread.name == "kantan-agents-poller" for thread in threading.enumerate())


@pytest.mark.parametrize("place", ["file", "server"])
async def test_they_share_one_thread_and_take_none_from_runs(
    place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    server_url = place == "server" and request.getfixturevalue("postgres_url")
    database = server_url or f"sqlite:///{tmp_path / 'runs.sqlite3'}"
    options: Any = {"queues": ["jobs"], "keep_events": True, "look_interval": 0.05}
    with OfflineServer(lambda _request: "Fine.") as server:
        agent = Agent("a", "Help.", model=server.bundle(), middleware=[Durable()])
        async with DurableRuns(database, agents=[agent], **options) as runs:
            ids = [await agent.enqueue("Go.", queue="jobs", delay=1) for _ in range(3)]

            async def read(run_id: str) -> int:
                return len([event async for event in runs.events(run_id)])

            results = [asyncio.create_task(runs.result(ids[number % 3])) for number in range(MANY)]
            readers = [asyncio.create_task(read(ids[number % 3])) for number in range(MANY)]
            await asyncio.sleep(0.2)
            assert _pollers() == 1
            assert anyio.to_thread.current_default_thread_limiter().borrowed_tokens == 0
            assert {one.output for one in await asyncio.gather(*results)} == {"Fine."}
            assert min(await asyncio.gather(*readers)) > 1
    assert _pollers() == 0


async def test_one_who_gives_up_leaves_nothing_and_an_unknown_run_is_an_error(tmp_path: Path) -> None:
    runs = DurableRuns(f"sqlite:///{tmp_path / 'runs.sqlite3'}")
    with pytest.raises(DurableRunNotFoundError):
        await runs.result("missing")
    waiter: Any = asyncio.create_task(runs._poller.wait("missing", "has events"))
    await asyncio.sleep(0)
    assert _pollers() == 1
    waiter.cancel()
    with suppress(asyncio.CancelledError):
        await waiter
    for thread in threading.enumerate():
        if thread.name == "kantan-agents-poller":
            await asyncio.to_thread(thread.join, 10)
    assert _pollers() == 0
    await runs.stop()


async def test_a_forked_child_waits_although_the_thread_of_its_parent_looks_at_that_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = DurableRuns(f"sqlite:///{tmp_path / 'runs.sqlite3'}")
    looking, parent = runs._poller._looking, os.getpid()
    with looking:
        monkeypatch.setattr(os, "getpid", lambda: parent + 1)  # as in a child
        assert await asyncio.wait_for(runs._poller.wait("missing", "has ended"), 30) == "has ended"
        await asyncio.to_thread(runs._close)
    await runs.stop()
