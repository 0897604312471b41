"""What lists of runs show, what can be resumed, and what is deleted."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import Agent
from kantan_agents.durable import Durable, DurableRuns, Limits, overseer
from kantan_agents.durable.engines.dbos_runs import SCHEDULED
from kantan_agents.durable.engines.engine import Job, resumed_queue
from kantan_agents.durable.stored_run import StoredRun
from kantan_agents.errors import ApprovalAnswerError, InvalidOptionError, RunMovedError
from kantan_agents.middleware import Approve
from kantan_agents.testing import OfflineServer, RecordedRequest, function_call
from tests.durable.conftest import use_engine
from tests.durable.revival import opened, results


def _reply(request: RecordedRequest) -> Any:
    if request.headers.get("x-none") or "plain" in str(request.input):
        return "Done."
    return "Done." if results(request) else [function_call("pay", {"amount": 3}, call_id="c1")]


def _made(url: str, use: Callable[[DurableRuns, Agent[Any]], Awaitable[None]], **options: Any) -> None:
    async def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    async def make(server: OfflineServer) -> None:
        agent = Agent(
            "asker",
            "Help.",
            model=server.bundle(),
            tools=[pay],
            middleware=[Approve("pay"), Durable()],
            tool_providers=None,
        )
        async with DurableRuns(url, agents=[agent], look_interval=0.05, **options) as runs:
            await use(runs, agent)

    with OfflineServer(_reply) as server:
        asyncio.run(make(server))


async def _until(holds: Callable[[], Awaitable[Any]]) -> None:
    while not await holds():  # noqa: ASYNC110 - what it waits for happens in other threads
        await asyncio.sleep(0.02)


async def _is_in(caplog: pytest.LogCaptureFixture, text: str) -> bool:
    return text in caplog.text


@pytest.fixture
def file_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'runs.sqlite3'}"


@pytest.fixture(params=["file_url", "postgres_url", "temporal"])
def any_url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file and a Postgres database with DBOS, and one with Temporal."""
    if request.param == "temporal":
        use_engine(monkeypatch, request.getfixturevalue("temporal"))
        return str(request.getfixturevalue("postgres_url"))
    return str(request.getfixturevalue(request.param))


def test_a_run_that_is_cancelled_while_it_waits_can_wait_again(any_url: str) -> None:
    async def use(runs: DurableRuns, agent: Agent[Any]) -> None:
        await agent.run_async("Pay.")
        [run] = await runs.list_runs(status="waiting")
        await runs.cancel(run.run_id)
        assert [one.run_id for one in await runs.list_runs(status="cancelled")] == [run.run_id]
        assert await runs.list_runs(status="waiting") == await runs.list_runs(status="finished") == []
        assert await runs.list_approvals(answered=True) == []
        assert await runs.next_run(run.run_id) is None
        with pytest.raises(ApprovalAnswerError, match="no call of this id waits"):
            await runs.approve(run.run_id, "c1", by="aiko")
        with pytest.raises(RunMovedError, match="it has been cancelled already"):
            await runs.cancel(run.run_id)
        await runs.resume(run.run_id)
        assert [one.run_id for one in await runs.list_runs(status="waiting")] == [run.run_id]
        with pytest.raises(RunMovedError, match="it is waiting; only"):
            await runs.resume(run.run_id)
        await runs.approve(run.run_id, by="aiko")
        assert (await runs.result(run.run_id, timeout=120)).output == "Done."

    _made(any_url, use)


@pytest.mark.parametrize("limit", [0, -1, "3"])
async def test_a_limit_is_a_number_from_1(limit: Any, file_url: str) -> None:
    with pytest.raises(InvalidOptionError, match="Invalid option limit"):
        await DurableRuns(file_url).list_runs(limit=limit)


@pytest.mark.usefixtures("each_engine")
def test_an_approved_run_that_cannot_be_read_here_is_parked(file_url: str) -> None:
    async def use(runs: DurableRuns, agent: Agent[Any]) -> None:
        await agent.run_async("Pay.")
        [run] = await runs.list_runs(status="waiting")
        with opened(file_url) as connection:  # as if another version of the SDK had written it
            connection.execute("UPDATE kantan_agents_durable_waiting SET state = 'other'")
        await runs.approve(run.run_id, by="aiko")
        await _until(lambda: runs.list_runs(status="parked"))
        [parked] = await runs.list_runs(status="parked")
        assert "[E155]" in (parked.error or "")
        assert "[E85]" in (parked.error or "")
        assert await runs.list_runs(status="failed") == []
        assert await runs.prune(older_than=timedelta(0)) == 0  # also the run that has waited is needed
        await runs.cancel(parked.run_id)
        assert [one.run_id for one in await runs.list_runs(status="cancelled")] == [parked.run_id]
        assert await runs.prune(older_than=timedelta(0)) == 1
        assert await runs.prune(older_than=timedelta(0)) == 1

    _made(file_url, use)


