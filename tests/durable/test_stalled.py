"""Connections to the database of durable runs stall: what is sent is accepted, and nothing comes back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from kantan_agents import Agent, Durable, DurableRuns
from kantan_agents.durable import patience
from kantan_agents.durable.storage import alive
from kantan_agents.durable.storage.database import RunDatabase
from kantan_agents.errors import DurableDatabaseError
from kantan_agents.testing import OfflineServer, function_call
from kantan_agents.traces.postgres import patient_connection
from tests.durable.stalling_proxy import StallingProxy, stalling_proxy

REPLIES = [[function_call("stall", {}, call_id="c1")], "Done."]


@pytest.fixture
def proxy(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[StallingProxy]:
    monkeypatch.setattr(patience, "PATIENCE", 0.5)
    monkeypatch.setattr(patient_connection, "ANSWER_SECONDS", 0.5)
    monkeypatch.setitem(patient_connection._OPTIONS, "connect_timeout", 2)
    with stalling_proxy(postgres_url) as made:
        yield made


def _agent(server: OfflineServer, proxy: StallingProxy) -> Agent[str]:
    async def stall() -> str:
        """Stall the connections, the first time."""
        if not proxy.stalled.is_set():
            proxy.stall()
        return "stalled"

    return Agent("a", "Help.", model=server.bundle(), tools=[stall], middleware=[Durable()])


async def test_a_caller_gets_an_error_and_the_run_goes_on_when_the_database_answers(
    proxy: StallingProxy,
) -> None:
    with OfflineServer(REPLIES) as server:
        agent = _agent(server, proxy)
        async with DurableRuns(proxy.url, agents=[agent], look_interval=0.1) as runs:
            with pytest.raises(DurableDatabaseError, match=r"\[E156\]"):
                await agent.run_async("Go.")
            proxy.flows.set()
            run_id = (await runs.list_runs())[0].run_id
            assert (await runs.result(run_id, timeout=60)).output == "Done."
        assert len(server.requests) == 2


async def test_a_stalled_process_stops_and_another_one_goes_on_with_its_run(
    proxy: StallingProxy, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alive, "SILENT_SECONDS", 1.0)
    monkeypatch.setattr(patience, "PATIENCE", 600.0)  # it is stopped while it waits
    with OfflineServer(REPLIES) as server:
        agent = _agent(server, proxy)
        first = DurableRuns(proxy.url, agents=[agent], look_interval=0.1)
        await first.start()
        task = asyncio.create_task(agent.run_async("Go."))
        await asyncio.to_thread(proxy.stalled.wait)
        await first.stop(0.1)
        (ended,) = await asyncio.gather(task, return_exceptions=True)
        assert "[E15" in str(ended)
        # The proxy still has its connections, and so has the server, until it ends the one that is silent.
        async with DurableRuns(postgres_url, agents=[agent], look_interval=0.1) as second:
            run_id = (await second.list_runs())[0].run_id
            assert (await second.result(run_id, timeout=60)).output == "Done."
        proxy.flows.set()
    assert len(server.requests) == 2


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_start_that_stalls_ends(
    proxy: StallingProxy, monkeypatch: pytest.MonkeyPatch, is_cancelled: bool
) -> None:
    from dbos import DBOS

    launch = DBOS.launch

    def stalled() -> None:
        if not proxy.stalled.is_set():
            proxy.stall()
        launch()

    monkeypatch.setattr(DBOS, "launch", stalled)
    with OfflineServer(["Done."]) as server:
        agent = _agent(server, proxy)
        runs = DurableRuns(proxy.url, agents=[agent], look_interval=0.1)
        if is_cancelled:
            runs._database._limit.seconds = 600.0
        task = asyncio.create_task(runs.start())
        await asyncio.to_thread(proxy.stalled.wait)
        if is_cancelled:
            task.cancel()
        (ended,) = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(ended, asyncio.CancelledError if is_cancelled else DurableDatabaseError)
        proxy.flows.set()
        runs._database._limit.seconds = 60.0  # a busy machine is slow, too
        monkeypatch.setattr(patient_connection, "ANSWER_SECONDS", 60.0)
        monkeypatch.setitem(patient_connection._OPTIONS, "connect_timeout", 60)
        async with runs:
            assert (await agent.run_async("Go."))["result"].final_output == "Done."


async def test_a_stop_does_not_wait_for_a_tool_that_does_not_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    begun, go = threading.Event(), threading.Event()

    async def hold() -> str:
        """Hold the thread of the queued runs."""
        begun.set()
        go.wait(60)
        return "held"

    with OfflineServer([[function_call("hold", {}, call_id="c1")], "Done."]) as server:
        agent = Agent("a", "Help.", model=server.bundle(), tools=[hold], middleware=[Durable()])
        options: Any = {"agents": [agent], "queues": ["jobs"], "look_interval": 0.1}
        url = f"sqlite:///{tmp_path / 'runs.sqlite3'}"
        runs = DurableRuns(url, **options)
        await runs.start()
        run_id = await agent.enqueue("Go.", queue="jobs")
        await asyncio.to_thread(begun.wait)
        await runs.stop(0.1)
        assert "not stopped in time" in caplog.text
        go.set()
        async with DurableRuns(url, **options) as runs:  # it waits until the first one is closed
            assert (await runs.result(run_id, timeout=60)).output == "Done."


def test_waiting_for_a_notification_has_no_limit(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient_connection, "ANSWER_SECONDS", 0.0)
    with patient_connection.AnswerLimit().connect(postgres_url, autocommit=True) as connection:
        connection.execute("LISTEN channel")
        assert [*connection.notifies(timeout=0.3)] == []
        with pytest.raises(psycopg.OperationalError, match="not answered"):
            connection.execute("SELECT pg_sleep(60)")


def test_the_options_of_a_url_are_left_as_they_are() -> None:
    url = RunDatabase("postgresql://h/db?connect_timeout=50&application_name=mine").limited_url
    assert "connect_timeout=50" in url
    assert "application_name=mine" in url
    assert "tcp_user_timeout=" in url
    assert RunDatabase("sqlite:///a.db").limited_url == "sqlite:///a.db"


def test_a_pool_without_a_free_connection_is_a_database_that_is_away(tmp_path: Path) -> None:
    from sqlalchemy.exc import TimeoutError as NoConnectionError

    error = RunDatabase(f"sqlite:///{tmp_path / 'a'}").unusable(NoConnectionError("QueuePool limit"))
    assert error.is_away
