"""Comparing the versions of prompts."""

from __future__ import annotations

import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import agents
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import RUBRIC, Agent, Prompt, PromptStats, TraceStore
from kantan_agents.errors import InvalidOptionError
from kantan_agents.testing import (
    OfflineServer,
    ScriptedModel,
    ScriptedToolCall,
    assistant_message,
    function_call,
)
from kantan_agents.traces.store.prompts import nearest_rank
from tests.traces.store.sample_database import SampleDatabase, open_sample


def replying(*texts: str) -> Any:
    return ScriptedModel([[assistant_message(text)] for text in texts])


def by_version(found: list[PromptStats]) -> dict[tuple[str, str | None], PromptStats]:
    return {(stats.prompt_name, stats.prompt_version): stats for stats in found}


def prompt(name: str, version: str = "v1") -> Prompt:
    return Prompt(name, version, "text")


async def test_runs_failures_tokens_and_verdicts_are_counted_for_the_version_that_ran(traces: Any) -> None:
    def fail() -> str:
        """Fail."""
        raise RuntimeError("tool broke")

    with OfflineServer([ScriptedToolCall("fail", {}), "recovered", "fine"]) as server:
        first = Agent("a", prompt("support"), model=server.bundle(), tools=[fail])
        await first.run_async("one")
        await first.run_async("two")
    second = Agent("a", prompt("support", "v2"), model=ScriptedModel([ConnectionError("gone")]))
    with pytest.raises(ConnectionError):
        await second.run_async("three")
    store = TraceStore(traces.path)
    _, newer, older = store.traces()
    for judged, score in ((older, 0.25), (newer, 0.75), (older, 0.5)):
        verdict = replying(f'{{"score": {score}, "comments": []}}')
        judge = Agent(
            "judge",
            prompt("quality"),
            model=verdict,
            output_type=RUBRIC,
            metadata={"judged_trace_id": judged.trace_id},
        )
        await judge.run_async("Judge.")

    found = by_version(store.prompts())
    assert [*found] == [("quality", "v1"), ("support", "v1"), ("support", "v2")]
    support = found["support", "v1"]
    assert (support.runs, support.failures, support.scores, support.mean_score) == (2, 0, 3, 0.5)
    assert (support.input_tokens, support.output_tokens, support.total_tokens) == (30, 15, 45)
    assert (support.first_run, support.last_run) == (older.started_at, newer.started_at)
    assert [support.latency_p50, support.latency_p95] == sorted([older.duration or 0, newer.duration or 0])
    failing = found["support", "v2"]
    assert (failing.runs, failing.failures, failing.latency_p50, failing.mean_score) == (1, 1, None, None)
    assert found["quality", "v1"].scores == 0
    assert store.prompts("support") == [support, failing]
    assert store.prompts("nothing") == []


async def test_plain_instructions_count_for_the_agents_name_without_a_version(traces: Any) -> None:
    await Agent("plain", "Be kind.", model=replying("x")).run_async("hi")
    (stats,) = TraceStore(traces.path).prompts()
    assert (stats.prompt_name, stats.prompt_version, stats.runs) == ("plain", None, 1)


async def test_each_run_in_an_open_trace_counts_for_its_own_prompt(traces: Any) -> None:
    with agents.trace("request"), OfflineServer(["one", "two"]) as server:
        await Agent("a", prompt("p"), model=server.bundle()).run_async("hi")
        await Agent("a", prompt("p"), model=server.bundle()).run_async("hi")
        with pytest.raises(ConnectionError):
            await Agent("b", prompt("q"), model=ScriptedModel([ConnectionError("gone")])).run_async("hi")
    found = by_version(TraceStore(traces.path).prompts())
    assert (found["p", "v1"].runs, found["p", "v1"].failures, found["p", "v1"].total_tokens) == (2, 0, 30)
    assert (found["q", "v1"].runs, found["q", "v1"].failures) == (1, 1)
    assert found["p", "v1"].latency_p50 is not None
    assert found["q", "v1"].latency_p50 is None


