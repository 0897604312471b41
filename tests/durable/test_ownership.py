"""A run belongs to one process, and what cannot be begun or taken over is a clear error."""

from __future__ import annotations

import asyncio
import os
import signal
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import Agent
from kantan_agents.durable import Durable, DurableRuns, Limits
from kantan_agents.durable.storage.database import RunDatabase
from kantan_agents.durable.storage.steps import StepStore
from kantan_agents.errors import (
    DurableDatabaseError,
    DurableNotStartedError,
    InvalidOptionError,
    RunMovedError,
)
from kantan_agents.testing import OfflineServer, ScriptedModel
from tests.durable.revival import call
from tests.postgres_server import url_of

_THREE = [
    [call("pay", "c1", amount=1)],
    [call("pay", "c2", amount=2)],
    [call("pay", "c3", amount=3)],
    "Done.",
]


def _agent(name: str = "a", *tools: Any, model: Any = None, **options: Any) -> Agent[Any]:
    return Agent(
        name,
        "Help.",
        model=model or ScriptedModel([]),
        tools=tools,
        tool_providers=None,
        middleware=[Durable()],
        **options,
    )


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database."""
    return f"sqlite:///{tmp_path / 'runs.sqlite3'}"


def _take(url: str, run_id: str) -> None:
    database = RunDatabase(url)
    StepStore(database).begin(run_id, uuid.uuid4().hex)
    database.close()


@pytest.mark.parametrize("streamed", [False, True])
def test_a_process_that_has_lost_its_run_makes_no_further_call(url: str, *, streamed: bool) -> None:
    effects: list[int] = []

    async def pay(amount: int) -> str:
        """Pay."""
        effects.append(amount)
        if amount == 2:
            (run,) = await runs.list_runs()
            await asyncio.to_thread(_take, url, run.run_id)
        return "paid"

    async def lose() -> None:
        async with runs:
            if streamed:
                async with agent.stream("Go.") as events:
                    async for _ in events:
                        pass
            else:
                await agent.run_async("Go.")

    with OfflineServer(_THREE) as server:
        agent = _agent("a", pay, model=server.bundle())
        runs = DurableRuns(url, agents=[agent], look_interval=60)
        with pytest.raises(RunMovedError, match=r"\[E157\] The run \w+ does not go on here: another process"):
            asyncio.run(lose())
    assert effects == [1, 2]
    assert len(server.requests) == 2


def test_a_process_that_was_stopped_finds_out_that_its_run_was_taken(scene: Any) -> None:
    code = """
    async def pay(amount: int) -> str:
        "Pay."
        effect(f"pay {amount} {FIRST}")
        if FIRST and amount == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        return "paid"

    agent = Agent("a", "Help.", model="gpt-6.1-terra", tools=[pay], middleware=[Durable()])

    async def first(runs):
        try:
            await agent.run_async("Go.")
        except Exception as error:
            print(json.dumps({"error": str(error)}))
    """
    with OfflineServer(lambda request: _THREE[_count(request)]) as server:
        program = scene.begin(code, server, first=True)
        _wait_until(lambda: _is_stopped(program.pid) and scene.effects == ["pay 1 True"])
        for lock in scene.folder.glob("runs.sqlite3.workers/*"):
            lock.unlink()  # as if the process had ended
        (ended,) = scene.run(code, server, first=False)
        os.kill(program.pid, signal.SIGCONT)
        stdout, _ = program.communicate(60)
    assert ended["output"] == "Done."
    assert "[E157]" in stdout
    assert scene.effects == ["pay 1 True", "pay 1 False", "pay 2 False", "pay 3 False"]


def _count(request: Any) -> int:
    return len([item for item in request.input if item.get("type") == "function_call_output"])


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"


def _wait_until(is_so: Callable[[], bool]) -> None:
    import time

    end = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.usefixtures("each_engine")
def test_two_processes_that_recover_at_once_make_each_run_once(scene: Any) -> None:
    code = """
    paying = []

    async def pay(amount: int) -> str:
        "Pay."
        effect(f"pay {amount} {os.getpid() if not FIRST else 'first'}")
        if FIRST:
            paying.append(amount)
            if len(paying) == 5:
                die()
            await asyncio.sleep(60)  # until all are stored and pay
        return "paid"

    agent = Agent("a", "Help.", model="gpt-6.1-terra", tools=[pay], middleware=[Durable()])

    async def first(runs):
        await asyncio.gather(*(agent.run_async("Go.") for _ in range(5)))
    """
    with OfflineServer(lambda request: _THREE[_count(request)]) as server:
        scene.run(code, server, first=True)
        begun = len(scene.effects)
        programs = [scene.begin(code, server, first=False) for _ in range(2)]
        printed = [program.communicate(60)[0] for program in programs]
    for lines in printed:
        assert lines.count('"output": "Done."') == 5, printed
    paid = [line.split()[1] for line in scene.effects[begun:]]
    assert (paid.count("2"), paid.count("3")) == (5, 5)
    assert paid.count("1") == 5


async def test_a_process_has_one_durable_runs_and_can_start_another_one_later(url: str) -> None:
    model = ScriptedModel(["one", "two", "three"])
    agent = _agent(model=model)
    runs = DurableRuns(url, agents=[agent])
    with pytest.raises(DurableNotStartedError, match=r"\[E150\] .*no DurableRuns is started"):
        await agent.run_async("Go.")
    async with runs:
        with pytest.raises(DurableNotStartedError, match=r"\[E150\] .*a process can have one DurableRuns"):
            await runs.start()
        with pytest.raises(DurableNotStartedError, match="a process can have one DurableRuns"):
            await DurableRuns(url, agents=[agent]).start()
        with pytest.raises(DurableNotStartedError, match="it is not one of the agents="):
            await _agent("b").run_async("Go.")
        with pytest.raises(DurableNotStartedError, match="or another of its name is"):
            await _agent("a").run_async("Go.")
        assert (await agent.run_async("Go."))["result"].final_output == "one"
        assert "started" in repr(runs)
    await runs.stop()  # a second time
    assert "not started" in repr(runs)
    for started in (runs, DurableRuns(url, agents=[agent])):
        async with started:
            await agent.run_async("Go.")
    assert [run.status for run in await runs.list_runs()] == ["finished"] * 3
    assert await asyncio.to_thread(str.upper, "still") == "STILL"


async def test_a_run_inside_a_run_that_is_not_durable_is_not_durable(url: str) -> None:
    inner = _agent("inner", model=ScriptedModel(["fine"]))

    async def ask() -> str:
        """Ask."""
        return str((await inner.run_async("Go."))["result"].final_output)

    outer = Agent("outer", "Help.", model=ScriptedModel([[call("ask", "c1")], "Done."]), tools=[ask])
    async with DurableRuns(url, agents=[inner]) as runs:
        assert (await outer.run_async("Go."))["result"].final_output == "Done."
        assert await runs.list_runs() == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"agents": [_agent(), _agent()]}, "has two agents of the name 'a'"),
        ({"agents": [Agent("plain", "x")]}, "'plain' has none"),
        ({"agents": ["a"]}, "'a' has none"),
        ({"queues": [""]}, "'' is no"),
        ({"queues": ["_dbos_internal_queue"]}, "'_dbos_internal_queue'"),
        ({"queues": ["kantan_agents_resumed"]}, "'kantan_agents_resumed'"),
        ({"queues": [3]}, "3 is no"),
        ({"queues": {"q": 3}}, "must map 'q' to Limits, not 3"),
        ({"application": ""}, "must be a name, not ''"),
        ({"application": " "}, "must be a name"),
        ({"application": "a\nb"}, "must be a name"),
        ({"application": 3}, "must be a name, not 3"),
        ({"max_recoveries": -1}, "max_recoveries"),
        ({"look_interval": 0}, "look_interval"),
        ({"keep_events": "yes"}, "keep_events"),
    ],
)
def test_options_are_checked(url: str, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidOptionError, match=reason.replace("(", r"\(")) as raised:
        DurableRuns(url, **options)
    assert next(iter(options)) in str(raised.value)


def test_names_of_queues_may_be_any_text(url: str) -> None:
    DurableRuns(url, queues={"support/急ぎ": Limits()}, application="店 1")


@pytest.mark.parametrize(
    ("database", "reason"),
    [
        ("sqlite://", "it must be sqlite:///PATH or postgresql://"),
        ("sqlite:///", "it is in memory"),
        ("sqlite:///:memory:", "it is in memory"),
        ("sqlite:///file:runs.sqlite3?uri=true", "it must be sqlite:///PATH"),
        ("mysql://host/name", "it must be sqlite:///PATH"),
        (3, "it must be sqlite:///PATH"),
    ],
)
def test_databases_of_other_kinds_are_refused(database: Any, reason: str) -> None:
    with pytest.raises(DurableDatabaseError, match=reason) as raised:
        DurableRuns(database)
    assert "[E156]" in str(raised.value)


async def test_a_database_that_cannot_be_used_is_a_clear_error(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.sqlite3"
    foreign.write_text("This is not a database, but a long text about one. " * 20)
    (tmp_path / "directory").mkdir()
    for database in (
        f"sqlite:///{tmp_path / 'missing' / 'runs.sqlite3'}",
        f"sqlite:///{foreign}",
        f"sqlite:///{tmp_path / 'directory'}",
        "postgresql://nobody:secret@127.0.0.1:1/runs",
    ):
        runs = DurableRuns(database, agents=[_agent()])
        for act in (runs.start, runs.list_runs):
            with pytest.raises(DurableDatabaseError, match=r"\[E156\]") as raised:
                await act()
            assert "secret" not in str(raised.value)
        await runs.stop()


async def test_a_place_that_cannot_be_locked_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "runs.sqlite3.workers").write_text("a file where the directory should be")
    runs = DurableRuns(f"sqlite:///{tmp_path / 'runs.sqlite3'}", agents=[_agent()])
    with pytest.raises(DurableDatabaseError, match=r"\[E156\]"):
        await runs.start()
    assert "not started" in repr(runs)


async def test_a_database_that_postgres_does_not_have_is_a_clear_error(postgres_server: str) -> None:
    runs = DurableRuns(url_of(postgres_server, "missing"), agents=[_agent()])
    with pytest.raises(DurableDatabaseError, match=r'\[E156\].*database "missing" does not exist'):
        await runs.start()
