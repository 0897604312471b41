"""Many processes and threads that share a database, one of which promotes."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.errors import RolloutStepError
from kantan_agents.lab import history, promote, rollouts, stop
from kantan_agents.lab.experiment.database import prepare_database
from tests.lab.rollout.trial import rollout, support
from tests.programs import Preloaded, Program

# Each process draws all the time in 8 threads, until all units have the new arm. It reports what it has seen.
_WORKER = """
import json, sys, threading, time
from tests.lab.rollout.trial import rollout, support, user
agent = support(rollout(store=sys.argv[1], ramp=(0.2, 0.4, 0.6, 0.8, 1)))
print("ready", flush=True)
ordered, problems = [], []
def draw(first):
    arms = {}
    while not stopped.is_set():
        for number in range(first, first + 25):
            chosen = agent._choose("", user(number)).metadata
            if "rollout_not_drawn" in chosen:
                problems.append(chosen["rollout_not_drawn"])
            seen = arms.setdefault(number, [chosen["arm"]])
            if seen[-1] != chosen["arm"]:
                seen.append(chosen["arm"])
        time.sleep(0.01)
    ordered.append({n: seen for n, seen in arms.items()})
stopped = threading.Event()
threads = [threading.Thread(target=draw, args=(25 * n,)) for n in range(8)]
for one in threads: one.start()
deadline = time.monotonic() + 60
while agent._choose("", user(1)).metadata["arm_share"] < 1 and time.monotonic() < deadline:
    time.sleep(0.05)
time.sleep(0.1)
stopped.set()
for one in threads: one.join()
print(json.dumps({"seen": {n: seen for part in ordered for n, seen in part.items()}, "problems": problems}))
"""


def test_eight_processes_of_eight_threads_follow_one_that_promotes(
    tmp_path: Path, preloaded: Preloaded
) -> None:
    path = tmp_path / "traces.db"  # they all create it at once
    workers = [preloaded.popen(["-c", _WORKER, path], encoding="utf-8") for _ in range(8)]
    try:
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        assert len(rollouts(path)) == 1
        for _ in range(4):
            promote("support", path)
        reports = [json.loads(worker.communicate(timeout=90)[0]) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    assert [worker.returncode for worker in workers] == [0] * 8
    assert [report["problems"] for report in reports] == [[]] * 8
    for report in reports:
        # From the control to the new arm, once, and never back.
        assert {tuple(seen) for seen in report["seen"].values()} <= {("v1", "v2"), ("v2",)}
        assert len(report["seen"]) == 200
    assert [one.action for one in history("support", path)] == ["start"] + ["promote"] * 4


def test_a_process_that_is_killed_while_it_promotes_leaves_a_whole_state(
    tmp_path: Path, preloaded: Preloaded
) -> None:
    path = tmp_path / "traces.db"
    prepare_database(path)
    code = (
        "import sys\nfrom tests.lab.rollout.trial import *\nfrom kantan_agents.lab.rollout import promote\n"
        "steps = tuple(n / 2000 for n in range(1, 2001))\n"
        "agent = support(rollout(store=sys.argv[1], ramp=steps))\n"
        "print('ready', flush=True)\n"
        "while True: promote('support', sys.argv[1])\n"
    )
    for _ in range(2):
        worker = preloaded.popen(["-c", code, path], encoding="utf-8")
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
        threading.Event().wait(0.4)
        worker.kill()
        worker.communicate()
        (state,) = rollouts(path)
        changes = history("support", path)
        assert state.revision == len(changes)
        assert state.share == changes[-1].share
    assert stop("support", path).status == "stopped"


# A process that serves users until the rollout has ended. Each arm has its own tools, and the clock is wrong.
_SERVICE = """
import json, os, sys, threading, time
path, first, skew = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
real = time.time
time.time = lambda: real() + skew
from contextlib import suppress
from kantan_agents import record_traces
from kantan_agents.lab.rollout import Arm, history
from kantan_agents.testing import ScriptedModel, ScriptedToolCall
from tests.lab.rollout.trial import V1, V2, rollout, support, user
record_traces(path)
def refund():
    "Refund."
    return "refunded"
def answer(call):
    if os.path.exists(path + ".broken") and call.system_instructions == V2.text:
        raise RuntimeError("broken")
    tools = {tool.name for tool in call.tools}
    assert ("refund" in tools) == (call.system_instructions == V1.text), tools
    return "fine"
