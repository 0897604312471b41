"""Reading one trace by its id, a run id or the beginning of one."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import agents
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent, TraceStore
from kantan_agents.errors import InvalidOptionError, TraceNotFoundError
from kantan_agents.testing import ScriptedModel, assistant_message
from tests.traces.store.sample_database import SampleDatabase, open_sample


def reason_of(store: TraceStore, wanted: str) -> str:
    with pytest.raises(TraceNotFoundError) as caught:
        store.trace(wanted)
    assert (caught.value.code, caught.value.trace_id, caught.value.path) == ("E61", wanted, str(store.path))
    return str(caught.value.reason)


async def test_a_run_is_found_by_trace_id_run_id_or_a_beginning(traces: Any) -> None:
    agent = Agent("a", "b", model=ScriptedModel([[assistant_message("x")]] * 3))
    await agent.run_async("one")
    await agent.run_async("two", run_config=agents.RunConfig(trace_id="trace_mine"))
    store = TraceStore(traces.path)
    second, first = store.traces()
    for wanted in (first.trace_id, first.trace_id[:-1], first.metadata["agent_run_id"]):
        assert store.trace(wanted).summary == first
    for wanted in ("trace_mine", "trace_m", "mine", "m", second.metadata["agent_run_id"]):
        assert store.trace(wanted).summary == second
    assert store.trace("LAST").summary == second
    assert [span.span_type for span in store.trace("LAST").spans][-1] == "generation"


async def test_a_run_inside_an_open_trace_is_found_by_its_run_id(traces: Any) -> None:
    agent = Agent("a", "b", model=ScriptedModel([[assistant_message("x")]] * 3))
    with agents.trace("mine") as outer:
        await agent.run_async("one")
    (span,) = traces.spans(name="agent_run")
    run_id = span.raw["span_data"]["data"]["agent_run_id"]
    store = TraceStore(traces.path)
    for wanted in (run_id, run_id[:30], outer.trace_id):
        assert store.trace(wanted).summary.trace_id == outer.trace_id


def test_spans_are_in_storage_order_with_times_in_utc(db: SampleDatabase, store: TraceStore) -> None:
    trace_id = db.trace()
    stored = [db.span(trace_id, start=start) for start in (5, 1, 3)]
    found = store.trace(trace_id)
    assert [span.span_id for span in found.spans] == stored
    assert found.spans[1].started_at == found.summary.started_at
    assert found.summary.duration == 5.0


def test_the_error_for_an_unknown_id_names_the_reason(db: SampleDatabase, store: TraceStore) -> None:
    assert reason_of(store, "LAST") == "it has no traces yet"
    db.run()
    assert reason_of(store, "nothing") == "no trace or run has an id with this beginning or end"
    assert reason_of(store, "last") == "no trace or run has an id with this beginning or end"
    assert reason_of(store, "%") == "no trace or run has an id with this beginning or end"


def test_the_error_for_an_ambiguous_beginning_lists_the_newest_traces(
    db: SampleDatabase, store: TraceStore
) -> None:
    for number in range(4):
        db.trace(f"trace_ab{number}")
    listed = "trace_ab3, trace_ab2, trace_ab1, ..."
    assert reason_of(store, "ab") == f"4 traces have this beginning or end: {listed}"
    store.prune(keep=2)
    assert reason_of(store, "trace_a") == "2 traces have this beginning or end: trace_ab3, trace_ab2"


def test_a_complete_id_is_never_treated_as_a_beginning(db: SampleDatabase, store: TraceStore) -> None:
    for trace_id in ("trace_a", "trace_ab", "a"):
        db.trace(trace_id)
    assert store.trace("trace_a").summary.trace_id == "trace_a"
    assert store.trace("a").summary.trace_id == "a"


@pytest.mark.parametrize("wanted", [None, 5, "\ud83d"])
def test_an_id_that_is_not_a_valid_str_is_an_error(
    db: SampleDatabase, store: TraceStore, wanted: Any
) -> None:
    with pytest.raises(InvalidOptionError, match="trace_id"):
        store.trace(wanted)


def test_the_end_of_an_id_is_accepted_if_it_is_unique_and_long_enough(
    db: SampleDatabase, store: TraceStore
) -> None:
    for digits in ("0" * 24 + "abcd1234", "1" * 24 + "abcd1234", "2" * 24 + "11111111"):
        db.trace(f"trace_{digits}")
    assert store.trace("11111111").summary.trace_id.startswith("trace_1")  # a beginning goes first
    assert store.trace("211111111").summary.trace_id.startswith("trace_2")
    assert reason_of(store, "abcd1234").startswith("2 traces have this beginning or end: trace_1")
    assert reason_of(store, "abcd123").startswith("no trace or run")
    assert reason_of(store, "bcd1234").startswith("no trace or run")


IDS = st.text("0a", min_size=1, max_size=4)


@given(
    trace_ids=st.lists(st.tuples(st.sampled_from(["trace_", ""]), IDS).map("".join), unique=True, max_size=6),
    run_ids=st.lists(IDS, unique=True, max_size=3),
    wanted=st.tuples(st.sampled_from(["trace_", ""]), st.text("0a", max_size=4)).map("".join),
)
def test_a_beginning_is_accepted_exactly_if_it_is_unique(
    trace_ids: list[str], run_ids: list[str], wanted: str
) -> None:
    with TemporaryDirectory() as directory, open_sample(Path(directory) / "t.db") as database:
        runs = dict.fromkeys([*run_ids[: len(trace_ids)]])
        for trace_id, run_id in zip(trace_ids, [*runs, *[None] * len(trace_ids)], strict=False):
            database.trace(trace_id, {"agent_run_id": run_id} if run_id else {})
            if run_id:
                runs[run_id] = trace_id
        by_id = {i for i in trace_ids if i.startswith((wanted, f"trace_{wanted}"))}
        by_run = {trace_id for run_id, trace_id in runs.items() if run_id.startswith(wanted)}
        expected = {wanted} if wanted in trace_ids else by_id or by_run
        store = TraceStore(database.path)
        if len(expected) == 1:
            assert {store.trace(wanted).summary.trace_id} == expected
        elif expected:
            assert reason_of(store, wanted).startswith(f"{len(expected)} traces have this beginning or end: ")
        else:
            assert reason_of(store, wanted).startswith("no trace or run")
