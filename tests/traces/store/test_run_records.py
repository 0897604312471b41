"""Reading the complete records of runs: those that are there, and what is said of those that are not."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agents import set_trace_processors

from kantan_agents import Agent, Prompt, SQLiteRecorder, StoredTrace, TraceStore
from kantan_agents.testing import OfflineServer, ScriptedModel, ScriptedToolCall, assistant_message
from kantan_agents.traces.capture.canonical import canonical
from kantan_agents.traces.capture.reading import VERSION, run_record
from kantan_agents.traces.capture.writing import data_of

BEFORE = Path(__file__).parent.parent / "files" / "before_records.sql"
RULES = {"deny": ["remove"], "params": {"look": {"order_id": {"maxLength": 3}}}}


def look(order_id: str) -> str:
    """Look up an order."""
    return "in the yard"


def remove(order_id: str) -> str:
    """Remove an order."""
    raise AssertionError(order_id)


def run_support(question: str = "Where is 7?") -> None:
    """Run an agent that calls a tool, has a call refused, and calls a tool that its rules hide."""
    calls = [ScriptedToolCall("look", {"order_id": order}) for order in ("7", "7777")]
    prompt = Prompt("support", "v1", "Help {{ $ctx.shop.name }}.", meta={"owner": "me"})
    with OfflineServer([*calls, "In the yard."]) as server:
        agent = Agent("support", prompt, model=server.bundle(), tools=[look, remove])
        agent.run(question, {"shop": {"name": "Lantern"}, "tool_rules": RULES})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "traces.sqlite3"


@pytest.fixture
def record(path: Path) -> Iterator[Callable[..., TraceStore]]:
    """``record()``: record a run of ``run_support`` in the file."""

    def one(**options: Any) -> TraceStore:
        recorder = SQLiteRecorder(path, flush_on_sigterm=False, **options)
        set_trace_processors([recorder])
        try:
            run_support()
        finally:
            set_trace_processors([])
            recorder.shutdown()
        return TraceStore(path)

    yield one
    set_trace_processors([])


def change(path: Path, *statements: str, **values: Any) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement, values)


def test_a_complete_record_says_what_was_sent_and_decided(record: Callable[..., TraceStore]) -> None:
    trace = record().trace("LAST")
    assert trace.is_complete
    assert trace.missing == ()
    (run,) = trace.runs
    assert run.is_complete
    assert (run.agent, run.input, run.output, run.outcome) == (
        "support",
        "Where is 7?",
        "In the yard.",
        "finished",
    )
    (agent,) = run.agents
    assert agent.prompt is not None
    assert (agent.prompt.text, agent.prompt.meta) == ("Help {{ $ctx.shop.name }}.", {"owner": "me"})
    assert agent.context == {"shop.name": "Lantern"}
    first, second, third = trace.model_calls
    assert first.request.instructions == "Help Lantern."
    (tool,) = first.request.tools
    assert (tool.name, tool.description) == ("look", "Look up an order.")
    assert [len(call.request.input) for call in (first, second, third)] == [1, 3, 5]
    assert first.request.hash != second.request.hash
    done, refused = trace.tool_calls
    assert done.output == "in the yard"
    assert done.decision is not None
    assert done.decision.is_allowed
    assert refused.decision is not None
    assert (refused.decision.is_allowed, refused.decision.code) == (False, "E14")


def test_export_carries_the_records(record: Callable[..., TraceStore]) -> None:
    store = record()
    (exported,) = store.export()
    assert json.loads(json.dumps(exported, allow_nan=False)) == exported
    assert exported["missing"] == []
    (run,), (data,) = store.trace("LAST").runs, exported["runs"]
    read = run_record(data["run_id"], exported["trace_id"], data, nothing_shared)
    assert canonical(data_of(read)) == canonical(data_of(run))
    assert [call.request.hash for call in read.model_calls] == [call.request.hash for call in run.model_calls]


async def test_export_async_carries_the_records(path: Path) -> None:
    recorder = SQLiteRecorder(path, flush_on_sigterm=False)
    set_trace_processors([recorder])
    await Agent("a", "Help.", model=ScriptedModel([[assistant_message("Fine.")]])).run_async("How?")
    await recorder.force_flush_async()
    store = TraceStore(path)
    (exported,) = [trace async for trace in store.export_async()]
    recorder.shutdown()
    assert [exported] == list(store.export())
    assert exported["runs"][0]["model_calls"][0]["instructions"] == "Help."


def nothing_shared(place: int) -> Any:
    raise AssertionError(place)


def test_a_file_of_a_version_without_records_is_read_and_taken_over(
    path: Path, record: Callable[..., TraceStore]
) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(BEFORE.read_text(encoding="utf-8"))
    (old,) = TraceStore(path).traces()
    assert_only_the_record_is_missing(TraceStore(path).trace(old.trace_id), "recorded by an earlier version")
    store = record()
    assert store.trace("LAST").is_complete
    assert_only_the_record_is_missing(store.trace(old.trace_id), "recorded by an earlier version")
    assert store.traces()[1] == old
    assert [stats.texts for stats in store.prompts("support")] == [1]


def test_a_file_of_the_tracer_of_kantan_llm_is_read(traces: Any) -> None:
    run_support()
    assert_only_the_record_is_missing(TraceStore(traces.path).trace("LAST"), "it has no record")


def test_a_run_recorded_without_its_requests_says_so(record: Callable[..., TraceStore]) -> None:
    store = record(record_requests=False)
    assert_only_the_record_is_missing(store.trace("LAST"), "record_requests was off")
    (exported,) = store.export()
    assert (exported["runs"], len(exported["missing"])) == ([], 1)


def test_a_record_from_which_redact_left_out_parts_says_so(record: Callable[..., TraceStore]) -> None:
    def without_responses(span: dict[str, Any]) -> dict[str, Any] | None:
        return None if span.get("span_data", {}).get("type") == "response" else span

    trace = record(redact=without_responses).trace("LAST")
    (run,) = trace.runs
    assert trace.missing == (f"run {run.id}: parts were left out by the redact function",)
    assert not run.is_complete
    assert [call.request.instructions for call in run.model_calls] == [None] * 3

    def failing(span: dict[str, Any]) -> dict[str, Any]:
        raise ZeroDivisionError

    trace = record(redact=failing).trace("LAST")
    assert not trace.is_complete
    assert all(call.request.instructions is None for call in trace.model_calls)


async def test_a_run_that_has_not_ended_has_no_record(path: Path) -> None:
    recorder = SQLiteRecorder(path, flush_on_sigterm=False)
    set_trace_processors([recorder])
    seen: list[StoredTrace] = []

    async def look_at_the_file(run: Any, call_next: Any) -> None:
        await call_next(run)
        assert await recorder.force_flush_async()
        seen.append(await TraceStore(path).trace_async(run.trace_id))

    model = ScriptedModel([[assistant_message("Fine.")]])
    await Agent("a", "Help.", model=model, middleware=[look_at_the_file]).run_async("How?")
    set_trace_processors([])
    recorder.shutdown()
    (before,) = seen
    assert "it has no record: the process ended before it was written" in before.missing[0]
    assert TraceStore(path).trace("LAST").is_complete


def assert_only_the_record_is_missing(trace: StoredTrace, reason: str) -> None:
    assert not trace.is_complete
    (missing,) = trace.missing
    assert str(trace.summary.metadata["agent_run_id"]) in missing
    assert reason in missing
    assert trace.runs == trace.model_calls == trace.tool_calls == ()
    assert trace.summary.output == "In the yard."
    assert len(trace.spans) > 3


LATER = "UPDATE kantan_agents_runs SET body = json_set(body, '$.version', 99)"
DAMAGE = {
    "the record is no JSON": "UPDATE kantan_agents_runs SET body = '{'",
    "the record is no UTF-8": "UPDATE kantan_agents_runs SET body = CAST(x'7bff7d' AS TEXT)",
    "the record is other JSON": "UPDATE kantan_agents_runs SET body = '[1]'",
    "a part is missing": "UPDATE kantan_agents_runs SET body = json_remove(body, '$.model_calls')",
    "a part is of another type": "UPDATE kantan_agents_runs SET body = json_set(body, '$.agents', 'x')",
    "an agent is no object": "UPDATE kantan_agents_runs SET body = json_set(body, '$.agents', json('[1]'))",
    "a time is no time": "UPDATE kantan_agents_runs SET body = json_set(body, '$.started_at', 'noon')",
    "the contents are no list": "UPDATE kantan_agents_runs SET contents = '7'",
    "the contents are others": "UPDATE kantan_agents_runs SET contents = '[]'",
    "a content is gone": "DELETE FROM kantan_agents_contents WHERE kind = 'instructions'",
    "a content is no JSON": "UPDATE kantan_agents_contents SET body = 'x' WHERE kind = 'prompt'",
    "a content is no UTF-8": (
        "UPDATE kantan_agents_contents SET body = CAST(x'ff' AS TEXT) WHERE kind = 'prompt'"
    ),
    "a content is other JSON": "UPDATE kantan_agents_contents SET body = '7' WHERE kind = 'prompt'",
}


@pytest.mark.parametrize("statement", DAMAGE.values(), ids=DAMAGE)
def test_of_a_damaged_record_nothing_else_is_lost(
    record: Callable[..., TraceStore], path: Path, statement: str
) -> None:
    store = record()
    before = store.trace("LAST")
    change(path, statement)
    damaged = store.trace("LAST")
    assert damaged.runs == ()
    assert not damaged.is_complete
    assert f"the record of run {before.runs[0].id} cannot be read: it is damaged" in damaged.missing
    assert (damaged.summary, damaged.spans) == (before.summary, before.spans)
    (stats,) = store.prompts()
    assert stats.runs == 1
    assert [exported["runs"] for exported in store.export()] == [[]]


def test_a_record_of_a_later_format_says_so(record: Callable[..., TraceStore], path: Path) -> None:
    store = record()
    run = store.trace("LAST").runs[0]
    change(path, LATER)
    trace = store.trace("LAST")
    reason = f"its format is 99, this version reads up to {VERSION}"
    assert f"the record of run {run.id} cannot be read: {reason}" in trace.missing
    assert trace.summary.output == "In the yard."


def test_the_other_runs_of_a_trace_are_read_beside_a_damaged_one(
    record: Callable[..., TraceStore], path: Path
) -> None:
    store = record()
    (run,) = store.trace("LAST").runs
    change(
        path,
        "INSERT INTO kantan_agents_runs(trace_id, run_id, contents, body) "
        "SELECT trace_id, x'0102', '[]', '{' FROM kantan_agents_runs",
    )
    trace = store.trace("LAST")
    assert trace.runs == (run,)
    assert trace.missing == ("the record of run 0102 cannot be read: it is damaged",)
