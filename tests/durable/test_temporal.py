"""What is particular to Temporal: what it learns, what it orders, what is ended or forgotten there."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError
from temporalio.service import RPCError

from kantan_agents import Agent, Durable, DurableRuns
from kantan_agents.durable import Limits
from kantan_agents.durable.engines import temporal_engine
from kantan_agents.durable.engines.jobs import Schedule
from kantan_agents.durable.storage import ownership
from kantan_agents.durable.storage.database import RunDatabase
from kantan_agents.errors import DurableDatabaseError, DurableRunFailedError, InvalidOptionError
from kantan_agents.testing import OfflineServer, ScriptedModel, function_call
from tests.durable.conftest import Scene, use_engine
from tests.temporal_server import OwnTemporal


@pytest.fixture
def database(tmp_path: Path) -> str:
    """A file."""
    return f"sqlite:///{tmp_path / 'runs.sqlite3'}"


def _agent(model: Any = None, *tools: Any) -> Agent[Any]:
    return Agent(
        "a",
        "Help.",
        model=model or ScriptedModel([]),
        middleware=[Durable()],
        tool_providers=None,
        tools=tools,
    )


async def _client(url: str) -> Client:
    return await Client.connect(url.split("/")[2])


async def _until(holds: Callable[[], Awaitable[Any]]) -> None:
    with anyio.fail_after(60):
        while not await holds():  # noqa: ASYNC110 - it happens in other threads and on a server
            await anyio.sleep(0.02)


async def test_it_learns_ids_and_names_but_no_contents(database: str, temporal: str) -> None:
    client = await _client(temporal)
    with OfflineServer(lambda request: "A secret answer.") as server:
        agent = _agent(server.bundle())
        async with DurableRuns(database, agents=[agent], queues=["q"], engine=temporal) as runs:
            run_id = await agent.enqueue("A secret question.", {"key": "secret"}, queue="q", priority=2)
            failing = await agent.enqueue("A secret question.", queue="q", max_turns=0)
            assert (await runs.result(run_id, timeout=20)).output == "A secret answer."
            assert await client.get_workflow_handle(run_id).result() == "finished"
            with pytest.raises(WorkflowFailureError) as raised:
                await client.get_workflow_handle(failing).result()
    failure: Any = raised.value.cause
    assert f"`kantan-agents runs show {failing}` says why" in str(failure.cause)
    for one in (run_id, failing):
        history = await client.get_workflow_handle(one).fetch_history()
        stored = b"".join(event.SerializeToString() for event in history.events)
        assert one.encode() in stored
        assert b"secret" not in stored


async def test_a_run_that_is_cancelled_there_is_cancelled(database: str, temporal: str) -> None:
    begun = asyncio.Event()

    async def wait() -> str:
        """Wait."""
        begun.set()
        await asyncio.sleep(60)
        return ""

    client = await _client(temporal)
    with OfflineServer([[function_call("wait", {}, call_id="c1")], "Done."]) as server:
        agent = _agent(server.bundle(), wait)
        async with DurableRuns(database, agents=[agent], queues=["q"], engine=temporal) as runs:
            run_id = await agent.enqueue("Go.", queue="q")
            while not begun.is_set():  # noqa: ASYNC110 - it is set on another loop
                await asyncio.sleep(0.02)
            await client.get_workflow_handle(run_id).cancel()
            with pytest.raises(DurableRunFailedError, match="been cancelled"):
                await runs.result(run_id, timeout=30)
            handle = client.get_workflow_handle(run_id)

            async def is_cancelled() -> bool:
                return (await handle.describe()).status == WorkflowExecutionStatus.CANCELED

            await _until(is_cancelled)
            await runs.resume(run_id)
            assert (await runs.get(run_id)).status in ("queued", "running")


async def test_a_run_that_is_ended_there_while_it_is_made_goes_on(database: str, temporal: str) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        """Wait."""
        begun.set()
        while not may_end.is_set():  # noqa: ASYNC110 - it is set on another loop
            await asyncio.sleep(0.02)
        return ""

    client = await _client(temporal)
    with OfflineServer([[function_call("wait", {}, call_id="c1")], "Done."]) as server:
        agent = _agent(server.bundle(), wait)
        async with DurableRuns(database, agents=[agent], queues=["q"], engine=temporal) as runs:
            run_id = await agent.enqueue("Go.", queue="q")
            while not begun.is_set():  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.02)
            await client.get_workflow_handle(run_id).terminate()
            await asyncio.sleep(4)  # until the worker knows it
            may_end.set()
            assert (await runs.result(run_id, timeout=30)).output == "Done."
    assert len(server.requests) == 2


def test_a_run_that_a_killed_process_was_given_is_given_to_another_one(
    scene: Scene, temporal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_engine(monkeypatch, temporal)
    code = """
    from kantan_agents.durable.engines.temporal_engine import TemporalEngine

    agent = Agent("a", "Help.", model="gpt-6.1-terra", middleware=[Durable()], tool_providers=None)
    OPTIONS = {"queues": ["q"]}

    async def taken(*_):
        die()

    if FIRST:
        TemporalEngine._make = taken

    async def first(runs):
        await agent.enqueue("Go.", queue="q")
        await asyncio.sleep(60)
    """
    with OfflineServer(["Done."]) as server:
        assert scene.killed(code, server)["output"] == "Done."


async def test_what_is_ended_there_before_it_is_made_is_cancelled_and_what_it_forgets_is_made(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(temporal_engine, "_CHECK_SECONDS", 0.1)
    server = OwnTemporal()
    try:
        with OfflineServer(["Done."]) as model:
            agent = _agent(model.bundle())
            async with DurableRuns(database, agents=[agent], engine=server.url, look_interval=0.05) as runs:
                ended, forgotten = [await agent.enqueue("Go.", queue="q") for _ in range(2)]
                client = await _client(server.url)

                async def is_ended() -> bool:
                    try:
                        await client.get_workflow_handle(ended).terminate()
                    except RPCError:  # Temporal does not know it yet
                        return False
                    return True

                async def is_cancelled() -> bool:
                    return (await runs.get(ended)).status == "cancelled"

                await _until(is_ended)
                await _until(is_cancelled)
                assert (await runs.get(forgotten)).status == "queued"
            server.stop()
            server.start()
            given: dict[str, Any] = {"engine": server.url, "look_interval": 0.05}
            async with DurableRuns(database, agents=[agent], queues=["q"], **given) as runs:
                assert (await runs.result(forgotten, timeout=60)).output == "Done."
    finally:
        server.stop()


async def test_runs_are_queued_and_begun_while_it_is_away(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = OwnTemporal()
    try:
        with OfflineServer(lambda request: "Done.") as model:
            agent = _agent(model.bundle())
            given: dict[str, Any] = {"engine": server.url, "queues": ["q"], "look_interval": 0.05}
            async with DurableRuns(database, agents=[agent], **given) as runs:
                server.stop()
                assert (await agent.run_async("Go."))["result"].final_output == "Done."
                run_id = await agent.enqueue("Go.", queue="q")
                assert (await runs.get(run_id)).status == "queued"

                async def is_logged() -> bool:
                    return "not handed over, trying again" in caplog.text

                with caplog.at_level("WARNING", logger="kantan_agents"):
                    await _until(is_logged)
                server.start()
                assert (await runs.result(run_id, timeout=60)).output == "Done."
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("engine", "reason"),
    [
        ("restate", "must be 'dbos' or temporal://HOST:PORT/NAMESPACE"),
        (None, "must be 'dbos' or"),
        ("temporal://user:key@host:7233", "TEMPORAL_API_KEY"),
        ("temporal://host:7233/a/b", "must be temporal://HOST:PORT/NAMESPACE;"),
        ("temporal://host?api_key=key", "must be temporal://HOST:PORT/NAMESPACE;"),
        ("temporal://[::1", "must be temporal://HOST:PORT/NAMESPACE;"),
        ("temporal://host:port", "must be temporal://HOST:PORT/NAMESPACE;"),
    ],
)
def test_engines_are_checked(database: str, engine: Any, reason: str) -> None:
    with pytest.raises(InvalidOptionError, match="Invalid option engine") as raised:
        DurableRuns(database, engine=engine)
    assert reason in str(raised.value)
    assert "key@" not in str(raised.value)


@pytest.mark.parametrize("limits", [Limits(total=3), Limits(per_tenant=1), Limits(tenant_rate=1)])
def test_limits_that_it_does_not_have_are_refused(database: str, limits: Limits) -> None:
    with pytest.raises(InvalidOptionError, match="which Temporal does not have"):
        DurableRuns(database, queues={"q": limits}, engine="temporal://")


async def test_a_server_that_is_not_there_is_a_clear_error(database: str) -> None:
    runs = DurableRuns(database, agents=[_agent()], engine="temporal://127.0.0.1:1/default")
    with pytest.raises(DurableDatabaseError, match=r"\[E156\] Cannot use temporal://127.0.0.1:1/default"):
        await runs.start()
    assert "not started" in repr(runs)


async def test_a_database_has_one_engine(tmp_path: Path, temporal: str) -> None:
    agent = _agent(ScriptedModel(["Done."]))
    of_dbos, of_temporal = (f"sqlite:///{tmp_path / name}.sqlite3" for name in ("dbos", "temporal"))
    async with DurableRuns(of_dbos, agents=[agent]):
        await agent.run_async("Go.")
    assert await DurableRuns(of_temporal, engine="temporal://").list_runs() == []
    named = "'temporal://HOST:PORT/NAMESPACE'"
    for database, engine, other in ((of_dbos, temporal, "'dbos'"), (of_temporal, "dbos", named)):
        runs = DurableRuns(database, agents=[agent], engine=engine)
        for act in (runs.start, runs.list_runs):
            with pytest.raises(DurableDatabaseError, match=f"another engine: give engine={other}"):
                await act()
        await runs.stop()


def _broken_once(runs: DurableRuns, method: str, *, before: bool) -> None:
    """Let a statement fail once as if the database were away, before or after it is committed."""
    engine: Any = runs._engine
    usual, failures = getattr(engine, method), 1

    def broken(*arguments: Any, **options: Any) -> Any:
        nonlocal failures
        failures -= 1
        found = None if before and failures == 0 else usual(*arguments, **options)
        if failures == 0:
            error = DurableDatabaseError(database="x", reason="away")
            error.is_away = True
            raise error
        return found

    setattr(engine, method, broken)


@pytest.mark.parametrize(("method", "before"), [("end", True), ("end", False), ("claim", False)])
async def test_a_statement_that_fails_once_leaves_no_run_behind(
    database: str, temporal: str, method: str, *, before: bool
) -> None:
    with OfflineServer(lambda request: "Done.") as server:
        agent = _agent(server.bundle())
        given: dict[str, Any] = {"engine": temporal, "queues": ["q"], "look_interval": 0.05}
        async with DurableRuns(database, agents=[agent], **given) as runs:
            _broken_once(runs, method, before=before)
            run_id = await agent.enqueue("Go.", queue="q")
            assert (await runs.result(run_id, timeout=30)).output == "Done."
            handle = (await _client(temporal)).get_workflow_handle(run_id)
            with anyio.fail_after(60):
                assert await handle.result() in ("finished", "moved")
        assert len(server.requests) == 1


async def test_the_same_object_goes_on_with_what_its_stop_has_left(database: str, temporal: str) -> None:
    begun = threading.Event()

    async def slow() -> str:
        """Wait the first time."""
        if not begun.is_set():
            begun.set()
            await asyncio.sleep(60)
        return "ready"

    with OfflineServer([[function_call("slow", {}, call_id="c1")], "Done."]) as server:
        agent = _agent(server.bundle(), slow)
        runs = DurableRuns(database, agents=[agent], queues=["q"], engine=temporal, look_interval=0.05)
        await runs.start()
        run_id = await agent.enqueue("Go.", queue="q")

        async def is_begun() -> bool:
            return begun.is_set()

        await _until(is_begun)
        await runs.stop(timeout=0.1)
        async with runs:
            assert (await runs.result(run_id, timeout=30)).output == "Done."


async def test_a_run_that_is_cancelled_while_it_is_stored_is_cancelled(database: str, temporal: str) -> None:
    reached, goes_on = threading.Event(), threading.Event()
    agent = _agent()
    async with DurableRuns(database, agents=[agent], engine=temporal) as runs:
        engine: Any = runs._engine
        usual = engine.begin

        def slow(*arguments: Any) -> None:
            reached.set()
            goes_on.wait(30)
            usual(*arguments)

        engine.begin = slow
        task = asyncio.create_task(agent.run_async("Go."))

        async def is_reached() -> bool:
            return reached.is_set()

        await _until(is_reached)
        task.cancel()
        await asyncio.sleep(0)
        goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [run.status for run in await runs.list_runs()] == ["cancelled"]


async def test_as_many_calls_block_a_thread_as_the_queue_allows(database: str, temporal: str) -> None:
    count = 40  # more threads than an event loop has
    together, met = threading.Barrier(count), list[int]()

    def meet() -> str:
        """Wait for all."""
        together.wait(60)
        met.append(1)
        return "met"

    def answer(request: Any) -> Any:
        is_first = "function_call_output" not in str(request)
        return [function_call("meet", {}, call_id="c1")] if is_first else "Done."

    with OfflineServer(answer) as server:
        agent = _agent(server.bundle(), meet)
        queues = {"q": Limits(concurrency=count)}
        async with DurableRuns(database, agents=[agent], queues=queues, engine=temporal) as runs:
            ids = [await agent.enqueue("Go.", queue="q") for _ in range(count)]
            for run_id in ids:
                assert (await runs.result(run_id, timeout=90)).output == "Done."
    assert len(met) == count


async def test_databases_with_one_schedule_share_a_namespace(tmp_path: Path, temporal: str) -> None:
    found, at = [], time.time() + 3_600
    for name in ("one", "two"):
        runs = DurableRuns(f"sqlite:///{tmp_path / name}.sqlite3", agents=[_agent()], engine=temporal)
        async with runs:
            engine: Any = runs._engine
            await engine._fire_one(Schedule("s", "0 9 * * *", None, "q", "{}", at), at)
            found += [run.run_id for run in await runs.list_runs()]
    assert len(set(found)) == 2


async def test_a_schedule_that_cannot_be_read_here_keeps_no_other_one_waiting(
    database: str, temporal: str
) -> None:
    agent = _agent()
    async with DurableRuns(database, agents=[agent], engine=temporal, look_interval=100.0) as runs:
        engine: Any = runs._engine
        now, _ = engine.due()
        for name, zone in (("bad", "Moon/Crater"), ("good", None)):
            engine.keep_schedule(Schedule(name, "0 9 * * *", zone, name, "{}", now - 1.0))

        async def is_queued() -> bool:
            return bool(await runs.list_runs(queue="good"))

        await _until(is_queued)  # also although this process looks rarely for what others have left


async def test_a_database_in_which_runs_of_dbos_only_wait_is_refused(database: str, temporal: str) -> None:
    agent = _agent()
    async with DurableRuns(database, agents=[agent]):
        pass
    with pytest.raises(DurableDatabaseError, match="another engine: give engine='dbos'"):
        await DurableRuns(database, agents=[agent], engine=temporal).list_runs()


async def test_a_very_long_delay_keeps_no_other_run_waiting(database: str, temporal: str) -> None:
    with OfflineServer(["Done."]) as server:
        agent = _agent(server.bundle())
        async with DurableRuns(database, agents=[agent], queues=["q"], engine=temporal) as runs:
            await agent.enqueue("Go.", queue="q", delay=1e15)
            run_id = await agent.enqueue("Go.", queue="q")
            assert (await runs.result(run_id, timeout=30)).output == "Done."


async def test_a_key_in_a_damaged_configuration_is_not_shown(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "temporal.toml"
    file.write_text('[profile.default]\napi_key = "very-secret\n')
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(file))
    runs = DurableRuns(database, agents=[_agent()], engine="temporal://")
    with pytest.raises(DurableDatabaseError, match=r"configuration cannot be read: .*line 2") as raised:
        await runs.start()
    assert "very-secret" not in str(raised.value)
    assert raised.value.__context__ is None


async def test_a_server_that_does_not_answer_is_named(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(temporal_engine, "_START_SECONDS", 0.5)
    monkeypatch.setattr(temporal_engine, "_STOP_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"temporal://127.0.0.1:{silent.getsockname()[1]}"
        runs = DurableRuns(database, agents=[_agent()], engine=url)
        with pytest.raises(DurableDatabaseError, match=r"reached: it has not answered in 0\.5 seconds"):
            await runs.start()


async def test_the_usual_port_may_be_left_out(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def opened(address: str, *_: str) -> None:
        asked.append(address)
        raise OSError("not here")

    monkeypatch.setattr("kantan_agents.durable.engines.temporal_work.Connection.open", opened)
    for host in ("localhost", "[::1]", "localhost:1"):
        with pytest.raises(DurableDatabaseError):
            await DurableRuns(database, agents=[_agent()], engine=f"temporal://{host}/n").start()
    assert asked == ["localhost:7233", "[::1]:7233", "localhost:1"]


def test_two_processes_that_open_a_new_file_at_once_agree_on_its_number(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (RunDatabase(database, "temporal") for _ in range(2))
    numbers = iter(("1", "2"))

    def token(_size: int) -> str:
        number = next(numbers)
        if number == "1":
            second.open()
        return number

    monkeypatch.setattr(ownership, "secrets", SimpleNamespace(token_hex=token))
    first.open()
    assert first.identity() == second.identity() == "temporal/2"
    first.close()
    second.close()


async def test_a_cancelled_start_does_not_wait_for_a_server_that_says_nothing(
    database: str, temporal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_asked = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def silent(*_: str) -> None:
        loop.call_soon_threadsafe(is_asked.set)
        await asyncio.sleep(600)

    agent = _agent(ScriptedModel(["Done."]))
    with monkeypatch.context() as patched:
        patched.setattr(temporal_engine, "_START_SECONDS", 600.0)
        patched.setattr("kantan_agents.durable.engines.temporal_work.Connection.open", silent)
        task = asyncio.create_task(DurableRuns(database, agents=[agent], engine=temporal).start())
        await is_asked.wait()
        task.cancel()
        await asyncio.wait({task}, timeout=60)
        assert task.cancelled()
    async with DurableRuns(database, agents=[agent], engine=temporal):
        assert (await agent.run_async("Go."))["result"].final_output == "Done."


async def test_an_idle_process_asks_the_database_one_question_at_each_look(
    database: str, temporal: str
) -> None:
    async with DurableRuns(database, agents=[_agent()], engine=temporal, look_interval=0.02) as runs:
        engine: Any = runs._engine
        usual, asked = engine._execute, []

        def noted(statement: str, **values: Any) -> Any:
            if threading.current_thread().name.startswith("kantan-agents-temporal"):
                asked.append(statement)
            return usual(statement, **values)

        engine._execute = noted

        async def has_looked() -> bool:
            return len(asked) > 4

        await _until(has_looked)
        assert len({*asked}) == 1