@pytest.mark.parametrize("opened", [False, True])
async def test_a_run_inside_a_run_counts_once_with_its_own_tokens_only(traces: Any, opened: bool) -> None:
    async def ask() -> str:
        """Ask another."""
        with OfflineServer(["inner answer"]) as server:
            await Agent("inner", prompt("inner"), model=server.bundle()).run_async("inner question")
        return "done"

    with OfflineServer([ScriptedToolCall("ask", {}), "outer answer"]) as server:
        outer = Agent("outer", prompt("outer"), model=server.bundle(), tools=[ask])
        if opened:
            with agents.trace("request"):
                await outer.run_async("hi")
        else:
            await outer.run_async("hi")
    store = TraceStore(traces.path)
    found = by_version(store.prompts())
    assert {name: (stats.runs, stats.total_tokens) for (name, _), stats in found.items()} == {
        "inner": (1, 15),
        "outer": (1, 30),
    }
    assert sum(stats.total_tokens for stats in found.values()) == store.trace("LAST").summary.total_tokens
    assert store.prompts("inner") == [found["inner", "v1"]]


@pytest.mark.parametrize("opened", [False, True])
async def test_a_hand_off_belongs_to_the_run_that_was_started(traces: Any, opened: bool) -> None:
    target = Agent("target", prompt("expert"), model=replying("from the target"))
    call = ScriptedModel([[function_call("transfer_to_target", {}, call_id="c")]])
    front = Agent("front", prompt("front"), model=call, handoffs=[target])
    if opened:
        with agents.trace("request"):
            await front.run_async("hi")
    else:
        await front.run_async("hi")
    assert [(s.prompt_name, s.runs) for s in TraceStore(traces.path).prompts()] == [("front", 1)]


async def test_a_verdict_that_names_no_answer_counts_for_its_own_run(traces: Any) -> None:
    verdict = replying('{"score": 0.5, "comments": []}', '{"score": 1.0, "comments": []}')
    judge = Agent("judge", prompt("quality"), model=verdict, output_type=RUBRIC)
    await judge.run_async("Judge.")
    with agents.trace("request"):
        await judge.run_async("Judge.")
    (stats,) = TraceStore(traces.path).prompts()
    assert (stats.runs, stats.scores, stats.mean_score) == (2, 2, 0.75)


def test_a_verdict_on_a_deleted_answer_counts_for_no_prompt(db: SampleDatabase, store: TraceStore) -> None:
    db.judge(db.run(prompt_name="quality", judged_trace_id="trace_gone"), 0.5)
    assert [stats.scores for stats in store.prompts()] == [0]


def test_a_verdict_in_an_open_trace_counts_for_the_answer_it_names(
    db: SampleDatabase, store: TraceStore
) -> None:
    answer = db.trace()
    db.inner_run(answer, agent_run_id="r1", prompt_name="support")
    judge_trace = db.trace()
    run = db.inner_run(judge_trace, agent_run_id="r2", prompt_name="quality", judged_trace_id=answer)
    db.judge(judge_trace, 0.25, parent=run)
    db.judge(answer, 0.75)  # a judge without a run, in the trace of the answer
    found = by_version(store.prompts())
    assert (found["support", None].scores, found["support", None].mean_score) == (2, 0.5)
    assert found["quality", None].scores == 0


def test_versions_are_in_the_order_of_their_first_runs(db: SampleDatabase, store: TraceStore) -> None:
    for name, version in [("b", "v2"), ("b", "v10"), ("a", "v1"), ("b", "v2"), ("b", "v1"), ("b", None)]:
        db.run(prompt_name=name, prompt_version=version)
    found = [(stats.prompt_name, stats.prompt_version) for stats in store.prompts()]
    assert found == [("a", "v1"), ("b", "v2"), ("b", "v10"), ("b", "v1"), ("b", None)]


def test_an_unfinished_run_has_no_latency_and_no_failure(db: SampleDatabase, store: TraceStore) -> None:
    trace_id = db.trace(metadata={"prompt_name": "p", "agent_run_id": "r"})
    (empty,) = store.prompts()
    assert (empty.runs, empty.failures, empty.latency_p50, empty.first_run) == (1, 0, None, None)
    db.tool(trace_id, "search", parent="x", error={"message": "broke", "data": None})
    (stats,) = store.prompts()
    assert (stats.runs, stats.failures, stats.latency_p50) == (1, 0, None)
    assert stats.first_run is not None


