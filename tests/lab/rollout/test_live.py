"""A running process follows the state in the database, and returns to the control when a guard fires."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import Agent, TraceStore, record_traces, subscribe
from kantan_agents.core.events import RolloutChanged
from kantan_agents.errors import RolloutStepError, TraceDatabaseError
from kantan_agents.lab import history, promote, record_score, rollouts, stop
from kantan_agents.lab.experiment.database import prepare_database
from kantan_agents.lab.rollout.choice import _Creation as Creating
from kantan_agents.lab.rollout.live.process_rollouts import _KnownRollouts as Known
from kantan_agents.lab.rollout.live.watcher import _Watchers as Watching
from kantan_agents.lab.rollout.state.change import promote as promote_in
from kantan_agents.lab.rollout.state.change import stop as stop_in
from kantan_agents.testing import ModelStep, ScriptedModel
from tests.lab.rollout.trial import V1, V2, drawn, echo, rollout, shared_of, support, user
from tests.programs import Preloaded


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "traces.db"
    record_traces(path)
    return path


@pytest.fixture
def changes() -> Iterator[list[RolloutChanged]]:
    seen: list[RolloutChanged] = []
    with subscribe(lambda event: seen.append(event) if isinstance(event, RolloutChanged) else None):
        yield seen


def arms(agent: Agent[Any], units: int = 60) -> set[str]:
    """Return the arms that units have now."""
    return {drawn(agent, user(number)).metadata["arm"] for number in range(units)}


def eventually(holds: Callable[[], bool]) -> bool:
    """Wait until something holds that another thread or process does; return whether it does."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.02)
    return holds()


def said_by_rollouts(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == "kantan_agents.rollout"]


def broken(call: Any) -> Any:
    """Answer as a model that fails with the new prompt."""
    if call.system_instructions == V2.text:
        return ModelStep.raise_error(RuntimeError("broken"))
    return "fine"


async def run_users(agent: Agent[Any], numbers: range) -> None:
    for number in numbers:
        try:
            await agent.run_async("Hi", user(number))
        except RuntimeError:
            continue


async def test_a_guard_returns_all_units_to_the_control_by_itself(
    path: Path, changes: list[RolloutChanged], caplog: pytest.LogCaptureFixture
) -> None:
    agent = support(rollout(guards={"error": 0.02}), model=ScriptedModel(broken))
    assert arms(agent) == {"v1", "v2"}
    with caplog.at_level(logging.WARNING, "kantan_agents.rollout"):
        await run_users(agent, range(60))
        assert eventually(lambda: arms(agent) == {"v1"})
    returned = history("support")[-1]
    assert (returned.action, returned.author, returned.share) == ("return", "guard", 0.0)
    assert returned.reason.startswith("v2 exceeds the limit +0.02 of error")
    assert returned.evidence is not None
    assert returned.evidence["verdict"] == "stop"
    assert eventually(lambda: bool(changes))
    assert [(one.action, one.author, one.agent, one.share) for one in changes] == [
        ("return", "guard", "support", 0.0)
    ]
    (logged,) = said_by_rollouts(caplog)
    assert logged.message == "rollout returned to the control"
    assert logged.evidence == returned.evidence  # type: ignore[attr-defined]
    await agent.run_async("Hi", user(1))
    last = TraceStore(path).traces(limit=1)[0].metadata
    assert (last["arm"], last["arm_share"]) == ("v1", 1.0)


async def test_a_change_from_outside_is_followed(path: Path, changes: list[RolloutChanged]) -> None:
    agent = support(rollout(ramp=(0.0, 1)))
    own: list[RolloutChanged] = []
    assert arms(agent) == {"v1"}

    async def received(event: Any) -> None:
        if isinstance(event, RolloutChanged):
            own.append(event)

    with agent.subscribe(received):
        promote("support", path, by="Mia")
        assert eventually(lambda: arms(agent) == {"v2"})
        stop("support", path)
        assert eventually(lambda: arms(agent) == {"v1"} and len(own) == 2)
    assert [(one.action, one.arm) for one in own] == [("promote", "v2"), ("stop", None)]
    assert [one.author for one in changes] == ["Mia", "code"]


async def test_a_callback_decides_with_the_status(path: Path) -> None:
    seen: list[str] = []

    def decide(status: Any) -> str | None:
        seen.append(status.verdict)
        return "promote" if status.verdict == "promote" else None

    agent = support(rollout(metric="thumb", on_verdict=decide))
    for number in range(60):
        context = await agent.run_async("Hi", user(number))
        record_score(context, "thumb", float(context["result"].final_output == V2.text))
    assert eventually(lambda: rollouts()[0].status == "promoted")
    assert history("support")[-1].author == "callback"
    assert set(seen) <= {"continue", "promote"}
    assert eventually(lambda: arms(agent) == {"v2"})


