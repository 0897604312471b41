"""How durable runs end other than well: cancelled, failed, parked."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from agents import MaxTurnsExceeded

from kantan_agents import Agent, Durable, DurableRuns
from kantan_agents.errors import (
    ContextTypeError,
    DurableRunFailedError,
    DurableRunNotFoundError,
    RunMovedError,
)
from kantan_agents.middleware import Approve
from kantan_agents.testing import OfflineServer, function_call
from tests.durable.conftest import Scene

_POISONED = """
async def poison() -> str:
    "Kill the process."
    effect("poison")
    if not os.path.exists(LOG + ".cured"):
        die()
    return "cured"

agent = Agent("a", "Help.", model="gpt-6.1-terra", tools=[poison], middleware=[Durable()])
OPTIONS = {"max_recoveries": 2}
"""


def _agent(server: OfflineServer, **options: Any) -> Agent[Any]:
    return Agent("a", "Help.", model=server.bundle(), middleware=[Durable()], tool_providers=None, **options)


@pytest.mark.usefixtures("each_engine")
def test_a_run_that_ends_each_process_is_parked(scene: Scene) -> None:
    with OfflineServer([[function_call("poison", {}, call_id="c1")], "Done."]) as server:
        scene.run(_POISONED, server, first=True)
        for _ in range(2):
            scene.run(_POISONED, server, first=False, dies=True)
        assert scene.effects == ["poison"] * 3
        ended = scene.run(_POISONED, server, first=False)
        assert [run["status"] for run in ended] == ["parked"]
        assert "E159" in ended[0]["error"]
        assert "runs resume" in ended[0]["error"]
        assert scene.effects == ["poison"] * 3

        (scene.folder / "log.cured").touch()
        runs = DurableRuns(scene.database)

        async def resume() -> None:
            await runs.resume(ended[0]["run_id"])
            assert (await runs.get(ended[0]["run_id"])).status == "queued"
            with pytest.raises(RunMovedError, match="it is queued"):
                await runs.resume(ended[0]["run_id"])
            await runs.stop()

        asyncio.run(resume())
        assert scene.run(_POISONED, server, first=False)[0]["output"] == "Done."


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - what it waits for happens in other threads
        await asyncio.sleep(0.01)


async def _slow() -> str:
    """Wait."""
    await asyncio.sleep(30)
    return "late"


_REPLIES = [[function_call("_slow", {}, call_id="c1")], "Done."]


@pytest.fixture
def database(tmp_path: Path) -> str:
    """A database of its own."""
    return f"sqlite:///{tmp_path / 'runs.sqlite3'}"


@pytest.mark.usefixtures("each_engine")
async def test_a_run_whose_caller_cancels_it_is_not_taken_up_again(database: str) -> None:
    with OfflineServer(_REPLIES) as server:
        agent = _agent(server, tools=[_slow])
        async with DurableRuns(database, agents=[agent], look_interval=0.05) as runs:
            task = asyncio.create_task(agent.run_async("Go."))
            await _until(lambda: len(server.requests) == 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert [run.status for run in await runs.list_runs()] == ["cancelled"]
        async with DurableRuns(database, agents=[agent], look_interval=0.05) as runs:
            await asyncio.sleep(0.3)
            run = (await runs.list_runs())[0]
            assert run.status == "cancelled"
            with pytest.raises(DurableRunFailedError, match="been cancelled"):
                await runs.result(run.run_id)
        assert len(server.requests) == 1


@pytest.mark.usefixtures("each_engine")
async def test_a_run_can_be_cancelled_from_elsewhere_and_resumed(database: str) -> None:
    calls = 0

    async def once_slow() -> str:
        """Wait the first time."""
        nonlocal calls
        calls += 1
        await asyncio.sleep(30 if calls == 1 else 0)
        return "ready"

    with OfflineServer([[function_call("once_slow", {}, call_id="c1")], "Done."]) as server:
        agent = _agent(server, tools=[once_slow])
        async with DurableRuns(database, agents=[agent], look_interval=0.05) as runs:
            task = asyncio.create_task(agent.run_async("Go."))
            await _until(lambda: calls == 1)
            other = DurableRuns(database)
            run_id = (await other.list_runs())[0].run_id
            await other.cancel(run_id)
            with pytest.raises(RunMovedError, match=r"E157.*it was cancelled"):
                await task
            await other.resume(run_id)
            await other.stop()
            assert (await runs.result(run_id, timeout=120)).output == "Done."
            with pytest.raises(RunMovedError, match="finished already"):
                await runs.cancel(run_id)
            with pytest.raises(DurableRunNotFoundError):
                await runs.cancel("nobody")
        assert calls == 2
        assert len(server.requests) == 2


@pytest.mark.usefixtures("each_engine")
async def test_the_error_of_a_run_is_what_its_caller_gets(database: str) -> None:
    with OfflineServer([{"error": "no"}, {"error": "no"}]) as server:
        agent = _agent(server)
        async with DurableRuns(database, agents=[agent]) as runs:
            with pytest.raises(ContextTypeError):
                await agent.run_async("Go.", ["no dict"])  # type: ignore[arg-type]
            assert await runs.list_runs() == []
            with pytest.raises(MaxTurnsExceeded):
                await agent.run_async("Go.", max_turns=0)
            failed = await runs.list_runs(status="failed")
            assert "Max turns" in (failed[0].error or "")
            with pytest.raises(DurableRunFailedError, match="Max turns"):
                await runs.result(failed[0].run_id)


@pytest.mark.usefixtures("each_engine")
async def test_stopping_leaves_a_run_to_the_next_start(database: str) -> None:
    calls = 0

    async def once_slow() -> str:
        """Wait the first time."""
        nonlocal calls
        calls += 1
        await asyncio.sleep(30 if calls == 1 else 0)
        return "ready"

    with OfflineServer([[function_call("once_slow", {}, call_id="c1")], "Done."]) as server:
        agent = _agent(server, tools=[once_slow])
        runs = DurableRuns(database, agents=[agent], look_interval=0.05)
        await runs.start()
        task = asyncio.create_task(agent.run_async("Go."))
        await _until(lambda: calls == 1)
        await runs.stop(timeout=0.1)
        with pytest.raises(RunMovedError, match="DurableRuns was stopped"):
            await task
        async with DurableRuns(database, agents=[agent], look_interval=0.05) as again:
            run_id = (await again.list_runs())[0].run_id
            assert (await again.result(run_id, timeout=120)).output == "Done."
    assert calls == 2


async def test_threads_of_the_event_loop_work_after_the_end(database: str) -> None:
    with OfflineServer(["Fine.", "Fine."]) as server:
        agent = _agent(server)
        for _ in range(2):
            async with DurableRuns(database, agents=[agent]):
                await agent.run_async("Go.")
            # DBOS gives the loop its own threads, and ends them.
            assert await asyncio.to_thread(lambda: "works") == "works"


@pytest.mark.usefixtures("each_engine")
async def test_only_what_has_ended_is_pruned(database: str) -> None:
    replies = ["Fine.", [function_call("pay", {}, call_id="c1")]]
    with OfflineServer(replies) as server:

        async def pay() -> str:
            """Pay."""
            return "paid"

        finished = _agent(server)
        asked = finished.clone(tools=[pay], middleware=[Approve("pay"), Durable()])
        async with DurableRuns(database, agents=[finished], keep_events=True) as runs:
            await finished.run_async("Go.")
        async with DurableRuns(database, agents=[asked]) as runs:
            await asked.run_async("Go.")
            await asyncio.sleep(0.01)
            assert [one.status for one in await runs.list_runs()] == ["waiting", "finished"]
            assert await runs.prune(older_than=timedelta(hours=1)) == 0
            assert await runs.prune(older_than=timedelta(0)) == 1
            assert [one.status for one in await runs.list_runs(status="waiting", limit=1)] == ["waiting"]
            assert len(await runs.list_runs()) == 1
    with closing(sqlite3.connect(database.removeprefix("sqlite:///"))) as connection:
        for table in ("steps", "events", "runs"):
            query = f"SELECT COUNT(DISTINCT run_id) FROM kantan_agents_durable_{table}"
            assert connection.execute(query).fetchone()[0] == (0 if table == "events" else 1), table


@pytest.mark.usefixtures("each_engine")
async def test_a_queued_run_survives_a_tool_that_exits_and_so_do_the_next_ones(database: str) -> None:
    async def leave() -> str:
        """Leave."""
        raise SystemExit(3)

    with OfflineServer([[function_call("leave", {}, call_id="c1")]] * 2 + ["Fine."]) as server:
        agent = _agent(server, tools=[leave])
        async with DurableRuns(database, agents=[agent], queues=["q"], look_interval=0.05) as runs:
            for _ in range(2):
                with pytest.raises(DurableRunFailedError, match=r"sys\.exit\(3\)"):
                    await runs.result(await agent.enqueue("Go.", queue="q"), timeout=120)
            outcome = await runs.result(await agent.enqueue("Go.", queue="q"), timeout=120)
            assert outcome.output == "Fine."


@pytest.mark.usefixtures("each_engine")
async def test_a_start_that_is_cancelled_leaves_nothing_started(database: str) -> None:
    with OfflineServer(["Fine."]) as server:
        agent = _agent(server)
        runs = DurableRuns(database, agents=[agent])
        task = asyncio.create_task(runs.start())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with DurableRuns(database, agents=[agent]):
            context = await agent.run_async("Go.")
            assert context["result"].final_output == "Fine."


@pytest.mark.usefixtures("each_engine")
async def test_a_waiting_run_can_be_cancelled(database: str) -> None:
    def pay() -> str:
        """Pay."""
        return "paid"

    with OfflineServer([[function_call("pay", {}, call_id="c1")]]) as server:
        agent = _agent(server).clone(tools=[pay], middleware=[Approve("pay"), Durable()])
        async with DurableRuns(database, agents=[agent]) as runs:
            await agent.run_async("Go.")
            run_id = (await runs.list_runs(status="waiting"))[0].run_id
            await runs.cancel(run_id)
            assert (await runs.get(run_id)).status == "cancelled"
            assert await runs.list_approvals() == []
            with pytest.raises(DurableRunFailedError, match="while it waited for people"):
                await runs.result(run_id, timeout=5)