def test_traces_of_other_programs_with_a_prompt_name_count(db: SampleDatabase, store: TraceStore) -> None:
    trace_id = db.trace(metadata={"prompt_name": "lab", "prompt_version": 3})
    db.span(trace_id, "response", seconds=4, usage={"input_tokens": 1, "output_tokens": 2})
    (stats,) = store.prompts()
    assert (stats.prompt_version, stats.latency_p50, stats.total_tokens) == ("3", 4.0, 3)


def test_runs_without_a_prompt_are_not_counted(db: SampleDatabase, store: TraceStore) -> None:
    db.run(prompt_name=5)
    around = db.run()
    db.inner_run(around, agent_run_id="r", prompt_name=["p"])
    db.inner_run(around, prompt_name="no run id")
    db.judge(around, 0.5)
    assert store.prompts() == []


@pytest.mark.file_only
def test_invalid_times_are_ignored(db: SampleDatabase, store: TraceStore) -> None:
    db.run(prompt_name="p")
    with db.tracer._conn as connection:
        connection.execute("UPDATE spans SET started_at = 'yesterday', ended_at = 5")
    (stats,) = store.prompts()
    assert (stats.runs, stats.first_run, stats.latency_p50) == (1, None, None)
    assert store.trace("LAST").summary.started_at is None


@pytest.mark.parametrize("name", [5, "\ud83d"])
def test_a_prompt_name_that_is_not_a_valid_str_is_an_error(
    db: SampleDatabase, store: TraceStore, name: Any
) -> None:
    with pytest.raises(InvalidOptionError, match="prompt"):
        store.prompts(name)


RUN = st.fixed_dictionaries(
    {
        "version": st.sampled_from(["v1", "v2"]),
        "seconds": st.integers(1, 50),
        "failed": st.booleans(),
        "tokens": st.integers(0, 9),
        "scores": st.lists(st.sampled_from([0.0, 0.25, 1.0]), max_size=2),
        "inside": st.booleans(),
    }
)


@given(st.lists(RUN, max_size=8))
def test_the_statistics_equal_those_of_a_scan_of_all_runs(runs: list[dict[str, Any]]) -> None:
    with TemporaryDirectory() as directory, open_sample(Path(directory) / "t.db") as database:
        for number, run in enumerate(runs):
            write(database, number, run)
        found = by_version(TraceStore(database.path).prompts("p"))
    assert [*found] == [("p", version) for version in dict.fromkeys(run["version"] for run in runs)]
    for (_, version), stats in found.items():
        own = [run for run in runs if run["version"] == version]
        seconds = sorted(run["seconds"] for run in own if not run["failed"])
        scores = [score for run in own for score in run["scores"]]
        assert stats.runs == len(own)
        assert stats.failures == sum(run["failed"] for run in own)
        assert stats.input_tokens == stats.total_tokens == sum(run["tokens"] for run in own)
        assert (stats.scores, stats.mean_score) == (
            len(scores),
            sum(scores) / len(scores) if scores else None,
        )
        assert stats.latency_p50 == (seconds[(len(seconds) + 1) // 2 - 1] if seconds else None)
        assert stats.latency_p95 == (seconds[-1] if seconds else None)


def write(database: SampleDatabase, number: int, run: dict[str, Any]) -> None:
    metadata = {"agent_run_id": f"r{number}", "prompt_name": "p", "prompt_version": run["version"]}
    error = {"message": "gone", "data": None} if run["failed"] else None
    trace_id = database.trace(metadata={} if run["inside"] else metadata)
    parent = None
    if run["inside"]:
        parent = database.span(
            trace_id, "custom", name="agent_run", data=metadata, error=error, seconds=run["seconds"]
        )
    usage = {"input_tokens": run["tokens"], "output_tokens": 0}
    database.span(trace_id, "response", parent=parent or "turn", seconds=run["seconds"], usage=usage)
    database.span(trace_id, parent=parent, error=error)
    for score in run["scores"]:
        database.judge(trace_id, score, parent=parent)


@given(st.lists(st.floats(0, 1e6), min_size=1), st.integers(1, 100))
def test_a_percentile_is_the_smallest_value_that_enough_values_do_not_exceed(
    values: list[float], percent: int
) -> None:
    rank = nearest_rank(values, percent)
    assert rank in values
    enough = math.ceil(len(values) * percent / 100)
    assert sum(value <= rank for value in values) >= enough > sum(value < rank for value in values)


def test_the_percentile_of_no_values_is_none() -> None:
    assert nearest_rank([], 50) is None