@pytest.mark.parametrize("answer", ["stop", "raises", "nonsense"])
async def test_a_callback_may_stop_and_cannot_break_anything(
    path: Path, answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    def decide(status: Any) -> Any:
        if answer == "raises":
            raise RuntimeError("broken")
        return answer

    agent = support(rollout(on_verdict=decide))
    with caplog.at_level(logging.ERROR, "kantan_agents.rollout"):
        await run_users(agent, range(3))
        if answer == "stop":
            assert eventually(lambda: arms(agent) == {"v1"})
            assert history("support")[-1].action == "stop"
        else:
            assert eventually(lambda: bool(caplog.records))
            said = {
                "raises": "on_verdict failed",
                "nonsense": "on_verdict must return 'promote', 'stop' or None",
            }
            assert caplog.records[0].message == said[answer]
            assert arms(agent) == {"v1", "v2"}


def test_a_deleted_file_means_the_control_until_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, kept = tmp_path / "rollouts.db", tmp_path / "kept.db"
    agent = support(rollout(store=path, ramp=(0.3, 1)))
    promote("support", path)
    assert eventually(lambda: arms(agent) == {"v2"})
    with caplog.at_level(logging.ERROR, "kantan_agents.rollout"):
        path.rename(kept)
        path.mkdir()  # or the rollout would begin anew, in a new file
        assert eventually(lambda: arms(agent) == {"v1"})
        assert agent.run("Hi", user(1))["result"].final_output == V1.text  # it never breaks a run
    said = {record.message for record in said_by_rollouts(caplog)}
    assert "rollout not used, so all runs get the control" in said
    # Who looks for changes at that moment cannot read them either.
    assert said <= {"rollout not used, so all runs get the control", "changes of a rollout not read"}
    path.rmdir()
    kept.rename(path)
    assert eventually(lambda: arms(agent) == {"v2"})


@pytest.mark.parametrize("recorded", [False, True], ids=["its own file", "the file of the recorder"])
def test_a_new_file_does_not_bring_a_stopped_rollout_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, recorded: bool
) -> None:
    path = tmp_path / "rollouts.db"
    recorder = record_traces(path) if recorded else None
    agent = support(rollout(store=path, ramp=(1.0,)))
    assert arms(agent) == {"v2"}
    stop("support", path)
    if recorder is not None:
        recorder.shutdown()
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    with caplog.at_level(logging.ERROR, "kantan_agents.rollout"):
        prepare_database(path)
        said = "it no longer has the rollout 'support:v1-v2'; was the file replaced?"
        assert eventually(
            lambda: any(said in str(getattr(one, "error", "")) for one in said_by_rollouts(caplog))
        )
    assert arms(agent) == {"v1"}
    assert rollouts(path) == []


def test_a_damaged_row_means_the_control_and_is_logged_once(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    agent = support(rollout(store=path))
    with caplog.at_level(logging.ERROR, "kantan_agents.rollout"):
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("UPDATE kantan_agents_rollouts SET status = 'paused'")
        assert eventually(lambda: arms(agent) == {"v1"})
        time.sleep(1.2)  # two more looks
    said = [record.error for record in said_by_rollouts(caplog)]  # type: ignore[attr-defined]
    assert sum(str(path) in text and "is damaged" in text for text in said) == 1


def test_a_database_that_cannot_be_written_means_the_control(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "kantan_agents.rollout"):
        agent = support(rollout(store=tmp_path / "missing" / "folder" / "traces.db"))
    assert arms(agent) == {"v1"}
    said = [record.error for record in said_by_rollouts(caplog)]  # type: ignore[attr-defined]
    assert any("E60" in text and str(tmp_path) in text for text in said)


def test_a_conflict_with_the_stored_rollout_means_the_control(
    path: Path, caplog: pytest.LogCaptureFixture, preloaded: Preloaded
) -> None:
    code = (
        "from tests.lab.rollout.trial import *\n"
        f"agent = support(rollout(store={str(path)!r}, arms={{'v1': V1, 'v2': 'Be quick.'}}))\n"
    )
    finished = preloaded.run(["-c", code])
    assert finished.returncode == 0, finished.stderr
    with caplog.at_level(logging.ERROR, "kantan_agents.rollout"):
        agent = support(rollout(store=path))
    assert arms(agent) == {"v1"}
    said = [record.error for record in said_by_rollouts(caplog)]  # type: ignore[attr-defined]
    assert any("E111" in text and "it began with other arms" in text for text in said)


def test_a_rollout_that_waits_for_another_begins_when_that_is_over(path: Path, preloaded: Preloaded) -> None:
    code = (
        "from tests.lab.rollout.trial import *\n"
        f"agent = support(rollout(store={str(path)!r}, arms={{'v0': 'Be old.', 'v1': V1}}))\n"
    )
    finished = preloaded.run(["-c", code])
    assert finished.returncode == 0, finished.stderr
    agent = support(rollout(store=path))
    assert arms(agent) == {"v1"}
    promote("support", path, arm="v1")
    assert eventually(lambda: arms(agent) == {"v1", "v2"})


def test_the_thread_ends_when_no_agent_is_left(path: Path) -> None:
    key = path.resolve()
    agent = support(rollout(store=path))
    watcher = Watching.watchers[key]
    twin = support(rollout(store=path))
    assert Watching.watchers[key] is watcher
    assert watcher.is_alive
    del agent, twin
    assert eventually(lambda: gc.collect() >= 0 and not watcher.is_alive)
    assert key not in Watching.watchers
    again = support(rollout(store=path))
    assert Watching.watchers[key].is_alive
    assert again is not None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_follows_too(path: Path) -> None:
    agent = support(rollout(store=path, ramp=(0.0, 1)))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, b"ready\n")
            os.write(writing, b"yes" if eventually(lambda: arms(agent) == {"v2"}) else b"no")
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answers:
        assert answers.readline() == "ready\n"
        promote("support", path)
        assert answers.read() == "yes"
    os.waitpid(child, 0)
    assert eventually(lambda: arms(agent) == {"v2"})


