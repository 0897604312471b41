"""Records are stored once by content, beside kantan-llm's tables, and removed when no run refers to them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from agents import function_tool, set_trace_processors, trace
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from kantan_llm.tracing import SQLiteTracer
from kantan_llm.tracing.search import SpanQuery, TraceQuery

from kantan_agents import Agent, Prompt, SQLiteRecorder, TraceStore
from kantan_agents.errors import PromptNotRecordedError
from kantan_agents.testing import ScriptedModel, function_call
from kantan_agents.traces.record_tables import CONTENTS, RUNS
from tests.sizes import size
from tests.traces.capture.recording import Recording
from tests.traces.records.contents import change, counted, kinds, referred, rows


def tools(count: int) -> list[Any]:
    async def look(city: str) -> str:
        """Look out of the window."""
        return f"sunny in {city}"

    return [function_tool(look, name_override=f"look_{number}") for number in range(count)]


def agent(prompt: str = "Be brief.", tool_count: int = 2, version: str = "1") -> Agent[Any]:
    model = ScriptedModel(
        lambda call: (
            "Sunny." if len(call.input) > 1 else [function_call("look_0", {"city": "Oslo"}, call_id="c1")]
        )
    )
    return Agent("a", Prompt("support", version, prompt), model=model, tools=tools(tool_count))


def objects(path: Path) -> list[tuple[str, str]]:
    query = "SELECT type, name FROM sqlite_master WHERE sql LIKE '%kantan_agents_contents%' OR sql LIKE ?"
    return rows(path, query, "%kantan_agents_runs%")


async def run_often(one: Agent[Any], count: int) -> None:
    for _ in range(count // 50):
        await asyncio.gather(*(one.run_async("How is it?") for _ in range(50)))


def test_what_a_thousand_runs_have_in_common_is_in_the_file_once(recording: Recording) -> None:
    asyncio.run(run_often(agent(tool_count=10), 1_000))
    assert recording.recorder.force_flush(60)
    path = recording.recorder.path
    (count,) = rows(path, f"SELECT COUNT(*) FROM {RUNS}")[0]
    assert count == 1_000
    found = kinds(path)
    assert (found["prompt"], found["tools"], found["tool"], found["model"]) == (1, 1, 10, 1)
    assert (found["instructions"], found["rules"], found["options"]) == (1, 1, 1)
    assert counted(path) == referred(path)


def test_the_order_of_keys_does_not_make_another_content(recording: Recording) -> None:
    for meta in ({"a": 1, "b": 2}, {"b": 2, "a": 1}):
        prompt = Prompt("support", "1", "Be brief.", meta={"all": meta})
        Agent("a", prompt, model=ScriptedModel(["Hi."])).run("Go")
    assert recording.recorder.force_flush()
    assert kinds(recording.recorder.path)["prompt"] == 1


def test_a_prompt_is_found_by_its_id_and_an_unknown_one_is_an_error(recording: Recording) -> None:
    agent(prompt="First.", version="1").run("Go")
    agent(prompt="Second.", version="2").run("Go")
    store = recording.store
    second = Prompt("support", "2", "Second.").resolve_id()
    assert store.prompt(second).text == "Second."
    with pytest.raises(PromptNotRecordedError):
        store.prompt("unknown")


# Other programs and other versions


def kantan_llm_reads(path: Path) -> tuple[int, int]:
    tracer = SQLiteTracer(str(path))
    try:
        traces = tracer.search_traces(query=TraceQuery(limit=1_000))
        spans = tracer.search_spans(query=SpanQuery(limit=1_000))
        return len(traces), len(spans)
    finally:
        tracer.shutdown()


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_kantan_llm_writes_and_reads_the_same_file(tmp_path: Path, first: str) -> None:
    path = tmp_path / "traces.sqlite3"
    order = ["ours", "theirs"] if first == "ours" else ["theirs", "ours"]
    for writer in (*order, *order):
        tracer: Any = SQLiteRecorder(path) if writer == "ours" else SQLiteTracer(str(path))
        set_trace_processors([tracer])
        agent().run("Go")
        tracer.shutdown()
    assert kantan_llm_reads(path)[0] == 4
    store = TraceStore(path)
    found = [store.trace(summary.trace_id) for summary in store.traces(limit=None)]
    assert sorted(one.is_complete for one in found) == [False, False, True, True]
    assert all(len(one.runs) == one.is_complete for one in found)
    assert counted(path) == referred(path)


def test_both_writers_of_one_trace_leave_its_record(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite3"
    recorder, tracer = SQLiteRecorder(path), SQLiteTracer(str(path))
    recorder.force_flush()  # kantan-llm's tracer fails if another connection adds columns at the same time
    set_trace_processors([recorder, tracer])
    agent().run("Go")
    recorder.shutdown()
    tracer.shutdown()
    store = TraceStore(path)
    assert store.trace(store.traces()[0].trace_id).is_complete


def test_a_file_of_the_version_before_gets_the_tables_and_says_what_its_runs_lack(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite3"
    recorder = SQLiteRecorder(path)
    set_trace_processors([recorder])
    agent().run("Old")
    recorder.shutdown()
    new = objects(path)
    order = {"trigger": 0, "index": 1, "table": 2}
    change(path, *(f"DROP {kind} {name}" for kind, name in sorted(new, key=lambda one: order[one[0]])))
    assert objects(path) == []

    store = TraceStore(path)
    (old,) = store.traces()
    assert store.trace(old.trace_id).runs == ()
    assert "earlier version" in store.trace(old.trace_id).missing[0]
    assert store.prune(keep=1, dry_run=True).traces == 0

    recorder = SQLiteRecorder(path)
    set_trace_processors([recorder])
    agent().run("New")
    recorder.shutdown()
    assert sorted(objects(path)) == sorted(new)
    found = [store.trace(summary.trace_id) for summary in store.traces(limit=None)]
    assert [one.is_complete for one in found] == [True, False]


@pytest.mark.parametrize(
    ("name", "statement"),
    [
        ("trigger", "DROP TRIGGER kantan_agents_record_deleted"),
        ("index", "DROP INDEX kantan_agents_prompts"),
    ],
)
def test_what_is_missing_of_the_tables_is_made_again(tmp_path: Path, name: str, statement: str) -> None:
    path = tmp_path / "traces.sqlite3"
    SQLiteRecorder(path).shutdown()
    before = sorted(objects(path))
    change(path, statement)
    assert sorted(objects(path)) != before, name
    SQLiteRecorder(path).shutdown()
    assert sorted(objects(path)) == before


def test_a_trace_deleted_by_another_program_takes_its_record_along(recording: Recording) -> None:
    one = agent()
    one.run("Go")
    one.run("Go")
    assert recording.recorder.force_flush()
    path = recording.recorder.path
    change(path, "DELETE FROM traces WHERE id = (SELECT MIN(id) FROM traces)")
    assert len(rows(path, f"SELECT 1 FROM {RUNS}")) == 1
    assert counted(path) == referred(path)
    assert all(uses > 0 for uses in counted(path).values())
    change(path, "DELETE FROM traces")
    assert counted(path) == referred(path)
    assert kinds(path)["prompt"] == 1
    recording.store.prune(keep=1)
    assert counted(path) == {}


def test_prune_removes_what_no_run_uses_any_more_and_nothing_else(recording: Recording) -> None:
    agent(prompt="Old.", tool_count=3, version="1").run("Go")
    agent(prompt="New.", tool_count=2, version="2").run("Go")
    assert recording.recorder.force_flush()
    path, store = recording.recorder.path, recording.store
    assert kinds(path)["tool"] == 3
    store.prune(keep=1)
    assert (kinds(path)["tool"], kinds(path)["prompt"], kinds(path)["tools"]) == (2, 1, 1)
    assert counted(path) == referred(path)
    assert recording.trace().is_complete


class Uses(RuleBasedStateMachine):
    """After any writes, deletions and prunes, each count equals the real number of references."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.path = Path(self.folder.name) / "traces.sqlite3"
        self.recorder = SQLiteRecorder(self.path, flush_on_sigterm=False)
        set_trace_processors([self.recorder])
        assert self.recorder.force_flush(60)
        self.agents = [agent(f"Prompt {number}.", number, str(number)) for number in (1, 2, 3)]

    @rule(which=st.integers(0, 2), often=st.integers(1, 3), in_one_trace=st.booleans())
    def record(self, which: int, often: int, in_one_trace: bool) -> None:
        if in_one_trace:
            with trace("several"):
                for _ in range(often):
                    self.agents[which].run("Go")
        else:
            for _ in range(often):
                self.agents[which].run(f"Go {'x' * 300}")
        assert self.recorder.force_flush(60)

    @rule(newest=st.booleans())
    def delete_trace(self, newest: bool) -> None:
        which = "MAX" if newest else "MIN"
        change(self.path, f"DELETE FROM traces WHERE id = (SELECT {which}(id) FROM traces)")

    @rule()
    def delete_record(self) -> None:
        change(self.path, f"DELETE FROM {RUNS} WHERE id = (SELECT MIN(id) FROM {RUNS})")

    @rule()
    def delete_everything(self) -> None:
        change(self.path, "DELETE FROM spans", "DELETE FROM traces")

    @rule(keep=st.integers(1, 3))
    def prune(self, keep: int) -> None:
        TraceStore(self.path).prune(keep=keep)
        assert all(uses > 0 for uses in counted(self.path).values())

    @rule()
    def open_again(self) -> None:
        self.recorder.shutdown()

    @invariant()
    def counts_are_right(self) -> None:
        assert counted(self.path) == referred(self.path)

    @invariant()
    def records_can_be_read(self) -> None:
        store = TraceStore(self.path)
        for summary in store.traces(limit=None):
            found = store.trace(summary.trace_id)
            assert all("has no record" in reason for reason in found.missing)

    def teardown(self) -> None:
        set_trace_processors([])
        self.recorder.shutdown()
        self.folder.cleanup()