@pytest.mark.usefixtures("each_engine")
def test_a_limit_counts_the_runs_of_the_status(file_url: str) -> None:
    async def use(runs: DurableRuns, agent: Agent[Any]) -> None:
        await agent.run_async("plain")
        for _ in range(3):
            await agent.run_async("Pay.")
        newest, _, oldest = await runs.list_runs(status="waiting")
        await runs.cancel(oldest.run_id)
        counted = {
            status: len(await runs.list_runs(status=status, limit=1))
            for status in ("finished", "waiting", "cancelled", "failed", "parked", "queued", "running")
        }
        assert counted == {
            "finished": 1,
            "waiting": 1,
            "cancelled": 1,
            "failed": 0,
            "parked": 0,
            "queued": 0,
            "running": 0,
        }
        assert [run.run_id for run in await runs.list_runs(status="waiting", limit=1)] == [newest.run_id]
        assert len(await runs.list_runs()) == 4
        assert await runs.list_runs(status="waiting", queue="other") == []

    _made(file_url, use)


def test_what_a_schedule_has_queued_is_deleted_with_its_firings(file_url: str) -> None:
    async def use(runs: DurableRuns, agent: Agent[Any]) -> None:
        await runs.schedule("often", "* * * * * *", agent.name, "plain", queue="jobs")
        client = runs._engine._client()  # type: ignore[attr-defined]

        def firings() -> int:
            return len(client.list_workflows(name=SCHEDULED, load_output=False))

        await _until(lambda: runs.list_runs(status="finished"))
        await runs.unschedule("often")
        assert await asyncio.to_thread(firings) > 0

        async def are_gone() -> bool:
            await runs.prune(older_than=timedelta(0))
            return not await asyncio.to_thread(firings) and not await runs.list_runs()

        await _until(are_gone)  # one may just be ending, or have queued a run
        with opened(file_url) as connection:
            assert connection.execute("SELECT COUNT(*) FROM workflow_input").fetchone() == (0,)

    _made(file_url, use, queues={"jobs": Limits()})


def test_runs_of_an_agent_that_no_process_has_are_named(
    file_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(overseer, "_LOOKS_FOR_AGENTS", 1)

    async def use(runs: DurableRuns, _agent: Agent[Any]) -> None:
        stored = StoredRun(agent="old_name", input="plain").to_json()
        client = runs._engine._client()  # type: ignore[attr-defined]
        queue = resumed_queue("old_name")
        await asyncio.to_thread(lambda: client.register_queue(queue))  # as a process with the agent does
        run_id = await runs.enqueue(Job("0" * 32, stored, queue))
        with caplog.at_level("WARNING", logger="kantan_agents"):
            await _until(lambda: _is_in(caplog, "durable runs wait for an agent that is not here"))
        assert {getattr(record, "agent", "") for record in caplog.records} == {"old_name"}
        run = await runs.get(run_id)
        assert (run.status, run.error) == ("queued", "it waits for a process that has the agent 'old_name'")

    _made(file_url, use)


def test_a_run_that_is_cancelled_while_its_last_answer_is_read_stays_cancelled(any_url: str) -> None:
    async def use(runs: DurableRuns, agent: Agent[Any]) -> None:
        await agent.run_async("Go.", {})
        (run,) = await runs.list_runs()
        queue = runs._engine.enqueue_now
        queued: list[str] = []

        one_at_a_time = threading.Lock()  # the overseer may find the answer in the same moment

        def cancel_and_queue(job: Job) -> str:
            with one_at_a_time:
                if not queued:
                    queued.append(job.run_id)
                    assert runs._approvals.close(run.run_id)
            return queue(job)

        runs._engine.enqueue_now = cancel_and_queue  # type: ignore[method-assign]
        await runs.approve(run.run_id, by="ann")
        await _until(lambda: runs.list_runs(status="cancelled"))
        assert [one.run_id for one in await runs.list_runs(status="cancelled")] == queued
        await runs.resume(queued[0])
        assert (await runs.result(run.run_id, timeout=120)).output == "Done."

    _made(any_url, use)
