"""Runs that workers make later: order, limits, schedules."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from dbos import _core

from kantan_agents import Agent
from kantan_agents.durable import Durable, DurableRuns, Limits
from kantan_agents.durable.storage.steps import StepStore
from kantan_agents.errors import (
    DurableNotStartedError,
    DurableRunFailedError,
    InputTypeError,
    InvalidOptionError,
    NotStorableError,
    RunMovedError,
)
from kantan_agents.testing import OfflineServer, function_call
from tests.durable.conftest import Scene, use_engine


@pytest.fixture
def anyio_backend() -> str:
    """Durable runs need asyncio."""
    return "asyncio"


@pytest.fixture(params=["sqlite", "postgres"])
def of_dbos(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Both kinds of databases."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'runs.sqlite3'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(params=["sqlite", "postgres", "temporal"])
def database(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both kinds of databases with DBOS, and one with Temporal."""
    if request.param == "temporal":
        use_engine(monkeypatch, request.getfixturevalue("temporal"))
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'runs.sqlite3'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    """What this library and DBOS log; that of DBOS does not reach the root logger.

    What others log is left out: threads of an earlier test may still send their last metrics.
    """
    logger = logging.getLogger("dbos")
    logger.addHandler(caplog.handler)
    yield lambda: [
        record.getMessage() for record in caplog.records if record.name.startswith(("dbos", "kantan_agents"))
    ]
    logger.removeHandler(caplog.handler)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a run is being taken from a queue, which then takes half a second."""
    event = threading.Event()
    execute = _core.execute_dequeued_workflow

    def slow(*arguments: Any) -> Any:
        event.set()
        time.sleep(0.5)
        return execute(*arguments)

    monkeypatch.setattr("dbos._queue.execute_dequeued_workflow", slow)
    return event


def _durable(server: OfflineServer, **options: Any) -> Agent[Any]:
    return Agent("a", "Help.", model=server.bundle(), middleware=[Durable()], tool_providers=None, **options)


async def test_a_queued_run_is_made_by_whoever_has_its_queue(database: str) -> None:
    with OfflineServer(lambda request: request.input[0]["content"].upper()) as server:
        agent = _durable(server)
        async with DurableRuns(database, agents=[agent]) as runs:
            run_id = await agent.enqueue("hello \ud83d", {"user": "\ud83d"}, queue="support", priority=2)
            assert (await runs.get(run_id)).status == "queued"
            assert (await runs.list_runs(queue="support"))[0].agent == "a"
        async with DurableRuns(database, agents=[agent], queues=["support"], look_interval=0.05) as runs:
            outcome = await runs.result(run_id, timeout=120)
            assert outcome.output == "HELLO \ufffd"
            assert outcome.context["user"] == "\ud83d"  # as given, although no database takes it
            assert outcome.run_id == run_id
            assert (await runs.get(run_id)).status == "finished"


async def test_the_first_priority_is_made_first(of_dbos: str) -> None:
    with OfflineServer(lambda request: "ok") as server:
        agent = _durable(server)
        async with DurableRuns(of_dbos, agents=[agent]):
            ids = [
                await agent.enqueue(name, queue="support", priority=priority)
                for name, priority in (("third", 9), ("second", 2), ("first", None))
            ]
        queues = {"support": Limits(concurrency=1)}
        async with DurableRuns(of_dbos, agents=[agent], queues=queues, look_interval=0.05) as runs:
            for run_id in ids:
                await runs.result(run_id, timeout=120)
    assert [request.input[0]["content"] for request in server.requests] == ["first", "second", "third"]


async def test_a_key_keeps_a_second_run_out_of_the_queue_while_the_first_waits(database: str) -> None:
    with OfflineServer(lambda request: "ok") as server:
        agent = _durable(server)
        async with DurableRuns(database, agents=[agent], queues=["support"], look_interval=0.05) as runs:
            one = await agent.enqueue("one", queue="support", dedup_key="ticket-7", delay=0.3)
            assert await agent.enqueue("two", queue="support", dedup_key="ticket-7") == one
            await runs.result(one, timeout=120)
            assert await agent.enqueue("three", queue="support", dedup_key="ticket-7") != one


async def test_a_run_that_is_being_taken_at_the_stop_is_made_then_or_by_the_next_worker(
    of_dbos: str, taken: threading.Event, logged: Callable[[], list[str]]
) -> None:
    with OfflineServer(lambda request: "ok") as server:
        agent = _durable(server)
        async with DurableRuns(of_dbos, agents=[agent], queues=["support"], look_interval=0.05) as runs:
            run_id = await agent.enqueue("hello", queue="support")
            assert await asyncio.to_thread(taken.wait, 20)
        assert not logged()
        async with DurableRuns(of_dbos, agents=[agent], queues=["support"], look_interval=0.05) as runs:
            assert (await runs.result(run_id, timeout=120)).output == "ok"
    assert len(server.requests) == 1


async def test_a_stop_is_clean_while_a_thread_of_a_queue_is_about_to_start(
    of_dbos: str, monkeypatch: pytest.MonkeyPatch, logged: Callable[[], list[str]]
) -> None:
    starting = threading.Event()
    begin = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def slow(thread: threading.Thread) -> None:
        if thread.name == "queue-worker-support":
            starting.set()
            time.sleep(0.5)
        begin(thread)

    monkeypatch.setattr(threading.Thread, "_bootstrap_inner", slow)
    with OfflineServer(lambda request: "ok") as server:
        agent = _durable(server)
        async with DurableRuns(of_dbos, agents=[agent]):
            run_id = await agent.enqueue("hello", queue="support")
        async with DurableRuns(of_dbos, agents=[agent], queues=["support"], look_interval=0.05) as runs:
            assert await asyncio.to_thread(starting.wait, 20)
        assert not logged()
        async with DurableRuns(of_dbos, agents=[agent], queues=["support"], look_interval=0.05) as runs:
            assert (await runs.result(run_id, timeout=120)).output == "ok"
    assert len(server.requests) == 1


async def test_each_tenant_has_its_own_limit(of_dbos: str) -> None:
    running: dict[str, int] = {}
    most: dict[str, int] = {}
    together = 0

    async def work(tenant: str) -> str:
        """Work."""
        nonlocal together
        running[tenant] = running.get(tenant, 0) + 1
        most[tenant] = max(most.get(tenant, 0), running[tenant])
        together = max(together, sum(running.values()))
        while together < 2:  # noqa: ASYNC110 - until a run of the other tenant is there
            await asyncio.sleep(0.01)
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
        async with DurableRuns(of_dbos, agents=[agent], queues=queues, look_interval=0.05) as runs:
            ids = [
                await agent.enqueue(tenant, queue="support", tenant=tenant)
                for tenant in ("acme", "acme", "acme", "zenith", "zenith", "zenith")
            ]
            for run_id in ids:
                await runs.result(run_id, timeout=120)
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


def _soon() -> str:
    """Return a cron expression that is true in some seconds, and then not for a year."""
    return (datetime.now(timezone.utc) + timedelta(seconds=5)).strftime("%S %M %H %d %m *")


async def test_a_run_of_a_schedule_that_is_being_queued_at_the_stop_is_made_then_or_by_the_next_worker(
    of_dbos: str, taken: threading.Event, logged: Callable[[], list[str]]
) -> None:
    with OfflineServer(lambda request: "ok") as server:
        agent = _durable(server)
        async with DurableRuns(of_dbos, agents=[agent], look_interval=0.05) as runs:
            await runs.schedule("tick", _soon(), "a", "Tick.", queue="support")
            assert await asyncio.to_thread(taken.wait, 60)
        assert not any("Error executing workflow" in message for message in logged())
        async with DurableRuns(of_dbos, agents=[agent], queues=["support"], look_interval=0.05) as runs:
            await _made(runs, 1)
    assert len(server.requests) == 1


async def test_a_run_of_a_schedule_is_made_although_the_process_that_queues_it_is_killed(
    scene: Scene, shared_scene: Scene
) -> None:
    dies = """
        from datetime import datetime, timedelta, timezone
        from kantan_agents.durable.engines.dbos_engine import DBOSEngine

        agent = Agent("a", "Help.", model="gpt-6.1-terra", middleware=[Durable()], tool_providers=None)
        DBOSEngine.enqueue_now = lambda *_: die()

        async def first(runs):
            soon = datetime.now(timezone.utc) + timedelta(seconds=5)
            await runs.schedule("tick", soon.strftime("%S %M %H %d %m *"), "a", "Tick.", queue="support")
            await asyncio.sleep(60)
    """
    with OfflineServer(lambda request: "ok") as server:

        async def begin(one: Scene) -> None:
            await anyio.to_thread.run_sync(partial(one.run, dies, server, first=True), abandon_on_cancel=True)

        async with anyio.create_task_group() as group:  # both wait for the schedule
            group.start_soon(begin, scene)
            group.start_soon(begin, shared_scene)
        queues, agent = ["support"], _durable(server)
        for count, one in enumerate((scene, shared_scene), 1):
            async with DurableRuns(one.database, agents=[agent], queues=queues, look_interval=0.05) as runs:
                await _made(runs, 1)
            assert len(server.requests) == count


async def _made(runs: DurableRuns, count: int) -> None:
    """Wait until so many runs of the queue are finished."""
    finished: Sequence[Any] = ()
    with anyio.fail_after(120):
        while len(finished) < count:
            await anyio.sleep(0.05)
            finished = await runs.list_runs(queue="support", status="finished")


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


async def test_a_worker_without_the_agent_sets_a_run_aside(database: str) -> None:
    with OfflineServer(lambda request: "ok") as server:
        agent, other = _durable(server), _durable(server).clone(name="other")
        async with DurableRuns(database, agents=[other]):
            run_id = await other.enqueue("Hi", queue="support")
        async with DurableRuns(database, agents=[agent], queues=["support"], look_interval=0.05) as runs:
            with pytest.raises(DurableRunFailedError, match="E152"):
                await runs.result(run_id, timeout=120)
            await runs.resume(run_id)
            await asyncio.sleep(0.2)
        async with DurableRuns(database, agents=[other], queues=["support"], look_interval=0.05) as runs:
            if (await runs.get(run_id)).status == "parked":  # the first worker was quicker once more
                await runs.resume(run_id)
            assert (await runs.result(run_id, timeout=120)).output == "ok"


async def test_a_caller_that_sees_that_a_run_was_set_aside_sees_why(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_aside = StepStore.set_aside

    def slow(*arguments: Any) -> None:
        time.sleep(0.3)
        set_aside(*arguments)

    monkeypatch.setattr(StepStore, "set_aside", slow)
    with OfflineServer(lambda request: "ok") as server:
        agent, other = _durable(server), _durable(server).clone(name="other")
        async with DurableRuns(database, agents=[other]):
            run_id = await other.enqueue("Hi", queue="support")
        async with DurableRuns(database, agents=[agent], queues=["support"], look_interval=0.05) as runs:
            with pytest.raises(DurableRunFailedError, match="E152"):
                await runs.result(run_id, timeout=120)


async def test_a_process_without_agents_leaves_the_runs_to_others(database: str) -> None:
    begun = asyncio.Event()
    is_first = True

    async def wait() -> str:
        """Wait the first time."""
        nonlocal is_first
        was_first, is_first = is_first, False
        begun.set()
        await asyncio.sleep(30 if was_first else 0)
        return "done"

    with OfflineServer([[function_call("wait", {}, call_id="c1")], "ok"]) as server:
        agent = _durable(server, tools=[wait])
        runs = DurableRuns(database, agents=[agent], look_interval=0.05)
        await runs.start()
        task = asyncio.create_task(agent.run_async("Hi"))
        await begun.wait()
        await runs.stop(timeout=0.05)
        with pytest.raises(RunMovedError):
            await task
        async with DurableRuns(database, look_interval=0.05) as front:
            await asyncio.sleep(0.5)
            run = (await front.list_runs())[0]
            assert run.status in ("running", "queued")
        async with DurableRuns(database, agents=[agent], look_interval=0.05) as runs:
            assert (await runs.result(run.run_id, timeout=120)).output == "ok"


async def test_limits_are_checked_and_may_be_below_the_usual_ones(of_dbos: str) -> None:
    with pytest.raises(InvalidOptionError, match="total"):
        Limits(total=0)
    with pytest.raises(InvalidOptionError, match="period"):
        Limits(period=0)
    with OfflineServer(lambda request: "ok") as server:
        agent = _durable(server)
        queues = {"a": Limits(total=1), "b": Limits(total=2, per_tenant=3)}
        async with DurableRuns(of_dbos, agents=[agent], queues=queues, look_interval=0.05) as runs:
            for queue in queues:
                run_id = await agent.enqueue("Hi", queue=queue, tenant="acme")
                assert (await runs.result(run_id, timeout=120)).output == "ok"
            with pytest.raises(InvalidOptionError, match="dedup_key"):
                await agent.enqueue("Hi", queue="b", dedup_key="x")