async def test_a_copy_of_an_equal_rollout_shares_the_state(path: Path) -> None:
    one, other = support(rollout(ramp=(0.0, 1))), support(rollout(ramp=(0.0, 1)))
    promote("support", path)
    assert eventually(lambda: arms(one) == {"v2"} and arms(other) == {"v2"})


async def test_every_rollout_of_a_database_is_checked(path: Path) -> None:
    failing = ScriptedModel(broken)
    made = [
        Agent(f"agent {n}", rollout(guards={"error": 0.02}), model=failing if n % 2 else echo())
        for n in range(4)
    ]
    for number in range(60):
        for agent in made:
            with suppress(RuntimeError):
                await agent.run_async("Hi", user(number))
    assert eventually(lambda: [arms(agent) for agent in made] == [{"v1", "v2"}, {"v1"}] * 2)


async def test_a_handler_that_never_returns_delays_no_stop(path: Path, preloaded: Preloaded) -> None:
    agent = support(rollout(ramp=(0.0, 0.5, 1)))
    asked = threading.Event()
    test_ends = asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def hangs(event: Any) -> None:
        if isinstance(event, RolloutChanged):
            loops.append(asyncio.get_running_loop())
            asked.set()
            await test_ends.wait()

    with agent.subscribe(hangs):
        change_elsewhere(preloaded, path, "promote")
        assert eventually(asked.is_set)
        assert eventually(lambda: arms(agent) == {"v1", "v2"})
        change_elsewhere(preloaded, path, "stop")
        start = time.monotonic()
        assert eventually(lambda: arms(agent) == {"v1"})
        assert time.monotonic() - start < 10
    for loop in loops:
        loop.call_soon_threadsafe(test_ends.set)


def change_elsewhere(preloaded: Preloaded, path: Path, change: str) -> None:
    """Change the rollout as another process does."""
    code = f"from kantan_agents.lab.rollout import {change}; {change}('support', {str(path)!r})"
    finished = preloaded.run(["-c", code])
    assert finished.returncode == 0, finished.stderr


async def test_two_who_decide_about_the_same_state_make_one_step(path: Path) -> None:
    support(rollout(ramp=(0.1, 0.5, 1)))
    given: Any = {"author": "callback", "reason": "better", "revision": 1}
    assert promote_in(path, "support:v1-v2", **given).share == 0.5
    with pytest.raises(RolloutStepError, match="it has changed meanwhile"):
        promote_in(path, "support:v1-v2", **given)
    with pytest.raises(RolloutStepError, match="it has changed meanwhile"):
        stop_in(path, "support:v1-v2", **given)


async def test_a_state_read_before_a_stop_does_not_undo_it(path: Path) -> None:
    agent = support(rollout(ramp=(1.0,)))
    shared = shared_of(agent)
    before = shared.state
    stop("support")
    shared.accept(before)
    assert arms(agent) == {"v1"}


async def test_a_return_that_could_not_be_written_is_tried_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []

    def locked_first(*arguments: Any, **options: Any) -> Any:
        tries.append("stop")
        if len(tries) == 1:
            raise TraceDatabaseError(path=str(path), reason="database is locked")
        return stop_in(*arguments, **options)

    monkeypatch.setattr("kantan_agents.lab.rollout.live.check.stop", locked_first)
    agent = support(rollout(guards={"error": 0.02}), model=ScriptedModel(broken))
    await run_users(agent, range(60))
    assert eventually(lambda: arms(agent) == {"v1"})
    assert len(tries) == 2


async def test_a_damaged_row_of_another_rollout_matters_to_nobody_else(path: Path) -> None:
    agent = support(rollout(ramp=(0.0, 1)))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "INSERT INTO kantan_agents_rollouts SELECT 'other', 'x', '{}', status, step, share, arm, "
            "revision, created_at, NULL, NULL FROM kantan_agents_rollouts"
        )
    promote("support:v1-v2")
    shared_of(agent).refresh()
    assert arms(agent) == {"v2"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_the_locks_are_held_blocks_no_run(path: Path) -> None:
    agent = support(rollout(store=path))
    with Creating.creating, Known.lock:
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            arms(agent)
            support(rollout(store=path))
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
