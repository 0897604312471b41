"""A cohort whose database another process writes to all the time, and one that Ctrl-C interrupts."""

from __future__ import annotations

import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kantan_agents import Agent
from kantan_agents.lab import Cohort, Experiment, replay_cohort
from kantan_agents.testing import ScriptedModel
from tests.lab.replay.cohorts import HARMLESS, recording
from tests.traces.recorder.conftest import folder, start
from tests.traces.recorder.processes import Process, Start, wait_until

__all__ = ["folder", "start"]

# Records runs until there is a file named "stop", and says how many.
WRITER = """
from pathlib import Path
from kantan_agents import Agent
from kantan_agents.testing import ScriptedModel

recorder = record_traces(path, flush_interval=0.0)
busy = Agent("busy", "Be brief.", model=ScriptedModel(lambda _call: "x" * 2_000))
stop = Path(path).with_name("stop")
made = 0
while not stop.exists():
    busy.run("Go")
    made += 1
    # At its own pace, as a full queue drops runs and the other process needs the processor too.
    recorder.force_flush(300)
assert recorder.force_flush(300)
say(f"made {made}, dropped {recorder.stats().dropped}, failed {recorder.stats().failed}")
"""

# Makes the runs of a cohort and says what has become of them; from the model call of this number, all hang.
COHORT = """
from kantan_agents import Agent, Middleware, TraceStore
from kantan_agents.lab.replay import Change, Cohort, replay_cohort
from kantan_agents.testing import ScriptedModel

hangs_at, calls = int(sys.argv[2]), 0


class Hang(Middleware):
    async def model_call(self, call, call_next):
        global calls
        calls += 1
        if calls >= hangs_at:
            await asyncio.sleep(300)
        return await call_next(call)


record_traces(path)
agent = Agent("shop", "Help.", model=ScriptedModel(lambda _call: "fine"), middleware=[Hang()])
cohort = Cohort.select(TraceStore(path), agent="shop")
change = Change.settings(temperature=0.3)
try:
    made = replay_cohort(
        cohort, agent, change, name="try", concurrency=3, progress=lambda done, _all: say(f"done {done}")
    )
except KeyboardInterrupt:
    say("interrupted")
else:
    say(f"made {len(made.runs)}, stopped {made.stopped}, calls {calls}")
"""


def written_by(path: Path, agent: str) -> int:
    query = "SELECT COUNT(*) FROM traces WHERE json_extract(metadata_json, '$.agent_name') = ?"
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(query, (agent,)).fetchone()[0])


def stored(path: Path) -> dict[str, str]:
    """Return the results in the file by the ids of the recorded runs."""
    query = "SELECT run_id, body FROM kantan_agents_experiment_runs"
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute(query).fetchall())


def end_of(writer: Process, folder: Path) -> int:
    """Stop the writer and return how many runs it has made; it has lost none of them."""
    (folder / "stop").touch()
    assert writer.wait() == 0, writer.err
    assert writer.err == ""
    said, none_lost = writer.out.splitlines()[-1].split(", ", 1)
    assert none_lost == "dropped 0, failed 0"
    return int(said.removeprefix("made "))


def test_experiment_and_recorder_of_another_process_lose_nothing_in_one_file(
    start: Start, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = folder / "traces.sqlite3"
    with recording(path) as db:
        shop = Agent("shop", "Help.", model=ScriptedModel(lambda _call: "fine"))
        ids = [db.run(shop, f"order {number}") for number in range(10)]
        writer = start(WRITER, path)
        wait_until(lambda: written_by(path, "busy") > 20, lambda: writer.err)
        before = written_by(path, "busy")
        for number in range(3):
            made = replay_cohort(Cohort.of(db.store, ids), shop, HARMLESS, name=f"try {number}", repeats=2)
            assert (made.stopped, made.counts["same"]) == (None, 20)
        wait_until(lambda: written_by(path, "busy") > before, lambda: writer.err)
        assert db.recorder.force_flush(300)
        stats = db.recorder.stats()
        assert (stats.dropped, stats.failed) == (0, 0)
        assert written_by(path, "busy") <= end_of(writer, folder) == written_by(path, "busy")
        experiments = [*Experiment.load_all(db.store)]
    assert [(one.name, len(one.runs)) for one in experiments] == [(f"try {n}", 20) for n in (2, 1, 0)]
    repeated = {run.replayed_trace_id for one in experiments for run in one.runs}
    found = {summary.trace_id for summary in db.store.traces(limit=None)}
    assert len(repeated) == 60
    assert repeated < found
    with closing(sqlite3.connect(path)) as connection:
        records = connection.execute("SELECT COUNT(*) FROM kantan_agents_runs").fetchone()
    assert records == (len(found),)
    assert "locked" not in caplog.text
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_ctrl_c_keeps_finished_runs_while_another_process_writes_and_the_next_start_goes_on(
    start: Start, folder: Path
) -> None:
    path = folder / "traces.sqlite3"
    with recording(path) as db:
        shop = Agent("shop", "Help.", model=ScriptedModel(lambda _call: "fine"))
        for number in range(9):
            db.run(shop, f"order {number}")
    writer = start(WRITER, path)
    wait_until(lambda: written_by(path, "busy") > 20, lambda: writer.err)
    first = start(COHORT, path, 6).until("done 5")  # the other three hang
    first.send(signal.SIGINT)
    assert first.wait() == 0, first.err
    assert first.out.splitlines()[-1] == "interrupted"
    kept = stored(path)
    assert len(kept) == 5
    assert {json.loads(body)["status"] for body in kept.values()} == {"same"}
    again = start(COHORT, path, 100, wait=True)
    assert again.out.splitlines()[-1] == "made 9, stopped None, calls 4"
    assert "locked" not in first.err
    now = stored(path)
    assert len(now) == 9
    assert {run_id: now[run_id] for run_id in kept} == kept
    made = end_of(writer, folder)
    assert written_by(path, "busy") == made


def test_ctrl_c_at_any_moment_keeps_what_was_reported_as_finished(start: Start, folder: Path) -> None:
    path = folder / "traces.sqlite3"
    with recording(path) as db:
        shop = Agent("shop", "Help.", model=ScriptedModel(lambda _call: "fine"))
        for number in range(30):
            db.run(shop, f"order {number}")
    reported = 0
    for wanted in (3, 11, 20):
        process = start(COHORT, path, 1000).until(f"done {wanted}")
        process.send(signal.SIGINT)
        assert process.wait() == 0, process.err
        said = [line for line in process.out.splitlines() if line.startswith("done ")]
        assert int(said[0].removeprefix("done ")) >= reported  # what earlier starts have kept
        reported = int(said[-1].removeprefix("done "))
        assert reported <= len(stored(path)) <= reported + 3  # the report of a worker may be cut off
    last = start(COHORT, path, 1000, wait=True).out.splitlines()[-1]
    assert last.startswith("made 30, stopped None")
    assert len(stored(path)) == 30
