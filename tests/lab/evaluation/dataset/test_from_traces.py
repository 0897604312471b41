"""``Dataset.from_traces``: cases of recorded runs in real SQLite files."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import agents
import attrs
import pytest
from agents import RunConfig, SQLiteSession
from pydantic import BaseModel

from kantan_agents import RUBRIC, Agent, Next, Prompt, Recording, Run, TraceStore, judge_agent
from kantan_agents.errors import EmptyDatasetError, InvalidOptionError, TraceDatabaseError
from kantan_agents.lab import Dataset
from kantan_agents.lab.evaluation.dataset.recorded_cases import input_of
from kantan_agents.middleware import Redact
from kantan_agents.testing import ScriptedModel
from kantan_agents.testing import ScriptedToolCall as Call
from kantan_agents.traces.store.experiment_keys import EXPERIMENT_KEY
from tests.lab.replay.cohorts import Recorder, recording

PROMPT = Prompt("support", "v1", "Help {{ $ctx.user.name }} in {{ $ctx.language }}.")


class Answer(BaseModel):
    n: int


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    with recording(tmp_path / "traces.sqlite3") as made:
        yield made


def support(*steps: Any, prompt: Prompt | str = PROMPT, **options: Any) -> Agent[Any]:
    return Agent("support", prompt, model=ScriptedModel([*steps]), **options)


def fail(recorder: Recorder) -> str:
    return recorder.run(support(RuntimeError("no model"), prompt="Help."), "broken")


def judge(recorder: Recorder, judged: str, score: float) -> str:
    model = ScriptedModel([f'{{"score": {score}, "comments": ["tone"]}}'])
    agent = Agent("judge", "Judge.", model=model, output_type=RUBRIC, metadata={"judged_trace_id": judged})
    return recorder.run(agent, "judge it")


def test_a_case_has_the_input_the_context_that_was_read_and_the_answer(recorder: Recorder) -> None:
    context = {"user": {"name": "Ada", "card": "4111"}, "language": "en", "other": 1}
    trace_id = recorder.run(
        support("Restart it."), "It hangs.", context, run_config=RunConfig(group_id="chat-7")
    )
    dataset = Dataset.from_traces(recorder.store, prompt="support")
    (case,) = dataset
    assert (case.input, case.expected, case.conversation) == ("It hangs.", "Restart it.", "chat-7")
    assert case.context == {"user.name": "Ada", "language": "en"}
    assert case.metadata == {
        "trace_id": trace_id,
        "agent_run_id": case.id,
        "agent": "support",
        "prompt": "support",
        "version": "v1",
        "input_tokens": case.metadata["input_tokens"],
        "output_tokens": case.metadata["output_tokens"],
    }
    assert case.metadata["output_tokens"] > 0
    assert (dataset.name, dataset.skipped) == ("support", ())


def test_the_context_of_a_case_renders_the_same_instructions(recorder: Recorder) -> None:
    context: dict[str, Any] = {"user": {"name": "Ada"}, "language": "en"}
    recorder.run(support("Yes"), context=dict(context))
    (case,) = Dataset.from_traces(recorder.store)
    agent = support()
    assert asyncio.run(agent.render(dict(case.context))) == asyncio.run(agent.render(context))


def test_structured_outputs_and_input_items_stay_data_and_survive_a_file(
    recorder: Recorder, tmp_path: Path
) -> None:
    items: list[Any] = [{"role": "user", "content": "How many?"}]
    recorder.run(Agent("a", "Count.", model=ScriptedModel(['{"n": 3}']), output_type=Answer), items)
    recorder.run(Agent("a", "Hi", model=ScriptedModel(["half \ud83d"])), "日本")
    dataset = Dataset.from_traces(recorder.store)
    assert [case.expected for case in dataset] == ["half \ufffd", {"n": 3}]
    assert dataset.cases[1].input == items
    dataset.save(tmp_path / "cases.jsonl")
    assert Dataset.load(tmp_path / "cases.jsonl") == dataset


def test_the_rules_of_the_caller_are_part_of_the_case(recorder: Recorder) -> None:
    rules = {"allow": [], "deny": ["pay"], "params": {}}
    recorder.run(support("Yes", prompt="Hi", tools=[recorder.tool("pay")]), context={"tool_rules": rules})
    (case,) = Dataset.from_traces(recorder.store)
    agent = support(Call("pay", {"x": "1"}), "Done", prompt="Hi", tools=[recorder.tool("pay")])
    asyncio.run(agent.run_async(str(case.input), dict(case.context)))
    assert recorder.ran == []


def test_runs_inside_other_runs_are_not_cases(recorder: Recorder) -> None:
    inner = Agent("inner", "Hi", model=ScriptedModel(["inner answer"]))
    tool = inner.sdk_agent.as_tool("ask", "Ask.")
    recorder.run(support(Call("ask", {"input": "x"}), "outer answer", prompt="Hi", tools=[tool]))

    async def both() -> None:
        with agents.trace("request", group_id="g"):
            await support("first", prompt="Hi").run_async("1")
            await support("second", prompt="Hi").run_async("2")

    asyncio.run(both())
    dataset = Dataset.from_traces(recorder.store)
    assert [case.expected for case in dataset] == ["first", "second", "outer answer"]
    assert [case.conversation for case in dataset] == ["g", "g", None]


def test_a_case_of_a_run_with_a_session_has_the_whole_conversation(recorder: Recorder) -> None:
    async def talk() -> None:
        session = SQLiteSession("s1")
        agent = support("Paris", "2 million", prompt="Hi")
        await agent.run_async("The capital of France?", session=session)
        await agent.run_async("How large is it?", session=session)
        session.close()

    asyncio.run(talk())
    recorder.recorder.force_flush()
    second, first = Dataset.from_traces(recorder.store)
    assert (first.input, first.earlier) == ("The capital of France?", [])
    assert (second.input, [item["role"] for item in second.earlier]) == (
        "How large is it?",
        ["user", "assistant"],
    )
    assert [*second.whole_input] == [*second.earlier, {"role": "user", "content": "How large is it?"}]
    # Earlier versions have not recorded the input as it was given: the case is what it was.
    record = Recording.from_trace(recorder.store, second.metadata["trace_id"]).root
    assert input_of(attrs.evolve(record, given=None)) == ([*second.whole_input], [])


def test_a_case_has_what_was_given_and_what_was_sent(recorder: Recorder) -> None:
    async def change(run: Run, call_next: Next) -> None:
        run.input = f"Please: {run.input}"
        run.context["language"] = "en"
        await call_next(run)

    recorder.run(support("Done.", middleware=[change]), "hi", {"user": {"name": "Ada"}})
    (case,) = Dataset.from_traces(recorder.store)
    assert (case.input, case.metadata["sent"], case.context) == ("hi", "Please: hi", {"user.name": "Ada"})


def test_runs_whose_earlier_turns_only_the_provider_has_are_skipped(recorder: Recorder) -> None:
    recorder.run(support("Yes", prompt="Hi"), previous_response_id="r1")
    with pytest.raises(EmptyDatasetError, match="used previous_response_id, so only the provider has"):
        Dataset.from_traces(recorder.store)


def test_masked_and_redacted_values_stay_so(recorder: Recorder) -> None:
    agent = support("Mail a@b.example", prompt="Hi", middleware=[Redact()])
    recorder.run(agent, "I am c@d.example, my key is sk-proj-" + "a1B2c3D4" * 6)
    (case,) = Dataset.from_traces(recorder.store)
    assert "example" not in f"{case.input} {case.expected}"
    assert "a1B2c3D4a1B2c3D4" not in str(case.input)
    assert "[email]" in str(case.input)


def test_failed_runs_and_answers_with_a_low_score_are_selected(recorder: Recorder) -> None:
    good, bad, worse = (recorder.run(support(text, prompt="Hi"), text) for text in ("good", "bad", "worse"))
    failed = fail(recorder)
    for trace_id, score in ((good, 0.9), (bad, 0.4), (worse, 0.1), (worse, 0.4)):
        judge(recorder, trace_id, score)
    store = recorder.store

    def traces(**options: Any) -> list[str]:
        return [case.metadata["trace_id"] for case in Dataset.from_traces(store, **options)]

    assert traces() == [failed, worse, bad, good]
    assert traces(failed=True) == [failed, worse, bad]
    assert traces(failed=False) == [good]
    assert traces(failed=True, rubric_below=0.2) == [failed, worse]
    assert traces(rubric_below=0.5) == [worse, bad]
    assert traces(failed=True, limit=2) == [failed, worse]
    cases = Dataset.from_traces(store, failed=True).cases
    assert [case.metadata.get("score") for case in cases] == [None, 0.1, 0.4]
    assert (cases[0].expected, cases[0].metadata["error"]) == (None, "RuntimeError: no model")


def test_a_verdict_in_the_trace_of_the_answer_counts_too(recorder: Recorder) -> None:
    async def both() -> None:
        with agents.trace("request"):
            await support("answer", prompt=Prompt("support", "v1", "Hi")).run_async("q")
            verdict = ScriptedModel(['{"score": 0.1, "comments": []}'])
            await judge_agent(Prompt("support", "v1", "Hi"), model=verdict).run_async("judge it")

    asyncio.run(both())
    recorder.recorder.force_flush()
    ways: list[dict[str, Any]] = [{}, {"failed": True}, {"rubric_below": 0.5}, {"prompt": "support"}]
    for options in ways:
        dataset = Dataset.from_traces(recorder.store, **options)
        assert [case.expected for case in dataset] == ["answer"]
        assert [one.reason.split(" ", 3)[3] for one in dataset.skipped] == ["is that of a judge"]


def test_runs_of_experiments_and_judges_are_left_out_unless_they_are_asked_for(recorder: Recorder) -> None:
    answer = recorder.run(support("answer", prompt="Hi"))
    config = RunConfig(trace_metadata={EXPERIMENT_KEY: "e1"})
    recorder.run(support("experiment", prompt="Hi"), run_config=config)
    judge(recorder, answer, 0.1)
    assert [case.expected for case in Dataset.from_traces(recorder.store)] == ["answer"]
    chosen = Dataset.from_traces(recorder.store, metadata={EXPERIMENT_KEY: "e1"})
    assert [case.expected for case in chosen] == ["experiment"]
    judges = Dataset.from_traces(recorder.store, metadata={"judged_trace_id": answer})
    assert [case.expected for case in judges] == [{"score": 0.1, "comments": ["tone"]}]


def test_a_sample_is_the_same_for_the_same_seed_and_as_large_as_possible(recorder: Recorder) -> None:
    for number in range(12):
        recorder.run(support(str(number), prompt="Hi"), str(number))
    store = recorder.store
    samples = [Dataset.from_traces(store, sample=5, seed=seed) for seed in range(4)]
    assert {len(sample) for sample in samples} == {5}
    assert Dataset.from_traces(store, sample=5, seed=1) == samples[1]
    assert len({sample.hash for sample in samples}) > 1
    newest_first = [case.input for case in Dataset.from_traces(store)]
    assert newest_first == [str(number) for number in reversed(range(12))]
    assert [case.input for case in samples[0]] == [one for one in newest_first if one in _inputs(samples[0])]
    assert len(Dataset.from_traces(store, sample=50)) == 12


def _inputs(dataset: Dataset) -> set[Any]:
    return {case.input for case in dataset}


def test_the_time_and_the_number_of_traces_can_be_limited(recorder: Recorder) -> None:
    for text in "abc":
        recorder.run(support(text, prompt="Hi"), text)
    store = recorder.store
    assert [case.input for case in Dataset.from_traces(store, limit=2)] == ["c", "b"]
    assert len(Dataset.from_traces(store, last=timedelta(hours=1))) == 3
    with pytest.raises(EmptyDatasetError):
        Dataset.from_traces(store, started_from=datetime.now(timezone.utc) + timedelta(days=1))


def test_the_name_is_that_of_the_prompt_the_agent_or_the_file(recorder: Recorder) -> None:
    recorder.run(support("Yes"), context={"user": {"name": "a"}, "language": "b"})
    store = recorder.store
    assert Dataset.from_traces(store).name == "traces"
    assert Dataset.from_traces(store, agent="support").name == "support"
    assert Dataset.from_traces(store, prompt="support", name="mine").name == "mine"


def test_runs_that_are_not_recorded_completely_are_skipped_with_a_reason(
    recorder: Recorder, tmp_path: Path
) -> None:
    whole = recorder.run(support("Yes", prompt="Hi"))
    broken = recorder.run(support("No", prompt="Hi"))
    recorder.recorder.force_flush()
    with sqlite3.connect(tmp_path / "traces.sqlite3") as connection:
        connection.execute("DELETE FROM kantan_agents_runs WHERE trace_id = ?", (broken,))
    connection.close()
    dataset = Dataset.from_traces(recorder.store)
    assert [case.metadata["trace_id"] for case in dataset] == [whole]
    ((skipped),) = dataset.skipped
    assert skipped.trace_id == broken
    assert "its record is not complete" in skipped.reason
    assert repr(dataset) == "<Dataset 'traces', 1 cases, 1 traces skipped>"
    assert dataset.sample(1).skipped == dataset.skipped


def test_without_any_case_the_error_has_the_first_reason(recorder: Recorder) -> None:
    with pytest.raises(EmptyDatasetError, match=r"E102\].*no trace in .* passes these filters"):
        Dataset.from_traces(recorder.store, agent="nobody")
    trace_id = recorder.run(support("Yes", prompt="Hi"))
    recorder.recorder.force_flush()
    with sqlite3.connect(recorder.store.path) as connection:
        connection.execute("DELETE FROM kantan_agents_runs")
    connection.close()
    with pytest.raises(
        EmptyDatasetError, match=rf"none of the 1 traces .*; the trace {trace_id}: its record is not complete"
    ):
        Dataset.from_traces(recorder.store)


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"sample": 0}, "sample"),
        ({"limit": 0}, "limit"),
        ({"seed": "x"}, "seed"),
        ({"failed": "yes"}, "failed"),
        ({"last": timedelta(1), "started_from": datetime.now(timezone.utc)}, "last"),
        ({"rubric_below": "x", "failed": True}, "threshold"),
        ({"agent": 5}, "agent"),
    ],
)
def test_an_invalid_option_is_an_error_that_names_it(
    recorder: Recorder, options: dict[str, Any], option: str
) -> None:
    with pytest.raises(InvalidOptionError) as raised:
        Dataset.from_traces(recorder.store, **options)
    assert raised.value.option == option


def test_a_file_that_is_not_a_database_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TraceDatabaseError, match="E60"):
        Dataset.from_traces(TraceStore(tmp_path / "missing.sqlite3"))


def test_cases_of_one_conversation_are_on_one_side_of_a_split(recorder: Recorder) -> None:
    for number in range(8):
        config = RunConfig(group_id=f"c{number % 2}")
        recorder.run(support("Yes", prompt="Hi"), str(number), run_config=config)
    split = Dataset.from_traces(recorder.store).split(seed=3)
    sides = (split.train, split.validation, split.test.open("a test"))
    conversations = [{case.conversation for case in side} for side in sides]
    assert sorted(one for side in conversations for one in side if one) == ["c0", "c1"]
