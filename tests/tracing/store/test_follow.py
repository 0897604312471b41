"""New traces as they come."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import anyio
import pytest

from kantan_agents import Agent
from kantan_agents.errors import InvalidOptionError, TraceDatabaseError
from kantan_agents.testing import ScriptedModel, assistant_message
from kantan_agents.tracing.store import TraceStore
from kantan_agents.tracing.store.follow import Follower, newest_traces
from tests.tracing.store.written import NOON, Written, written


@pytest.fixture
def follower(db: Written) -> Iterator[Follower]:
    db.run("before")
    with closing(Follower(db.path, newest_traces(db.path))) as following:
        yield following


def looked(follower: Follower) -> list[str]:
    return [summary.trace_id for summary in follower.look()]


def settled(follower: Follower) -> list[str]:
    """Look twice, between which nothing happens."""
    return looked(follower) + looked(follower)


@pytest.mark.anyio
async def test_runs_are_followed_in_the_order_they_began_in(traces: Any) -> None:
    agent = Agent("a", "b", model=ScriptedModel([[assistant_message("x")]] * 4))
    await agent.run_async("before")
    store = TraceStore(traces.path)
    with closing(store.follow(poll=0.001)) as following:
        for number in range(3):
            await agent.run_async(f"question {number}")
        found = [summary.input for summary in islice(following, 3)]
    assert found == ["question 0", "question 1", "question 2"]


def test_a_trace_comes_once_when_nothing_is_added_between_two_looks(db: Written, follower: Follower) -> None:
    assert settled(follower) == []
    trace_id = db.trace(metadata={"agent_run_id": "r"})
    assert settled(follower) == []
    db.span(trace_id, "response", parent="turn")
    assert settled(follower) == []
    db.span(trace_id, "custom", name="task")  # the SDK's last span; ours comes a moment later
    assert settled(follower) == []
    db.span(trace_id, input="question", output="answer")
    assert looked(follower) == []
    db.judge(trace_id, 0.5)
    assert looked(follower) == []
    (summary,) = follower.look()
    assert (summary.trace_id, summary.input, summary.spans) == (trace_id, "question", 4)
    db.span(trace_id, input="late")
    assert settled(follower) == []


def test_a_trace_of_others_has_settled_when_a_span_without_parent_is_there(
    db: Written, follower: Follower
) -> None:
    trace_id = db.trace()
    db.span(trace_id, "response", parent="agent")
    assert settled(follower) == []
    db.span(trace_id, "agent", name="a")
    assert settled(follower) == [trace_id]


def test_a_quick_run_overtakes_one_that_goes_on(db: Written, follower: Follower) -> None:
    slow = db.trace(metadata={"agent_run_id": "r"})
    quick = db.run()
    assert settled(follower) == [quick]
    db.span(slow)
    assert settled(follower) == [slow]


def test_a_trace_deleted_before_it_settled_is_forgotten(db: Written, follower: Follower) -> None:
    db.trace(metadata={"agent_run_id": "r"})
    assert settled(follower) == []
    TraceStore(db.path).prune(keep=0)
    assert settled(follower) == []
    assert settled(follower) == []


def test_pruning_hides_no_new_trace_and_repeats_no_old_one(db: Written, follower: Follower) -> None:
    store = TraceStore(db.path)
    first = db.run()
    assert settled(follower) == [first]
    for keep in (1, 0):
        store.prune(keep=keep)  # rowids are given out again
        runs = [db.run(), db.run()]
        assert settled(follower) == runs
    store.prune(keep=0)
    assert settled(follower) == []
    runs = [db.run()]
    assert settled(follower) == runs


def test_of_a_deleted_newest_trace_the_next_takes_the_place(db: Written, follower: Follower) -> None:
    runs = [db.run(), db.run()]
    assert settled(follower) == runs
    with db.tracer._conn as connection:
        connection.execute("DELETE FROM traces WHERE id = ?", (runs[1],))
    run = db.run()
    assert settled(follower) == [run]


def test_a_file_that_gets_a_log_meanwhile_is_still_followed(db: Written, follower: Follower) -> None:
    assert settled(follower) == []
    with closing(sqlite3.connect(db.path)) as recorder:
        recorder.execute("PRAGMA journal_mode = WAL")
        run = db.run()
        assert settled(follower) == [run]


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_deleted_or_replaced_is_an_error(
    db: Written, store: TraceStore, replaced: bool
) -> None:
    db.run()
    with closing(store.follow(poll=0.001, started_after=NOON)) as following:
        next(following)
        if replaced:
            shutil.copy(db.path, f"{db.path}.new")
            Path(f"{db.path}.new").replace(db.path)
        else:
            db.path.unlink()
        with pytest.raises(TraceDatabaseError, match="it was deleted or replaced while it was followed"):
            next(following)


def test_earlier_traces_are_included_from_the_time_asked_for(db: Written, store: TraceStore) -> None:
    runs = []
    for hour in range(3):
        trace_id = db.trace(metadata={"agent_run_id": f"r{hour}"})
        db.span(trace_id, start=hour * 3600)
        runs.append(trace_id)
    with closing(store.follow(poll=0.001, started_after=NOON + timedelta(minutes=30))) as following:
        runs.append(db.run())
        assert [summary.trace_id for summary in islice(following, 3)] == runs[1:]


def test_a_file_that_is_empty_at_first_is_followed(tmp_path: Path) -> None:
    with (
        written(tmp_path / "t.db") as database,
        closing(TraceStore(database.path).follow(poll=0.001)) as following,
    ):
        run = database.run()
        assert next(following).trace_id == run


def test_closing_it_closes_the_file(db: Written, store: TraceStore) -> None:
    with closing(store.follow(poll=0.001, started_after=NOON)) as following:
        db.run()
        next(following)
    # A connection that is still open would keep the file from this.
    with closing(sqlite3.connect(db.path)) as alone:
        assert alone.execute("PRAGMA locking_mode = EXCLUSIVE").fetchone() == ("exclusive",)
        alone.execute("BEGIN EXCLUSIVE")


def test_rows_of_another_process_are_seen(db: Written, store: TraceStore) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.tracing.store.written import written\n"
        "with written(Path(sys.argv[1])) as db: db.run('from afar')"
    )
    with closing(store.follow(poll=0.001)) as following:
        subprocess.run([sys.executable, "-c", code, str(db.path)], check=True, cwd=Path(__file__).parents[3])
        assert next(following).input == "from afar"


@pytest.mark.parametrize(
    ("option", "arguments"),
    [
        ("poll", {"poll": 0}),
        ("poll", {"poll": -1}),
        ("poll", {"poll": float("inf")}),
        ("poll", {"poll": float("nan")}),
        ("poll", {"poll": "1"}),
        ("started_after", {"started_after": "yesterday"}),
    ],
)
def test_wrong_options_are_an_error_at_once(
    db: Written, store: TraceStore, option: str, arguments: dict[str, Any]
) -> None:
    for call in (store.follow, store.follow_async):
        with pytest.raises(InvalidOptionError) as caught:
            call(**arguments)
        assert caught.value.option == option


@pytest.mark.anyio
async def test_async_code_can_follow_and_be_cancelled(traces: Any) -> None:
    agent = Agent("a", "b", model=ScriptedModel([[assistant_message("x")]] * 3))
    await agent.run_async("first")
    store = TraceStore(traces.path)
    found: list[str | None] = []
    with anyio.CancelScope() as scope:
        async for summary in store.follow_async(poll=0.001, started_after=NOON):
            found.append(summary.input)
            if len(found) == 2:
                scope.cancel()
            else:
                await agent.run_async("second")
    assert found == ["first", "second"]
    assert threading.active_count() < 20


@pytest.mark.anyio
async def test_an_error_reaches_async_code(tmp_path: Path) -> None:
    with written(tmp_path / "t.db") as database:
        database.run()
    store = TraceStore(tmp_path / "t.db")
    with pytest.raises(TraceDatabaseError, match="deleted"):
        async for _ in store.follow_async(poll=0.001, started_after=NOON):
            (tmp_path / "t.db").unlink()
