"""Many processes and threads that share a database, one of which promotes."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from kantan_agents.lab import history, promote, rollouts, stop
from kantan_agents.lab.experiment.database import prepare_database
from tests.programs import Preloaded

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
