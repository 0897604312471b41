"""Following new traces."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import anyio
import pytest

from kantan_agents import Agent, TraceStore
from kantan_agents.errors import InvalidOptionError, TraceDatabaseError
from kantan_agents.testing import ScriptedModel, assistant_message
from kantan_agents.traces.store.follow import Follower, newest_traces
from tests.programs import Preloaded
from tests.traces.store.sample_database import NOON, SampleDatabase, open_sample


@pytest.fixture
def follower(db: SampleDatabase) -> Iterator[Follower]:
    db.run("before")
    with closing(Follower(db.path, newest_traces(db.path))) as following:
        yield following


def polled(follower: Follower) -> list[str]:
    return [summary.trace_id for summary in follower.poll()]


def completed(follower: Follower) -> list[str]:
    """Poll twice, without changes in between."""
    return polled(follower) + polled(follower)


async def test_runs_are_followed_in_the_order_of_their_start(traces: Any) -> None:
    agent = Agent("a", "b", model=ScriptedModel([[assistant_message("x")]] * 4))
    await agent.run_async("before")
    store = TraceStore(traces.path)
    with closing(store.follow(poll=0.001)) as following:
        for number in range(3):
            await agent.run_async(f"question {number}")
        found = [summary.input for summary in islice(following, 3)]
    assert found == ["question 0", "question 1", "question 2"]


def test_a_trace_is_returned_once_if_nothing_is_added_between_two_polls(
    db: SampleDatabase, follower: Follower
) -> None:
    assert completed(follower) == []
    trace_id = db.trace(metadata={"agent_run_id": "r"})
    assert completed(follower) == []
    db.span(trace_id, "response", parent="turn")
    assert completed(follower) == []
    db.span(trace_id, "custom", name="task")  # the SDK's last span; the final span follows
    assert completed(follower) == []
    db.span(trace_id, input="question", output="answer")
    assert polled(follower) == []
    db.judge(trace_id, 0.5)
    assert polled(follower) == []
    (summary,) = follower.poll()
    assert (summary.trace_id, summary.input, summary.spans) == (trace_id, "question", 4)
    db.span(trace_id, input="late")
    assert completed(follower) == []


def test_another_programs_trace_is_complete_with_a_span_without_parent(
    db: SampleDatabase, follower: Follower
) -> None:
    begun = db.trace()
    db.inner_run(begun, seconds=None)  # has not ended
    trace_id = db.trace()
    db.span(trace_id, "response", parent="agent")
    assert completed(follower) == []
    db.span(trace_id, "agent", name="a")
    assert completed(follower) == [trace_id]


def test_a_short_run_is_returned_before_an_earlier_long_one(db: SampleDatabase, follower: Follower) -> None:
    slow = db.trace(metadata={"agent_run_id": "r"})
    quick = db.run()
    assert completed(follower) == [quick]
    db.span(slow)
    assert completed(follower) == [slow]


def test_a_trace_deleted_before_completion_is_forgotten(db: SampleDatabase, follower: Follower) -> None:
    db.trace(metadata={"agent_run_id": "r"})
    assert completed(follower) == []
    TraceStore(db.path).prune(keep=0)
    assert completed(follower) == []
    assert completed(follower) == []


def test_after_pruning_no_new_trace_is_missed_and_no_old_one_repeated(
    db: SampleDatabase, follower: Follower
) -> None:
    store = TraceStore(db.path)
    first = db.run()
    assert completed(follower) == [first]
    for keep in (1, 0):
        store.prune(keep=keep)  # SQLite reuses rowids
        runs = [db.run(), db.run()]
        assert completed(follower) == runs
    store.prune(keep=0)
    assert completed(follower) == []
    runs = [db.run()]
    assert completed(follower) == runs


def test_a_trace_that_reuses_the_rowid_of_a_deleted_one_is_found(
    db: SampleDatabase, follower: Follower
) -> None:
    runs = [db.run(), db.run()]
    assert completed(follower) == runs
    with db.tracer._conn as connection:
        connection.execute("DELETE FROM traces WHERE id = ?", (runs[1],))
    run = db.run()
    assert completed(follower) == [run]


@pytest.mark.file_only
def test_a_file_that_is_switched_to_wal_mode_is_still_followed(
    db: SampleDatabase, follower: Follower
) -> None:
    assert completed(follower) == []
    with closing(sqlite3.connect(db.path)) as recorder:
        recorder.execute("PRAGMA journal_mode = WAL")
        run = db.run()
        assert completed(follower) == [run]


@pytest.mark.file_only
@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_deleted_or_replaced_is_an_error(
    db: SampleDatabase, store: TraceStore, replaced: bool
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


def test_earlier_traces_are_included_from_the_given_time(db: SampleDatabase, store: TraceStore) -> None:
    runs = []
    for hour in range(3):
        trace_id = db.trace(metadata={"agent_run_id": f"r{hour}"})
        db.span(trace_id, start=hour * 3600)
        runs.append(trace_id)
    with closing(store.follow(poll=0.001, started_after=NOON + timedelta(minutes=30))) as following:
        runs.append(db.run())
        assert [summary.trace_id for summary in islice(following, 3)] == runs[1:]


def test_a_trace_whose_first_span_is_not_stored_yet_is_included(
    db: SampleDatabase, store: TraceStore
) -> None:
    trace_id = db.trace(metadata={"agent_run_id": "r"})
    with closing(store.follow(poll=0.001, started_after=NOON)) as following:
        db.span(trace_id)
        db.run()
        assert next(following).trace_id == trace_id


def test_a_file_without_traces_can_be_followed(tmp_path: Path) -> None:
    with (
        open_sample(tmp_path / "t.db") as database,
        closing(TraceStore(database.path).follow(poll=0.001)) as following,
    ):
        run = database.run()
        assert next(following).trace_id == run


@pytest.mark.file_only
def test_closing_the_iterator_closes_the_file(db: SampleDatabase, store: TraceStore) -> None:
    with closing(store.follow(poll=0.001, started_after=NOON)) as following:
        db.run()
        next(following)
    # A connection that is still open would prevent this.
    with closing(sqlite3.connect(db.path)) as alone:
        assert alone.execute("PRAGMA locking_mode = EXCLUSIVE").fetchone() == ("exclusive",)
        alone.execute("BEGIN EXCLUSIVE")


@pytest.mark.file_only
def test_rows_written_by_another_process_are_found(
    db: SampleDatabase, store: TraceStore, preloaded: Preloaded
) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.traces.store.sample_database import open_sample\n"
        "with open_sample(Path(sys.argv[1])) as db: db.run('from afar')"
    )
    with closing(store.follow(poll=0.001)) as following:
        preloaded.run(["-c", code, db.path], cwd=Path(__file__).parents[3]).check_returncode()
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
def test_invalid_options_are_an_error_at_once(
    db: SampleDatabase, store: TraceStore, option: str, arguments: dict[str, Any]
) -> None:
    for call in (store.follow, store.follow_async):
        with pytest.raises(InvalidOptionError) as caught:
            call(**arguments)
        assert caught.value.option == option


async def test_async_code_can_follow_and_cancel(traces: Any) -> None:
    agent = Agent("a", "b", model=ScriptedModel([[assistant_message("x")]] * 3))
    await agent.run_async("first")
    store = TraceStore(traces.path)
    found: list[str | None] = []
    before = threading.active_count()  # those of other tests, too
    with anyio.CancelScope() as scope:
        async for summary in store.follow_async(poll=0.001, started_after=NOON):
            found.append(summary.input)
            if len(found) == 2:
                scope.cancel()
            else:
                await agent.run_async("second")
    assert found == ["first", "second"]
    assert threading.active_count() < before + 20


async def test_an_error_reaches_async_code(tmp_path: Path) -> None:
    with open_sample(tmp_path / "t.db") as database:
        database.run()
    store = TraceStore(tmp_path / "t.db")
    with pytest.raises(TraceDatabaseError, match="deleted"):
        async for _ in store.follow_async(poll=0.001, started_after=NOON):
            (tmp_path / "t.db").unlink()
