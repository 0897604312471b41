"""What runs, processes and files must not take from each other: values, results, traces, contents."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import agents
import anyio
import pytest
from agents.tracing import get_trace_provider

from kantan_agents import RUBRIC, Agent, Middleware, TraceStore, record_traces
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab import (
    Case,
    Dataset,
    Evaluation,
    FinishedCase,
    Progress,
    Score,
    evaluate,
    evaluate_async,
    evaluator,
)
from kantan_agents.lab.evaluation.evaluators import judged
from kantan_agents.lab.evaluation.experiment.rows import RatedScore
from kantan_agents.lab.evaluation.experiment.write_rows import write_result, write_scores
from kantan_agents.middleware import Redact
from kantan_agents.testing import OfflineServer, ScriptedModel, ScriptedToolCall
from kantan_agents.traces.backend import backend_of
from kantan_agents.traces.store.connection import changing, transaction
from tests.lab.evaluation.experiment.counting import Asked, length, words
from tests.postgres_server import execute

KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"


def everything_in(path: Path) -> str:
    """Return all that the tables of evaluations and traces contain, as one text."""
    backend = backend_of(path)
    if backend.file is None:
        tables = execute(backend.text, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        return "\n".join(str(execute(backend.text, f"SELECT * FROM {table}")) for (table,) in tables)
    with closing(sqlite3.connect(path)) as connection:
        return "\n".join(connection.iterdump())


# ---- values


def test_a_run_does_not_change_the_context_of_another_one(store: TraceStore) -> None:
    seen: list[int] = []

    class Note(Middleware):
        async def run(self, run: Any, call_next: Any) -> None:
            run.context["notes"].append("x")
            seen.append(len(run.context["notes"]))
            await call_next(run)

    agent = Agent("a", "b", model=ScriptedModel(lambda _call: "x"), middleware=[Note()])
    given: dict[str, Any] = {"notes": [], "lock": anyio.Lock()}
    evaluate(agent, words("a", "b", "c"), context=given)
    assert seen == [1, 1, 1]
    assert given["notes"] == []


def test_an_evaluator_does_not_change_the_case_for_others(store: TraceStore) -> None:
    @evaluator(version="1")
    def greedy(finished: FinishedCase) -> int:
        finished.expected.append("more")
        return len(finished.expected)

    dataset = Dataset("d", [Case("x", id="1", expected=["one"])])
    evaluation = evaluate(Asked().agent, dataset, greedy, repeats=3)
    assert [one.scores["greedy"].value for one in evaluation.results] == [2.0, 2.0, 2.0]
    assert dataset["1"].expected == ["one"]


def test_handlers_of_the_agent_receive_the_events_of_its_runs(store: TraceStore) -> None:
    asked = Asked()
    seen: list[str] = []
    with asked.agent.subscribe(lambda event: seen.append(event.type)):
        evaluate(asked.agent, words("a", "b"))
    assert seen.count("run_finished") == 2
    seen.clear()
    asked.agent.run("after")
    assert seen == []


# ---- results


def test_results_that_come_after_a_prune_are_kept(store: TraceStore) -> None:
    asked = Asked()
    evaluate(asked.agent, words("old"), length, name="e")
    evaluation = Evaluation.load(store, "e")

    def prune(progress: Progress) -> None:
        if progress.done == 2:
            store.prune(older_than=timedelta(0))

    evaluate(asked.agent, words("old", "a", "b", "c"), length, name="e", concurrency=1, progress=prune)
    left = {one.case_id for one in Evaluation.load(store, "e").results}
    assert {"b", "c"} <= left
    assert evaluation.name == "e"
    asked.questions.clear()
    evaluate(asked.agent, words("old", "a", "b", "c"), length, name="e")
    assert set(asked.questions) == {"old", "a", "b", "c"} - left


def test_a_finished_result_of_another_process_stays_with_its_scores(store: TraceStore) -> None:
    evaluation = evaluate(Asked().agent, words("x"), length, name="e")
    (first,) = evaluation.results
    variant = evaluation.row.body["variants"]["shout v1"]["hash"]
    with changing(store.path) as connection, transaction(connection):
        late = evaluation.results[0].__class__(
            **{
                name: getattr(first, name)
                for name in ("case_id", "case_hash", "conversation", "variant", "repeat")
            },
            status="failed",
            output=None,
            error="late",
            trace_id="trace_late",
            seconds=0.0,
            input_tokens=0,
            output_tokens=0,
            cost=None,
            model_calls=0,
        )
        assert write_result(connection, evaluation.row, Case("x", id="x"), variant, late) is None
        row = connection.execute("SELECT id FROM kantan_agents_evaluation_results").fetchone()[0]
        write_scores(
            connection, row, [RatedScore("length", Score(99.0), "", "length", "9")], trace_id="trace_late"
        )
    (kept,) = Evaluation.load(store, "e").results
    assert (kept.status, kept.output, kept.scores["length"].value) == ("finished", "X", 1.0)


# ---- traces


async def test_evaluations_at_once_record_all_their_runs_and_leave_no_processor(tmp_path: Path) -> None:
    agents.set_trace_processors([])
    path, other = tmp_path / "one.sqlite3", tmp_path / "two.sqlite3"
    found: list[Evaluation] = []

    async def make(name: str, store: Path, size: int) -> None:
        dataset = words(*map(str, range(size)))
        found.append(await evaluate_async(Asked().agent, dataset, name=name, store=store, concurrency=2))

    async with anyio.create_task_group() as group:
        group.start_soon(make, "short", path, 3)
        group.start_soon(make, "long", path, 20)
        group.start_soon(make, "elsewhere", other, 10)
    for evaluation in found:
        recorded = {one.trace_id for one in TraceStore(evaluation.path).traces(limit=None)}
        assert {one.trace_id for one in evaluation.results} <= recorded
    assert get_trace_provider()._multi_processor._processors == ()  # type: ignore[attr-defined]


def test_a_recorder_that_is_set_up_meanwhile_stays(tmp_path: Path) -> None:
    agents.set_trace_processors([])
    main = tmp_path / "main.sqlite3"
    made: list[Any] = []

    def begin(progress: Progress) -> None:
        if not made:
            made.append(record_traces(main))

    evaluate(Asked().agent, words("a", "b"), store=tmp_path / "other.sqlite3", concurrency=1, progress=begin)
    Asked().agent.run("hello")
    made[0].force_flush()
    assert "hello" in [one.input for one in TraceStore(main).traces(limit=None)]
    made[0].shutdown()


# ---- contents


def test_secrets_are_masked_wherever_an_evaluation_stores_them(store: TraceStore) -> None:
    @evaluator(version="1")
    def careless(finished: FinishedCase) -> Any:
        return {
            "said": Score(1.0, label=f"has {KEY}", comment=f"it has {KEY}"),
            "raised": Score(None, error=KEY),
        }

    @evaluator(version="1")
    def broken(finished: FinishedCase) -> Any:
        raise ValueError(f"no {KEY}")

    case = Case(f"use {KEY}", id="1", context={"key": KEY}, expected=KEY, metadata={"key": KEY})
    agent = Agent("a", "Use {{ $ctx.key }}.", model=ScriptedModel(lambda _call: f"used {KEY}"))
    evaluate(agent, Dataset("d", [case]), [careless, broken])
    assert KEY not in everything_in(store.path)


@pytest.mark.parametrize(
    "private",
    [
        {"run_config": {"trace_include_sensitive_data": False}},
        {"run_config": {"tracing_disabled": True}},
        {"middleware": [Redact(["email"])]},
    ],
)
def test_what_the_trace_does_not_have_is_not_among_the_results(store: TraceStore, private: Any) -> None:
    @evaluator(version="1")
    def quoting(finished: FinishedCase) -> Score:
        return Score(1.0, comment=finished.text)

    options = {key: value for key, value in private.items() if key == "run_config"}
    model = ScriptedModel(lambda _call: "write to aiko@example.com")
    agent = Agent("a", "b", model=model, middleware=private.get("middleware", ()))
    judge = judged(
        Agent(
            "judge",
            "c",
            model=ScriptedModel(lambda _call: '{"score": 1, "comments": ["mail bo@example.com"]}'),
            output_type=RUBRIC,
        )
    )
    case = Case("I am bo@example.com", id="1", expected="bo@example.com")
    evaluation = evaluate(agent, Dataset("d", [case]), [quoting, judge], name="e", **options)
    (result,) = evaluation.results
    assert result.is_withheld and result.output is None
    assert {metric: score.value for metric, score in result.scores.items()} == {"quoting": 1.0, "judge": 1.0}
    stored = everything_in(store.path)
    assert "aiko@example.com" not in stored and "bo@example.com" not in stored
    evaluate(agent, Dataset("d", [case]), [quoting, judge, length], name="e", **options)
    (again,) = Evaluation.load(store, "e").results
    assert again.scores["length"].value in (25.0, len("write to [EMAIL]"))


def test_one_agent_that_redacts_among_those_that_are_reached_is_enough(store: TraceStore) -> None:
    target = Agent("target", "b", model=ScriptedModel(lambda _call: "x"), middleware=[Redact(["email"])])
    agent = Agent("root", "a", model=ScriptedModel(lambda _call: "mail aiko@example.com"), handoffs=[target])
    (result,) = evaluate(agent, words("who?")).results
    assert result.is_withheld and result.output is None


def test_with_a_recorder_that_redacts_contents_are_not_stored(tmp_path: Path) -> None:
    path = tmp_path / "traces.sqlite3"
    recorder = record_traces(
        path, redact=lambda data: {**data, "span_data": {"type": "custom"}, "metadata": None}
    )
    evaluate(Asked().agent, Dataset("d", [Case("very private", id="1")]), length, store=path)
    recorder.shutdown()
    assert "very private" not in everything_in(path) and "VERY PRIVATE" not in everything_in(path)


# ---- errors of callbacks


def test_an_error_of_the_progress_callback_is_logged_and_breaks_nothing(
    store: TraceStore, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(progress: Progress) -> None:
        raise RuntimeError("no terminal")

    assert len(evaluate(Asked().agent, words("a", "b"), progress=broken)) == 2
    assert "progress callback failed" in caplog.text


def test_an_exit_in_an_evaluator_is_raised_as_it_is_and_keeps_what_is_done(store: TraceStore) -> None:
    @evaluator(version="1")
    def leaving(finished: FinishedCase) -> float:
        if finished.case.id == "b":
            raise SystemExit(3)
        return 1.0

    with pytest.raises(SystemExit) as info:
        evaluate(Asked().agent, words("a", "b"), leaving, concurrency=1, name="e")
    assert info.value.code == 3
    assert [one.case_id for one in Evaluation.load(store, "e").results] == ["a", "b"]


# ---- budget


def test_a_run_that_fails_before_it_asks_a_model_says_nothing_about_the_cost(store: TraceStore) -> None:
    class FailFirst(Middleware):
        calls = 0

        async def run(self, run: Any, call_next: Any) -> None:
            FailFirst.calls += 1
            if FailFirst.calls == 1:
                raise ValueError("first")
            await call_next(run)

    with OfflineServer(lambda _request: "fine") as server:  # 15 tokens for each answer
        agent = Agent("a", "b", model=server.bundle(), middleware=[FailFirst()])
        evaluation = evaluate(agent, words(*map(str, range(12))), max_tokens=30, concurrency=10)
    assert sum(one.tokens for one in evaluation.results) <= 30


# ---- arguments


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"dataset": [Case("x")]}, "dataset"),
        ({"dataset": "cases.jsonl"}, "dataset"),
        ({"evaluators": None}, "evaluators"),
        ({"evaluators": "exact"}, "evaluators"),
        ({"context": "x"}, "context"),
        ({"retry": 3}, "retry"),
        ({"progress": 3}, "progress"),
        ({"prices": [1]}, "prices"),
    ],
)
def test_an_argument_of_another_kind_is_named(store: TraceStore, options: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {"dataset": words("x"), **options}
    with pytest.raises(InvalidOptionError, match=says):
        evaluate(Asked().agent, **given)


def test_a_retry_of_tools_belongs_to_the_agent(store: TraceStore) -> None:
    from kantan_agents.middleware import Retry

    with pytest.raises(InvalidOptionError, match="for tools"):
        evaluate(Asked().agent, words("x"), retry=Retry(tools=["search"]))


def test_a_run_with_a_tool_call_is_scored_in_each_repeat(store: TraceStore) -> None:
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    with OfflineServer([ScriptedToolCall("add", {"a": 1, "b": 2}), "3"] * 2) as server:
        agent = Agent("a", "b", model=server.bundle(), tools=[add])
        evaluation = evaluate(agent, words("x"), length, repeats=2, concurrency=1)
    assert [len(one.tool_calls) for one in evaluation.results] == [1, 1]
