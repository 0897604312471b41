"""Runs that workers make later: order, limits, schedules."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import Agent
from kantan_agents.durable import Durable, DurableRuns, Limits
from kantan_agents.errors import DurableNotStartedError, InputTypeError, InvalidOptionError, NotStorableError
from kantan_agents.testing import OfflineServer, function_call

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """Durable runs need asyncio."""
    return "asyncio"


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Both kinds of databases."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'runs.sqlite3'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


def _durable(server: OfflineServer, **options: Any) -> Agent[Any]:
    return Agent("a", "Help.", model=server.bundle(), middleware=[Durable()], tool_providers=None, **options)


async def test_a_queued_run_is_made_by_whoever_has_its_queue(database: str) -> None:
    with OfflineServer(lambda request: request.input[0]["content"].upper()) as server:
        agent = _durable(server)
        async with DurableRuns(database, agents=[agent]) as runs:
            run_id = await agent.enqueue("hello", {"user": 1}, queue="support", priority=2)
            assert (await runs.get(run_id)).status == "queued"
            assert (await runs.list_runs(queue="support"))[0].agent == "a"
        async with DurableRuns(database, agents=[agent], queues=["support"], look_interval=0.05) as runs:
            outcome = await runs.result(run_id, timeout=20)
            assert outcome.output == "HELLO"
            assert outcome.context["user"] == 1
            assert outcome.run_id == run_id
            assert (await runs.get(run_id)).status == "finished"


async def test_the_first_priority_is_made_first(database: str) -> None:
    with OfflineServer(lambda request: "ok") as server:
        agent = _durable(server)
        async with DurableRuns(database, agents=[agent]):
            ids = [
                await agent.enqueue(name, queue="support", priority=priority)
                for name, priority in (("third", 9), ("second", 2), ("first", None))
            ]
        queues = {"support": Limits(concurrency=1)}
        async with DurableRuns(database, agents=[agent], queues=queues, look_interval=0.05) as runs:
            for run_id in ids:
                await runs.result(run_id, timeout=20)
    assert [request.input[0]["content"] for request in server.requests] == ["first", "second", "third"]


async def test_a_key_keeps_a_second_run_out_of_the_queue_while_the_first_waits(database: str) -> None:
    with OfflineServer(lambda request: "ok") as server:
        agent = _durable(server)
        async with DurableRuns(database, agents=[agent], queues=["support"], look_interval=0.05) as runs:
            one = await agent.enqueue("one", queue="support", dedup_key="ticket-7", delay=0.3)
            assert await agent.enqueue("two", queue="support", dedup_key="ticket-7") == one
            await runs.result(one, timeout=20)
            assert await agent.enqueue("three", queue="support", dedup_key="ticket-7") != one


async def test_each_tenant_has_its_own_limit(database: str) -> None:
    running: dict[str, int] = {}
    most: dict[str, int] = {}
    together = 0

    async def work(tenant: str) -> str:
        """Work."""
        nonlocal together
        running[tenant] = running.get(tenant, 0) + 1
        most[tenant] = max(most.get(tenant, 0), running[tenant])
        together = max(together, sum(running.values()))
        await asyncio.sleep(0.05)
        running[tenant] -= 1
        return "done"

    def answer(request: Any) -> Any:
        if request.input[-1].get("type") == "function_call_output":
            return "ok"
        return [function_call("work", {"tenant": request.input[0]["content"]}, call_id="c1")]

    with OfflineServer(answer) as server:
        agent = _durable(server, tools=[work])
        queues = {"support": Limits(concurrency=8, per_tenant=1)}
        async with DurableRuns(database, agents=[agent], queues=queues, look_interval=0.05) as runs:
            ids = [
                await agent.enqueue(tenant, queue="support", tenant=tenant)
                for tenant in ("acme", "acme", "acme", "zenith", "zenith", "zenith")
            ]
            for run_id in ids:
                await runs.result(run_id, timeout=30)
    assert most == {"acme": 1, "zenith": 1}
    assert together == 2


async def test_a_schedule_queues_runs(database: str) -> None:
    with OfflineServer(lambda request: "ok") as server:
        agent = _durable(server)
        async with DurableRuns(database, agents=[agent], queues=["support"], look_interval=0.05) as runs:
            with pytest.raises(InvalidOptionError, match="cron"):
                await runs.schedule("tick", "every day", "a", "Tick.", queue="support")
            await runs.schedule("tick", "* * * * * *", "a", "Tick.", queue="support", context={"n": 1})
            made: list[Any] = []
            while not made:
                await asyncio.sleep(0.1)
                made = await runs.list_runs(queue="support", status="finished")
            assert (await runs.result(made[0].run_id)).context["n"] == 1
            await runs.unschedule("tick")


async def test_what_cannot_be_queued_is_refused(tmp_path: Path) -> None:
    with OfflineServer(()) as server:
        agent = _durable(server)
        plain = Agent("plain", "Help.", model=server.bundle(), tool_providers=None)
        with pytest.raises(DurableNotStartedError, match=r"E150.*it has no Durable\(\)"):
            await plain.enqueue("Hi", queue="q")
        with pytest.raises(DurableNotStartedError, match=r"E150.*no DurableRuns is started"):
            await agent.enqueue("Hi", queue="q")
        async with DurableRuns(f"sqlite:///{tmp_path / 'r.sqlite3'}", agents=[agent]) as runs:
            with pytest.raises(InputTypeError):
                await agent.enqueue(7, queue="q")  # type: ignore[arg-type]
            with pytest.raises(InvalidOptionError, match="queue"):
                await agent.enqueue("Hi", queue="")
            with pytest.raises(InvalidOptionError, match="priority"):
                await agent.enqueue("Hi", queue="q", priority=0)
            with pytest.raises(NotStorableError, match=r"E151.*context\['db'\] is not JSON.*reload"):
                await agent.enqueue("Hi", {"db": object()}, queue="q")
            with pytest.raises(NotStorableError, match="the option hooks"):
                await agent.enqueue("Hi", queue="q", hooks=object())
            assert await runs.list_runs() == []
