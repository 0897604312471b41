"""Records of several processes, of forked ones, of killed ones, and of a recorder whose queue is full."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import Agent, StoredTrace, TraceStore
from kantan_agents.testing import ScriptedModel
from tests.traces.capture.recording import Recording
from tests.traces.recorder.processes import Start, wait_until
from tests.traces.records.contents import counted, kinds, referred, rows

# An agent that delegates to another one in a tool: two runs in a trace.
AGENTS = """
from agents import function_tool
from kantan_agents import Agent, Prompt
from kantan_agents.testing import ScriptedModel, function_call

inner = Agent("inner", Prompt("inner", "1", "Know."), model=ScriptedModel(lambda call: "42 " + "x" * 500))


async def ask() -> str:
    '''Ask.'''
    return str((await inner.run_async("Go"))["result"].final_output)


def replies(call):
    return "Done." if len(call.input) > 1 else [function_call("ask", {}, call_id="c1")]


outer = Agent("outer", Prompt("outer", "1", "Ask."), model=ScriptedModel(replies), tools=[ask])
"""


def traces_of(path: Path) -> list[StoredTrace]:
    store = TraceStore(path)
    return [store.trace(summary.trace_id) for summary in store.traces(limit=None)]


def assert_honest(found: StoredTrace) -> None:
    """Check that a trace is only called complete if it has everything of both of its runs."""
    if not found.is_complete:
        return
    outer, inner = found.runs
    assert (outer.agent, inner.agent) == ("outer", "inner")
    assert (outer.output, outer.outcome, len(outer.model_calls)) == ("Done.", "finished", 2)
    assert (inner.outcome, len(inner.model_calls)) == ("finished", 1)
    assert outer.inner_runs == (inner.id,)
    assert outer.tool_calls[0].output == inner.output


def test_two_processes_write_records_into_one_file_at_once(start: Start, folder: Path) -> None:
    path = folder / "traces.sqlite3"
    body = f"{AGENTS}\nrecord_traces(path, flush_interval=0.0)\nfor _ in range(40):\n    outer.run('Go')\n"
    processes = [start(body, path) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    found = traces_of(path)
    assert len(found) == 80
    assert all(one.is_complete for one in found)
    for one in found:
        assert_honest(one)
    assert counted(path) == referred(path)
    assert kinds(path)["prompt"] == 2


def test_a_forked_process_records_its_own_runs(start: Start, folder: Path) -> None:
    path = folder / "traces.sqlite3"
    body = f"""{AGENTS}
record_traces(path)
outer.run("Before")
child = os.fork()
outer.run("In the child" if child == 0 else "In the parent")
if child:
    os.waitpid(child, 0)
"""
    start(body, path, wait=True)
    found = traces_of(path)
    assert all(one.is_complete for one in found)
    assert {one.runs[0].input for one in found} == {"Before", "In the child", "In the parent"}
    assert counted(path) == referred(path)


@pytest.mark.parametrize("interval", [0.0, 0.02])
def test_after_a_kill_no_run_is_shown_as_complete_that_is_not(
    start: Start, folder: Path, interval: float
) -> None:
    path = folder / "traces.sqlite3"
    body = f"""{AGENTS}
record_traces(path, flush_interval={interval})

async def main():
    say("begun")
    while True:
        await asyncio.gather(*(outer.run_async("Go") for _ in range(5)))

asyncio.run(main())
"""
    process = start(body, path).until("begun")
    wait_until(lambda: path.exists() and _count(path) > 30)
    process.send(signal.SIGKILL).wait()
    found = traces_of(path)
    assert any(one.is_complete for one in found)
    for one in found:
        assert_honest(one)
    assert counted(path) == referred(path)


def _count(path: Path) -> int:
    try:
        return len(rows(path, "SELECT 1 FROM kantan_agents_runs"))
    except sqlite3.OperationalError:  # the tables are being made
        return 0


def test_a_full_queue_loses_records_and_says_so(recording_at: Callable[..., Recording]) -> None:
    recording = recording_at(max_queue_bytes=200_000, flush_interval=0.0)
    assert recording.recorder.force_flush()
    path = recording.recorder.path
    inner = Agent("inner", "Know.", model=ScriptedModel(lambda _call: "x" * 2_000))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # nothing can be written
        for _ in range(60):
            inner.run("Go")
        assert recording.recorder.stats().dropped > 0
        other.execute("ROLLBACK")
    assert recording.recorder.force_flush(60)
    found = recording.traces()
    assert len(found) == 60
    lost = [one for one in found if not one.runs]
    assert 0 < len(lost) < 60
    assert all(not one.is_complete for one in lost)
    assert all(one.runs[0].output == "x" * 2_000 for one in found if one.runs)
    assert counted(path) == referred(path)


def test_a_record_that_is_larger_than_the_queue_is_lost_alone(recording_at: Callable[..., Recording]) -> None:
    recording = recording_at(max_queue_bytes=100_000)
    for size in (10, 60_000, 10):
        Agent("a", "y" * size, model=ScriptedModel(["Hi."])).run("Go")
    assert recording.recorder.force_flush()
    assert [len(one.runs) for one in recording.traces()] == [1, 0, 1]
    assert [one.is_complete for one in recording.traces()] == [True, False, True]


def test_the_memory_of_waiting_records_is_counted(recording_at: Callable[..., Recording]) -> None:
    recording = recording_at(flush_interval=30.0)
    assert recording.recorder.force_flush()
    agent: Any = Agent("a", "Be brief.", model=ScriptedModel(lambda _call: "x" * 10_000))
    for _ in range(5):
        agent.run("Go")
    waiting = [item for item in recording.recorder._queue.unwritten() if hasattr(item, "size")]
    assert sum(item.size for item in waiting) > 5 * 2 * 10_000