arms = {"v1": V1, "v2": Arm(V2, tool_rules={"deny": ["refund"]})}
choice = rollout(arms=arms, ramp=(0.2, 0.5, 1), guards={"error": 0.05})
agent = support(choice, model=ScriptedModel(answer), tools=[refund])
print("ready", flush=True)
deadline, failed, number = time.monotonic() + 50, 0, 0
while agent._choose._shared.state.status == "running" and time.monotonic() < deadline:
    number += 1
    try:
        agent.run("Hi", user(first + number % 40))
    except RuntimeError:
        failed += 1
    time.sleep(0.02)
print(json.dumps({"status": agent._choose._shared.state.status, "failed": failed}), flush=True)
"""


def services(preloaded: Preloaded, path: Path, skews: Sequence[float]) -> list[Program]:
    """Start processes that serve users, each with its own error of the clock in seconds."""
    found = [
        preloaded.popen(["-c", _SERVICE, path, str(1_000 * n), str(skew)], encoding="utf-8")
        for n, skew in enumerate(skews)
    ]
    for one in found:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    return found


def ended(services: Sequence[Program]) -> list[dict[str, Any]]:
    """Return what the processes report at their end."""
    outputs = [one.communicate(timeout=90)[0] for one in services]
    return [json.loads(output.splitlines()[-1]) for output in outputs]


def end(services: Sequence[Program]) -> None:
    """End the processes that have not ended."""
    for one in services:
        one.kill()
        one.wait()
        for stream in (one.stdout, one.stderr):
            if stream is not None:
                stream.close()


@pytest.mark.slow  # real processes, which serve users for seconds
@pytest.mark.parametrize("skew", [-180.0, 0.0, 180.0])
def test_a_guard_returns_all_processes_although_one_was_killed_and_clocks_differ(
    tmp_path: Path, preloaded: Preloaded, skew: float
) -> None:
    path = tmp_path / "traces.db"
    prepare_database(path)
    running = services(preloaded, path, [0.0, skew, 0.0])
    try:
        assert promote("support", path, expect_step=0).share == 0.5
        threading.Event().wait(2.0)
        running[0].kill()  # while runs are under way, and perhaps while it checks
        Path(f"{path}.broken").touch()
        reports = ended(running[1:])
    finally:
        end(running)
    assert [report["status"] for report in reports] == ["stopped", "stopped"]
    assert [(one.action, one.author) for one in history("support", path)][-1] == ("return", "guard")
    assert sum(report["failed"] for report in reports) < 400


@pytest.mark.slow  # real processes, which serve users for seconds
@pytest.mark.parametrize("change", ["promote", "stop"])
def test_a_change_is_followed_after_the_database_was_away(
    tmp_path: Path, preloaded: Preloaded, change: str
) -> None:
    path = tmp_path / "traces.db"
    prepare_database(path)
    running = services(preloaded, path, [0.0, 60.0])
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")  # nobody can write, and runs go on
            threading.Event().wait(3.0)
            connection.execute("ROLLBACK")
        if change == "promote":
            assert promote("support", path, arm="v2").status == "promoted"
        else:
            assert stop("support", path).status == "stopped"
        reports = ended(running)
    finally:
        end(running)
    assert [report["status"] for report in reports] == ["promoted" if change == "promote" else "stopped"] * 2
    assert [report["failed"] for report in reports] == [0, 0]


def test_two_people_who_promote_at_once_take_one_step(tmp_path: Path) -> None:
    path = tmp_path / "traces.db"
    prepare_database(path)
    agent = support(rollout(store=path, ramp=(0.1, 0.5, 1)))
    assert agent is not None
    start = threading.Barrier(2)
    results: list[float | str] = []

    def press() -> None:
        start.wait()
        try:
            results.append(promote("support", path, expect_step=0).share)
        except RolloutStepError as error:
            results.append(str(error))

    people = [threading.Thread(target=press) for _ in range(2)]
    for one in people:
        one.start()
    for one in people:
        one.join()
    refused = (
        "[kantan-agents][E113] The rollout 'support:v1-v2' stays as it is: it is at step 1 of its ramp, "
        "not at 0; look at its status again"
    )
    assert sorted(results, key=str) == [0.5, refused]
