"""The database of durable runs is away for a while."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kantan_agents import Agent, Durable, DurableRuns
from kantan_agents.durable import patience
from kantan_agents.durable.storage import database
from kantan_agents.durable.storage.database import RunDatabase
from kantan_agents.durable.storage.steps import StepStore
from kantan_agents.errors import DurableDatabaseError
from kantan_agents.testing import OfflineServer, function_call
from tests.postgres_server import OwnServer, execute, own_server

REPLIES = [[function_call("stop_the_server", {}, call_id="c1")], "Done."]


def _agent(server: OfflineServer, postgres: OwnServer, called: asyncio.Event) -> Agent[str]:
    async def stop_the_server() -> str:
        """Stop the server that the run is stored in, the first time."""
        if not called.is_set():
            await asyncio.to_thread(postgres.stop)
            called.set()
        return "stopped"

    return Agent("a", "Help.", model=server.bundle(), tools=[stop_the_server], middleware=[Durable()])


async def test_a_run_waits_until_the_server_is_back() -> None:
    called = asyncio.Event()
    with own_server() as postgres, OfflineServer(REPLIES) as server:
        agent = _agent(server, postgres, called)
        async with DurableRuns(postgres.url, agents=[agent], look_interval=0.1) as runs:
            task = asyncio.create_task(agent.run_async("Go."))
            await called.wait()
            await asyncio.sleep(0.5)
            assert not task.done()
            await asyncio.to_thread(postgres.start)
            context = await task
            assert context["result"].final_output == "Done."
            assert [one.status for one in await runs.list_runs()] == ["finished"]
    assert len(server.requests) == 2


async def test_a_run_goes_on_later_if_the_server_stays_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE", 0.3)

    called = asyncio.Event()
    with own_server() as postgres, OfflineServer(REPLIES) as server:
        agent = _agent(server, postgres, called)
        async with DurableRuns(postgres.url, agents=[agent], look_interval=0.1) as runs:
            with pytest.raises(DurableDatabaseError, match="E156"):
                await agent.run_async("Go.")
            await asyncio.to_thread(postgres.start)
            run_id = (await runs.list_runs())[0].run_id
            assert (await runs.result(run_id, timeout=120)).output == "Done."
        assert len(server.requests) == 2


async def test_a_run_that_begins_meanwhile_waits_too() -> None:
    with own_server() as postgres, OfflineServer(["Fine."]) as server:
        agent = Agent("a", "Help.", model=server.bundle(), middleware=[Durable()])
        async with DurableRuns(postgres.url, agents=[agent], look_interval=0.1):
            await asyncio.to_thread(postgres.stop)
            task = asyncio.create_task(agent.run_async("Go."))
            await asyncio.sleep(0.5)
            assert not task.done()
            await asyncio.to_thread(postgres.start)
            assert (await task)["result"].final_output == "Fine."


async def test_who_waits_for_a_run_waits_until_the_server_is_back() -> None:
    with own_server() as postgres, OfflineServer(["Fine."]) as server:
        agent = Agent("a", "Help.", model=server.bundle(), middleware=[Durable()])
        async with DurableRuns(postgres.url, agents=[agent], queues=["jobs"], look_interval=0.1) as runs:
            run_id = await agent.enqueue("Go.", queue="jobs", delay=1)
            waiting = asyncio.create_task(runs.result(run_id))
            await asyncio.to_thread(postgres.stop)
            await asyncio.sleep(0.3)
            assert not waiting.done()
            await asyncio.to_thread(postgres.start)
            assert (await waiting).output == "Fine."


def test_a_process_that_is_stopped_in_a_transaction_holds_up_the_others_for_a_while(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (database._BUSY_SECONDS, database._IDLE_SECONDS) == (30, 60)
    stopped, other = RunDatabase(postgres_url), RunDatabase(postgres_url)
    other.open()
    monkeypatch.setattr(database, "_IDLE_SECONDS", 0.05)
    with pytest.raises(DurableDatabaseError, match="idle-in-transaction"), stopped.write() as connection:
        StepStore(other).begin("r", "e")
        connection.exec_driver_sql("UPDATE kantan_agents_durable_runs SET attempt = 5")
        StepStore(other).begin("r", "e")  # it would wait for its lock in vain
        connection.exec_driver_sql("SELECT 1")
    stopped.close()
    other.close()


def test_a_connection_that_a_thread_uses_while_the_others_are_closed_is_closed_after_it(
    postgres_url: str,
) -> None:
    runs = RunDatabase(postgres_url)
    runs.open()
    engine = runs._connected()
    with runs.read() as used:
        taken = used.connection.driver_connection
        runs.close()
    with engine.connect() as late:  # a thread that was about to take one
        taken_late = late.connection.driver_connection
    assert taken is not None
    assert taken.closed
    assert taken_late is not None
    assert taken_late.closed


async def test_a_process_has_a_bounded_number_of_connections(postgres_url: str) -> None:
    with OfflineServer(lambda _: "Fine.") as server:
        agent = Agent("a", "Help.", model=server.bundle(), middleware=[Durable()])
        async with DurableRuns(postgres_url, agents=[agent], queues=["jobs"], look_interval=0.1) as runs:
            ids = [await agent.enqueue("Go.", queue="jobs") for _ in range(20)]
            begun = asyncio.gather(*(agent.run_async("Go.") for _ in range(40)))
            counts = []
            while not begun.done():
                rows = await asyncio.to_thread(execute, postgres_url, _CONNECTIONS)
                counts.append(rows[0][0])
            await begun
            for run_id in ids:
                await runs.result(run_id, timeout=60)
    assert 10 < max(counts) <= 36


_CONNECTIONS = (
    "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


def test_a_file_that_cannot_be_made_is_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(DurableDatabaseError, match="E156"):
        asyncio.run(DurableRuns(f"sqlite:///{tmp_path / 'missing' / 'runs.sqlite3'}").list_runs())