def test_counts_stay_right_whatever_happens() -> None:
    run_state_machine_as_test(Uses, settings=settings(max_examples=size(12, 6), stateful_step_count=12))


# Damage


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        (f"UPDATE {RUNS} SET body = 'no json'", "it is damaged"),
        (f"UPDATE {RUNS} SET body = '[]'", "it is damaged"),
        (f"UPDATE {RUNS} SET body = json_set(body, '$.version', 99)", "its format is 99"),
        (f"UPDATE {RUNS} SET contents = '[]'", "it is damaged"),
        (f"UPDATE {RUNS} SET contents = 'x'", "it is damaged"),
        (f"DELETE FROM {CONTENTS} WHERE kind = 'prompt'", "it is damaged"),
        (f"DELETE FROM {CONTENTS} WHERE kind = 'tool'", "it is damaged"),
        (f"UPDATE {CONTENTS} SET body = 'x' WHERE kind = 'instructions'", "it is damaged"),
        (f"UPDATE {CONTENTS} SET parts = '[999]' WHERE kind = 'tools'", "it is damaged"),
        (f"UPDATE {CONTENTS} SET parts = '[' || id || ']' WHERE kind = 'tools'", "it is damaged"),
        (f"DELETE FROM {RUNS}", "it has no record"),
        (f"DROP TABLE {RUNS}", "it has no record"),
    ],
)
def test_a_damaged_record_is_named_and_the_trace_can_be_read(
    recording: Recording, statement: str, reason: str
) -> None:
    agent().run("Go")
    assert recording.recorder.force_flush()
    change(recording.recorder.path, statement)
    found = recording.trace()
    assert found.runs == ()
    assert any(reason in one for one in found.missing)
    assert len(found.spans) > 0
