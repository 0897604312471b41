"""A run that has not ended, or whose process was killed, is unfinished for every reader."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path

import attrs
import pytest

from kantan_agents import TraceStore
from kantan_agents.cli.traces.records import status
from kantan_agents.page.data.run_table import run_row
from kantan_agents.traces.figure_tables import count_changed
from kantan_agents.traces.store.store_figures import keep_changed
from tests.traces.store.sample_database import SampleDatabase, open_sample

BROKE = {"message": "broke", "data": None}
OURS = {"agent_run_id": "0" * 32, "prompt_name": "p"}
OTHERS = {"prompt_name": "p"}

Build = Callable[[SampleDatabase, str], object]


@attrs.frozen
class State:
    """What is recorded of a trace, and what it says."""

    name: str
    metadata: dict[str, str] | None
    build: Build
    status: str
    counts: tuple[int, int, int] | None  # runs, failures and unfinished runs of the prompt


def step(db: SampleDatabase, trace_id: str) -> None:
    """Record a model call inside a turn that is not recorded."""
    db.span(trace_id, "response", parent="turn", input="asked", output="call the tool")


def failed_tool(db: SampleDatabase, trace_id: str) -> None:
    step(db, trace_id)
    db.tool(trace_id, "search", parent="turn", error=BROKE)


def ended(db: SampleDatabase, trace_id: str) -> None:
    db.span(trace_id, input="asked", output="answered")


def recovered(db: SampleDatabase, trace_id: str) -> None:
    db.tool(trace_id, "search", parent="turn", error=BROKE)
    ended(db, trace_id)


def failed(db: SampleDatabase, trace_id: str) -> None:
    step(db, trace_id)
    db.span(trace_id, input="asked", error=BROKE)


def inner(db: SampleDatabase, trace_id: str, *, parent: str | None = None, error: object = None) -> None:
    """Record a run inside the trace, with its final span."""
    run = db.inner_run(trace_id, parent=parent, error=error, agent_run_id="1" * 32, prompt_name="inner")
    db.span(trace_id, parent=run, input="inner question", output="inner answer", error=error)


def delegated(db: SampleDatabase, trace_id: str) -> None:
    step(db, trace_id)
    inner(db, trace_id, parent="tool")


def one_of_two(db: SampleDatabase, trace_id: str) -> None:
    inner(db, trace_id)
    step(db, trace_id)


def second_begun(db: SampleDatabase, trace_id: str) -> None:
    inner(db, trace_id)
    db.inner_run(trace_id, seconds=None, agent_run_id="2" * 32, prompt_name="second")


def one_failed(db: SampleDatabase, trace_id: str) -> None:
    inner(db, trace_id, error=BROKE)
    step(db, trace_id)


def sdk_run(db: SampleDatabase, trace_id: str) -> None:
    turn = db.span(trace_id, "custom", name="turn")
    db.span(trace_id, "response", parent=turn, input="asked", output="answered")


def nothing(db: SampleDatabase, trace_id: str) -> None:
    pass


STATES = [
    State("our run without a span", OURS, nothing, "unfinished", (1, 0, 1)),
    State("our run in its second step", OURS, step, "unfinished", (1, 0, 1)),
    State("our run after a failed tool", OURS, failed_tool, "unfinished", (1, 0, 1)),
    State("our run after a delegated one", OURS, delegated, "unfinished", (1, 0, 1)),
    State("our run that ended", OURS, ended, "ok", (1, 0, 0)),
    State("our run that recovered", OURS, recovered, "recovered", (1, 0, 0)),
    State("our run that failed", OURS, failed, "failed", (1, 1, 0)),
    State("our run in the trace of a user", None, inner, "ok", None),
    State("the second run in the trace of a user", None, one_of_two, "unfinished", None),
    State("the second run in its first step", None, second_begun, "unfinished", None),
    State("the second run after one that failed", None, one_failed, "failed", None),
    State("a delegated run in the trace of a user", None, delegated, "unfinished", None),
    State("a run of the SDK alone", OTHERS, sdk_run, "ok", (1, 0, 0)),
    State("a run of the SDK alone in its second step", OTHERS, step, "unfinished", (1, 0, 1)),
    State("a run of the SDK alone after a failed tool", OTHERS, failed_tool, "unfinished", (1, 0, 1)),
    State("a trace of a user without a span", None, nothing, "unfinished", None),
]
# Of two runs in the trace of a user, one may have failed while the other goes on.
STILL_OPEN = [one for one in STATES if one.status == "unfinished" or one.build is one_failed]


@pytest.mark.slow
def test_every_reader_says_how_a_run_ended(db: SampleDatabase, store: TraceStore) -> None:
    found = {}
    for state in STATES:
        metadata = state.metadata and {**state.metadata, "prompt_name": state.name}
        found[state.name] = db.trace(metadata=metadata)
        state.build(db, found[state.name])
    listed = {one.trace_id: one for one in store.traces(limit=None)}
    exported = {one["trace_id"]: one for one in store.export()}
    prompts = {one.prompt_name: (one.runs, one.failures, one.unfinished) for one in store.prompts()}
    failed, ended_well = (
        {one.trace_id for one in store.traces(limit=None, has_failed=wanted)} for wanted in (True, False)
    )
    for state in STATES:
        trace_id = found[state.name]
        summary = store.trace(trace_id).summary
        assert listed[trace_id] == summary
        assert (state.name, summary.status) == (state.name, state.status)
        assert run_row(summary)["status"] == exported[trace_id]["status"] == state.status
        assert status(summary).plain == (summary.error or state.status)
        times = (summary.ended_at, summary.duration, exported[trace_id]["ended_at"])
        assert {time is None for time in times} == {state in STILL_OPEN}
        # Neither filter finds a run that has not ended.
        assert (trace_id in failed) == (state.status == "failed")
        assert (trace_id in ended_well) == (state.status in ("ok", "recovered"))
        assert prompts.get(state.name) == state.counts


def test_what_an_unfinished_run_has_put_out_so_far_is_no_answer(
    db: SampleDatabase, store: TraceStore
) -> None:
    trace_id = db.trace(metadata=OURS)
    failed_tool(db, trace_id)
    summary = store.trace(trace_id).summary
    assert (summary.input, summary.output, summary.error) == ("asked", None, None)
    assert isinstance(summary.started_at, datetime)
    assert (summary.spans, summary.failed_spans) == (2, 1)
    ended(db, trace_id)
    summary = store.trace(trace_id).summary
    assert (summary.input, summary.output, summary.status) == ("asked", "answered", "recovered")


def test_a_run_inside_one_that_was_killed_does_not_stand_for_it(
    db: SampleDatabase, store: TraceStore
) -> None:
    trace_id = db.trace()
    delegated(db, trace_id)
    trace = store.trace(trace_id)
    assert trace.summary.output is None
    assert "prompt_name" not in trace.summary.metadata
    assert [one for one in trace.missing if "has not ended, or its process was killed" in one]


def test_the_rate_of_failures_is_that_of_the_runs_that_ended(db: SampleDatabase, store: TraceStore) -> None:
    step(db, db.trace(metadata=OURS))
    (stats,) = store.prompts()
    assert stats.failure_rate is None
    db.run(prompt_name="p", error=BROKE)
    db.run(prompt_name="p")
    step(db, db.trace(metadata=OURS))
    (stats,) = store.prompts()
    assert (stats.runs, stats.failures, stats.unfinished, stats.failure_rate) == (4, 1, 2, 0.5)


def test_figures_that_are_kept_count_it_too(tmp_path: Path) -> None:
    with open_sample(tmp_path / "traces.sqlite3") as database:
        for build in (step, delegated, ended, failed):
            build(database, database.trace(metadata=OURS))
        second_begun(database, database.trace())
        computed = TraceStore(database.path).prompts()
        keep_changed(database.path, 60)
        with closing(sqlite3.connect(database.path)) as connection:
            assert count_changed(connection) == 0
        assert TraceStore(database.path).prompts() == computed
        assert {one.prompt_name: one.unfinished for one in computed} == {"inner": 0, "p": 2, "second": 1}
