"""What ``evaluate`` runs, scores and stores."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import agents
import anyio
import anyio.to_thread
import pytest
from kantan_llm.tracing.analysis import find_failed_judges

from kantan_agents import Agent, Middleware, Prompt, SQLiteRecorder, TraceStore, record_traces
from kantan_agents.errors import (
    EmptyDatasetError,
    EvaluationNotFoundError,
    HeldOutDatasetError,
    InvalidOptionError,
    TraceDatabaseError,
)
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
from kantan_agents.middleware import Approve, Retry
from kantan_agents.testing import OfflineServer, RecordedCall, Reply, ScriptedModel, ScriptedToolCall
from kantan_agents.traces import registry
from tests.lab.evaluation.experiment.counting import Asked, is_loud, length, words


def scored(evaluation: Evaluation, variant: str, metric: str) -> list[float | None]:
    return [one.scores[metric].value for one in evaluation[variant].results]


@pytest.fixture
def held_shutdown(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """The first is set when a recorder is shut down, which waits for the second."""
    begun, go_on = threading.Event(), threading.Event()
    write = SQLiteRecorder.shutdown

    def held(self: SQLiteRecorder) -> None:
        begun.set()
        assert go_on.wait(20)
        write(self)

    monkeypatch.setattr(SQLiteRecorder, "shutdown", held)
    return begun, go_on


# ---- runs and results


def test_each_case_is_run_with_each_variant_and_scored(store: TraceStore) -> None:
    loud, quiet = Asked(), Asked(version="v2", answer=str.lower)
    evaluation = evaluate([loud.agent, quiet.agent], words("One", "Three"), [length, is_loud])
    assert evaluation.variants == ("shout v1", "shout v2")
    assert [(one.case_id, one.variant, one.output) for one in evaluation.results] == [
        ("One", "shout v1", "ONE"),
        ("One", "shout v2", "one"),
        ("Three", "shout v1", "THREE"),
        ("Three", "shout v2", "three"),
    ]
    assert scored(evaluation, "shout v1", "is_loud") == [1.0, 1.0]
    assert scored(evaluation, "shout v2", "is_loud") == [0.0, 0.0]
    assert evaluation["shout v2"].mean("length") == 4.0
    assert (len(evaluation), evaluation.planned, evaluation.stopped) == (4, 4, None)


def test_every_run_is_a_recorded_run_that_names_what_it_is_for(store: TraceStore) -> None:
    evaluation = evaluate(Asked().agent, words("hi"), length, name="first", repeats=2)
    for repeat, result in enumerate(evaluation.results):
        trace = store.trace(str(result.trace_id))
        assert trace.summary.metadata["kantan_agents_experiment"] == "first"
        assert trace.summary.metadata["kantan_agents_case"] == "hi"
        assert trace.summary.metadata["kantan_agents_variant"] == "shout v1"
        assert trace.summary.metadata["kantan_agents_repeat"] == repeat
        assert (trace.summary.input, trace.summary.output, trace.missing) == ("hi", "HI", ())


def test_the_result_of_a_run_has_its_tool_calls_tokens_cost_and_time(store: TraceStore) -> None:
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    seen: list[FinishedCase] = []

    @evaluator(version="1")
    def note(finished: FinishedCase) -> None:
        seen.append(finished)

    with OfflineServer([ScriptedToolCall("add", {"a": 1, "b": 2}), "It is 3."]) as server:
        agent = Agent("adder", "Add.", model=server.bundle(), tools=[add])
        prices = {"offline-model": (1_000_000.0, 2_000_000.0)}
        (result,) = evaluate(agent, words("1 + 2"), note, prices=prices).results
    (call,) = result.tool_calls
    assert (call.name, call.arguments, call.output, call.is_denied) == ("add", {"a": 1, "b": 2}, "3", False)
    assert (result.input_tokens, result.output_tokens, result.model_calls) == (20, 10, 2)
    assert result.cost == 40.0
    assert result.seconds > 0
    assert seen[0].tool_calls == result.tool_calls and seen[0].text == "It is 3."


def test_calls_of_delegated_agents_and_refused_calls_are_among_the_tool_calls(store: TraceStore) -> None:
    def look(what: str) -> str:
        """Look something up."""
        return f"seen {what}"

    def drop(what: str) -> str:
        """Delete something."""
        raise AssertionError(what)

    inner = Agent(
        "inner",
        "Look.",
        model=ScriptedModel([[ScriptedToolCall("look", {"what": "x"})], "done"]),
        tools=[look],
    )
    model = ScriptedModel(
        [[ScriptedToolCall("ask", {"input": "go"}), ScriptedToolCall("drop", {"what": "y"})], "ok"]
    )
    outer = Agent("outer", "Delegate.", model=model, tools=[inner.as_tool("ask", "Ask."), drop])
    context = {"tool_rules": {"deny": ["drop"]}}
    (result,) = evaluate(outer, words("go"), context=context).results
    calls = {call.name: call for call in result.tool_calls}
    assert calls.keys() == {"ask", "look", "drop"}
    assert (calls["look"].agent, calls["look"].output) == ("inner", "seen x")
    assert calls["drop"].is_denied


def test_the_context_of_a_case_is_there_for_its_run_and_stays_as_it_is(store: TraceStore) -> None:
    seen: list[str] = []

    def reply(call: Any) -> str:
        seen.append(call.system_instructions)
        return "fine"

    agent = Agent("a", "For {{ $ctx.user.name }} in {{ $ctx.city }}.", model=ScriptedModel(reply))
    case = Case("hi", id="1", context={"user": {"name": "Aiko"}})
    evaluate(agent, Dataset("d", [case]), context={"city": "Oslo", "user": {"name": "nobody"}})
    assert seen == ["For Aiko in Oslo."]
    assert case.context == {"user": {"name": "Aiko"}}


def test_a_conversation_can_be_the_input_of_a_case(store: TraceStore) -> None:
    items = [{"role": "user", "content": "Hello"}, {"role": "user", "content": "Bye"}]
    agent = Agent("a", "b", model=ScriptedModel(lambda call: str(len(call.input))))
    (result,) = evaluate(agent, Dataset("d", [Case(items, id="1")])).results
    assert result.output == "2"


def test_half_a_character_in_one_case_costs_no_other(store: TraceStore) -> None:
    cases = Dataset("halves", [Case("half \ud83d"), Case("whole")])
    agent = Agent("a", "Hi", model=ScriptedModel(lambda _: "ok"), tool_providers=None)
    found = evaluate(agent, cases, [words], name="halves", store=store)
    assert [one.status for one in found["a"].results] == ["finished"] * 2


def test_a_structured_output_is_json_data_for_evaluators(store: TraceStore) -> None:
    from pydantic import BaseModel

    class Answer(BaseModel):
        city: str

    @evaluator(version="1")
    def city(finished: FinishedCase) -> bool:
        return bool(finished.output == {"city": "Oslo"})

    agent = Agent("a", "b", model=ScriptedModel(['{"city": "Oslo"}']), output_type=Answer)
    evaluation = evaluate(agent, words("where?"), city)
    assert scored(evaluation, "a", "city") == [1.0]


def test_prompts_are_given_to_the_agent_and_have_their_names_as_versions(store: TraceStore) -> None:
    asked = Asked()
    variants: dict[str, Any] = {
        "now": asked.agent,
        "new": "Whisper.",
        "other": Prompt("other", "v9", "Sing."),
    }
    evaluation = evaluate(variants, words("a"), agent=asked.agent)
    versions = {one.variant: store.trace(str(one.trace_id)).summary.metadata for one in evaluation.results}
    assert versions["now"]["prompt_version"] == "v1"
    assert (versions["new"]["prompt_name"], versions["new"]["prompt_version"]) == ("shout", "new")
    assert versions["other"]["prompt_name"] == "other"


def test_which_variant_is_first_is_drawn_for_each_case(store: TraceStore) -> None:
    first: list[str] = []

    def reply(call: RecordedCall) -> str:
        first.append(str(call.system_instructions))
        return "Fine."

    agent = Agent("a", Prompt("p", "v1", "One."), model=ScriptedModel(reply))
    dataset = words(*map(str, range(40)))
    variants = {f"v{number}": f"Text {number}." for number in range(3)}
    evaluate(variants, dataset, agent=agent, concurrency=1)
    begins = [first[place] for place in range(0, 120, 3)]
    assert {tuple(sorted(first[place : place + 3])) for place in range(0, 120, 3)} == {
        ("Text 0.", "Text 1.", "Text 2.")
    }
    assert all(5 <= begins.count(f"Text {number}.") <= 25 for number in range(3))


async def test_a_run_has_a_trace_of_its_own_inside_a_trace_of_the_caller(store: TraceStore) -> None:
    with agents.trace("mine") as outer:
        evaluation = await evaluate_async(Asked().agent, words("a", "b"), length)
        assert agents.get_current_trace() is outer
    traces = {one.trace_id for one in evaluation.results}
    assert len(traces) == 2 and outer.trace_id not in traces


async def test_no_more_runs_are_made_at_the_same_time_than_allowed(store: TraceStore) -> None:
    running, most = 0, 0

    class Count(Middleware):
        async def model_call(self, call: Any, call_next: Any) -> Any:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await anyio.sleep(0.01)
            running -= 1
            return await call_next(call)

    agent = Agent("a", "b", model=ScriptedModel(lambda _call: "x"), middleware=[Count()])
    await evaluate_async(agent, words(*map(str, range(12))), concurrency=3)
    assert most == 3


def test_progress_is_reported_up_to_the_last_run(store: TraceStore) -> None:
    seen: list[Progress] = []
    evaluate(Asked().agent, words("a", "b"), length, progress=seen.append)
    assert [(one.done, one.total) for one in seen] == [(0, 2), (1, 2), (2, 2)]


# ---- failures


def test_a_run_that_fails_is_a_failed_result_without_scores(store: TraceStore) -> None:
    def answer(question: str) -> str:
        if question == "bad":
            raise ValueError("it broke, sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH")
        return question

    evaluation = evaluate(Asked(answer=answer).agent, words("good", "bad"), length)
    good, bad = evaluation.results
    assert (good.status, bad.status, bad.output) == ("finished", "failed", None)
    assert bad.error is not None and "it broke" in bad.error and "abcdefghij" not in bad.error
    assert dict(bad.scores) == {}
    assert evaluation.failed == (bad,)
    assert evaluation.stopped is None


def test_an_evaluator_that_raises_gives_a_failed_score_and_the_others_count(store: TraceStore) -> None:
    @evaluator(version="1")
    def broken(finished: FinishedCase) -> float:
        raise KeyError("nothing")

    evaluation = evaluate(Asked().agent, words("a"), [broken, length])
    (result,) = evaluation.results
    assert result.scores["broken"] == Score(None, error="KeyError: 'nothing'")
    assert result.scores["length"].value == 1.0
    assert evaluation["shout v1"].mean("broken") is None


def test_a_run_that_waits_for_an_approval_has_failed(store: TraceStore) -> None:
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    model = ScriptedModel([[ScriptedToolCall("pay", {"amount": 1})]])
    agent = Agent("a", "b", model=model, tools=[pay], middleware=[Approve(["pay"])])
    (result,) = evaluate(agent, words("pay")).results
    assert result.status == "failed" and result.error is not None and "approval" in result.error


def test_an_unreachable_model_stops_the_evaluation_and_keeps_what_is_done(store: TraceStore) -> None:
    with OfflineServer(["fine"]) as server:
        bundle = server.bundle()
    agent = Agent("a", "b", model=bundle)
    dataset = words(*map(str, range(20)))
    evaluation = evaluate(agent, dataset, concurrency=1, retry=Retry(1))
    assert type(evaluation.stopped).__name__ == "APIConnectionError"
    assert len(evaluation) == 0


def test_failed_model_calls_are_retried(store: TraceStore) -> None:
    busy = Reply("later", status=429, headers={"retry-after-ms": "1"})
    with OfflineServer([busy, "fine"]) as server:
        agent = Agent("a", "b", model=server.bundle())
        (result,) = evaluate(agent, words("x"), retry=Retry(2, initial_delay=0.0)).results
    assert result.output == "fine"


# ---- started again


def test_started_again_it_makes_nothing_that_is_there(store: TraceStore) -> None:
    asked = Asked()
    first = evaluate(asked.agent, words("a", "b"), length, repeats=2)
    asked.questions.clear()
    again = evaluate(asked.agent, words("a", "b"), length, repeats=2)
    assert asked.questions == []
    assert again.results == first.results


def test_started_again_it_makes_what_is_new(store: TraceStore) -> None:
    asked, other = Asked(), Asked("Whisper.", "v2")
    evaluate({"one": asked.agent}, words("a"), length, name="e")
    asked.questions.clear()
    evaluation = evaluate(
        {"one": asked.agent, "two": other.agent}, words("a", "b"), length, name="e", repeats=2
    )
    assert sorted(asked.questions) == ["a", "b", "b"]
    assert sorted(other.questions) == ["a", "a", "b", "b"]
    assert len(evaluation) == evaluation.planned == 8


def test_a_case_with_another_content_is_run_again_and_the_old_result_does_not_count(
    store: TraceStore,
) -> None:
    asked = Asked()
    evaluate(asked.agent, Dataset("d", [Case("a", id="1"), Case("b", id="2")]), length)
    evaluation = evaluate(asked.agent, Dataset("d", [Case("c", id="1")]), length)
    assert asked.questions == ["a", "b", "c"]
    assert [one.output for one in evaluation.results] == ["C"]
    assert [one.output for one in Evaluation.load(store, evaluation.name).results] == ["C"]


def test_a_new_evaluator_scores_stored_results_without_a_run(store: TraceStore) -> None:
    asked = Asked()
    evaluate(asked.agent, words("a", "b"), length)
    asked.questions.clear()
    evaluation = evaluate(asked.agent, words("a", "b"), [length, is_loud])
    assert asked.questions == []
    assert scored(evaluation, "shout v1", "is_loud") == [1.0, 1.0]
    assert scored(evaluation, "shout v1", "length") == [1.0, 1.0]


def test_the_scores_of_an_evaluators_earlier_version_are_replaced(store: TraceStore) -> None:
    asked = Asked()
    calls: list[str] = []

    def graded(value: float, version: str) -> Any:
        @evaluator(name="grade", version=version)
        def grade(finished: FinishedCase) -> dict[str, float]:
            calls.append(version)
            return {"a": value} if version == "2" else {"a": value, "b": value}

        return grade

    evaluate(asked.agent, words("x"), graded(0.25, "1"))
    evaluation = evaluate(asked.agent, words("x"), graded(0.75, "2"))
    evaluate(asked.agent, words("x"), graded(0.75, "2"))
    assert calls == ["1", "2"]
    (result,) = evaluation.results
    assert {metric: score.value for metric, score in result.scores.items()} == {"grade.a": 0.75}


def test_an_evaluator_that_does_not_apply_is_not_asked_again(store: TraceStore) -> None:
    calls: list[str] = []

    @evaluator(version="1")
    def never(finished: FinishedCase) -> None:
        calls.append(finished.case.id)

    asked = Asked()
    for _ in range(2):
        (result,) = evaluate(asked.agent, words("a"), never).results
        assert dict(result.scores) == {}
    assert calls == ["a"]


def test_failed_runs_and_failed_scores_are_made_again(store: TraceStore) -> None:
    is_broken = True

    def answer(question: str) -> str:
        if is_broken and question == "run":
            raise ValueError("broken")
        return question

    @evaluator(version="1")
    def picky(finished: FinishedCase) -> float:
        if is_broken and finished.case.id == "score":
            raise ValueError("broken")
        return 1.0

    asked = Asked(answer=answer)
    dataset = words("run", "score", "good")
    first = evaluate(asked.agent, dataset, picky)
    assert [one.status for one in first.results] == ["failed", "finished", "finished"]
    is_broken = False
    asked.questions.clear()
    second = evaluate(asked.agent, dataset, picky)
    assert asked.questions == ["run"]
    assert scored(second, "shout v1", "picky") == [1.0, 1.0, 1.0]
    # Which attempt was the first is kept, for the order of the cases.
    again, *others = second.results
    assert again.first_trace_id == first.results[0].trace_id != again.trace_id
    assert {one.first_trace_id for one in others} == {None}


async def test_a_cancelled_evaluation_keeps_what_is_done_and_goes_on(store: TraceStore) -> None:
    dataset = words(*map(str, range(10)))
    asked = Asked()
    with anyio.CancelScope() as scope:

        def stop(progress: Progress) -> None:
            if progress.done == 4:
                scope.cancel()

        await evaluate_async(asked.agent, dataset, length, concurrency=1, progress=stop)
    assert scope.cancelled_caught
    (row,) = Evaluation.load_all(store)
    kept = len(row)
    assert kept >= 4
    asked.questions.clear()
    evaluation = await evaluate_async(asked.agent, dataset, length, concurrency=1)
    assert len(asked.questions) == 10 - kept
    assert len(evaluation) == 10


@pytest.mark.parametrize("ends_with", ["prepare_read", "shutdown"])
async def test_the_event_loop_goes_on_while_the_last_traces_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_with: str
) -> None:
    path, threads = tmp_path / "traces.sqlite3", list[int]()
    recorder = record_traces(path if ends_with == "prepare_read" else tmp_path / "another.sqlite3")
    write = getattr(SQLiteRecorder, ends_with)

    def noted(self: SQLiteRecorder, *timeout: float) -> None:
        threads.append(threading.get_ident())
        write(self, *timeout)

    with monkeypatch.context() as patch:
        patch.setattr(SQLiteRecorder, ends_with, noted)
        await evaluate_async(Asked().agent, words("one"), length, store=path)
    recorder.shutdown()
    assert threads
    assert threading.get_ident() not in threads


async def test_an_evaluation_that_is_cancelled_at_its_end_still_writes_its_traces(
    tmp_path: Path, held_shutdown: tuple[threading.Event, threading.Event]
) -> None:
    path, (begun, go_on) = tmp_path / "traces.sqlite3", held_shutdown
    task = asyncio.create_task(evaluate_async(Asked().agent, words("one"), length, store=path))
    assert await anyio.to_thread.run_sync(begun.wait, 20)
    for _ in range(2):
        task.cancel()
        await anyio.sleep(0.01)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    with TraceStore(path) as store:
        assert len(store.traces()) == 1


async def test_an_evaluation_that_begins_while_another_one_ends_is_recorded(
    tmp_path: Path, held_shutdown: tuple[threading.Event, threading.Event]
) -> None:
    path, (begun, go_on) = tmp_path / "traces.sqlite3", held_shutdown
    first = asyncio.create_task(evaluate_async(Asked().agent, words("one"), length, store=path, name="1"))
    assert await anyio.to_thread.run_sync(begun.wait, 20)

    def answer(question: str) -> str:
        go_on.set()
        return question

    await evaluate_async(Asked(answer=answer).agent, words("two"), length, store=path, name="2")
    await first
    with TraceStore(path) as store:
        assert len(store.traces()) == 2


# ---- scores elsewhere


def test_scores_from_0_to_1_are_verdicts_that_kantan_llm_finds(store: TraceStore) -> None:
    asked = Asked(answer=lambda question: question if question == "quiet" else question.upper())
    evaluation = evaluate(asked.agent, words("quiet", "loud"), [is_loud, length])
    (failed,) = find_failed_judges(store, 0.5)
    assert failed.trace_id == evaluation.results[0].trace_id
    assert failed.rubric is not None
    assert (failed.rubric["score"], failed.rubric["comment"]) == (0.0, "is_loud")
    assert store.trace(failed.trace_id).summary.rubric is not None


def test_the_results_of_a_deleted_trace_are_deleted_with_their_scores(store: TraceStore) -> None:
    evaluation = evaluate(Asked().agent, words("a", "b"), length)
    store.prune(keep=1)
    assert len(Evaluation.load(store, evaluation.name)) == 1
    store.prune(keep=1)
    store.prune(older_than=timedelta(0))
    assert Evaluation.load_all(store) == []


# ---- arguments


def test_without_a_database_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry.Main, "recorder", None)
    with pytest.raises(InvalidOptionError, match="record_traces"):
        evaluate(Asked().agent, words("a"))


def test_a_new_database_is_made_and_recorded_to(tmp_path: Path) -> None:
    agents.set_trace_processors([])
    path = tmp_path / "new.sqlite3"
    (result,) = evaluate(Asked().agent, words("a"), length, store=path).results
    assert TraceStore(path).trace(str(result.trace_id)).summary.output == "A"


def test_the_database_of_another_program_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite3"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE songs(name TEXT)")
    before = path.read_bytes()
    with pytest.raises(TraceDatabaseError, match="another program"):
        evaluate(Asked().agent, words("a"), store=path)
    assert path.read_bytes() == before


def test_a_database_in_a_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceDatabaseError, match="no/such"):
        evaluate(Asked().agent, words("a"), store=tmp_path / "no/such/traces.sqlite3")


@pytest.mark.parametrize(
    ("variants", "options", "says"),
    [
        ([], {}, "at least one"),
        ({}, {}, "at least one"),
        ({"a": "text"}, {}, "prompt without an agent"),
        ({"a": 3}, {}, "must be an Agent or a Prompt"),
        ("text", {}, "must be an Agent"),
        ([3], {}, "must be Agents"),
        ({" ": "x"}, {}, "a name must be a text"),
        (None, {"repeats": 0}, "repeats"),
        (None, {"concurrency": 0}, "concurrency"),
        (None, {"max_tokens": 0}, "max_tokens"),
        (None, {"max_cost": 1.0}, "prices"),
        (None, {"name": ""}, "name"),
        (None, {"run_config": {"nothing": 1}}, "run_config"),
        (None, {"store": 3}, "store"),
        (None, {"evaluators": [length, length]}, "two are named 'length'"),
    ],
)
def test_an_invalid_argument_is_named(
    store: TraceStore, variants: Any, options: dict[str, Any], says: str
) -> None:
    asked = Asked()
    given = asked.agent if variants is None else variants
    with pytest.raises(InvalidOptionError, match=says):
        evaluate(given, words("a"), **options)
    assert asked.questions == []


def test_two_variants_of_one_name_are_refused(store: TraceStore) -> None:
    with pytest.raises(InvalidOptionError, match="two are named 'shout v1'"):
        evaluate([Asked().agent, Asked("Other.").agent], words("a"))


def test_an_empty_dataset_is_refused(store: TraceStore) -> None:
    with pytest.raises(EmptyDatasetError, match="words"):
        evaluate(Asked().agent, words())


def test_a_sealed_test_set_is_refused(store: TraceStore) -> None:
    test = words(*map(str, range(50))).split().test
    with pytest.raises(HeldOutDatasetError):
        evaluate(Asked().agent, test)  # type: ignore[arg-type]


def test_an_unknown_evaluation_and_an_unknown_variant_are_named(store: TraceStore) -> None:
    evaluation = evaluate(Asked().agent, words("a"), name="first")
    with pytest.raises(EvaluationNotFoundError, match="did you mean 'first'"):
        Evaluation.load(store, "fist")
    with pytest.raises(EvaluationNotFoundError, match="shout v1"):
        evaluation["shout v2"]


async def test_two_evaluations_at_once_keep_their_results_apart(store: TraceStore) -> None:
    one, two = Asked(), Asked(version="v2", answer=str.lower)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: evaluate_async(one.agent, words("A", "B"), length, name="one"))
        group.start_soon(lambda: evaluate_async(two.agent, words("A", "B"), length, name="two"))
    found = {one.name: [result.output for result in one.results] for one in Evaluation.load_all(store)}
    assert found == {"one": ["A", "B"], "two": ["a", "b"]}


def test_it_can_be_used_from_several_threads(store: TraceStore) -> None:
    asked = Asked()

    def work(name: str) -> None:
        evaluate(asked.agent, words("a", "b"), length, name=name)

    threads = [threading.Thread(target=work, args=(f"e{number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.name for one in Evaluation.load_all(store)) == ["e0", "e1", "e2"]
    assert sorted(asked.questions) == ["a"] * 3 + ["b"] * 3


def test_an_evaluation_as_json_data_has_all_results(store: TraceStore) -> None:
    data = evaluate(Asked().agent, words("a"), length).to_dict()
    assert data["dataset"]["name"] == "words"
    assert data["results"][0]["scores"]["length"]["value"] == 1.0
