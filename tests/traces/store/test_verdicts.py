"""Verdicts of judges, and the answers that they are about."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import agents
import pytest
from kantan_llm.tracing.analysis import group_failed_by_bucket

from kantan_agents import RUBRIC, Agent, Prompt, TraceStore
from kantan_agents.errors import InvalidOptionError, TraceNotFoundError
from kantan_agents.testing import ScriptedModel, assistant_message
from tests.traces.store.sample_database import SampleDatabase


async def test_a_low_score_leads_to_the_prompt_that_earned_it(traces: Any) -> None:
    answering = ScriptedModel([[assistant_message("Soon.")]] * 2)
    answers = []
    for version in ("v1", "v2"):
        await Agent("support", Prompt("support", version, "Help."), model=answering).run_async("Where?")
        answers.append(TraceStore(traces.path).trace("LAST").summary.trace_id)
    for answer, score in zip(answers, (0.2, 0.4), strict=True):
        verdict = ScriptedModel([[assistant_message(f'{{"score": {score}, "comments": ["tone harsh"]}}')]])
        judge = Agent(
            "judge", "Judge.", model=verdict, output_type=RUBRIC, metadata={"judged_trace_id": answer}
        )
        await judge.run_async("Judge.")
    store = TraceStore(traces.path)
    second, first = store.failed(0.5)
    assert (second.rubric["score"], first.rubric["score"]) == (0.4, 0.2)
    assert [store.judged(span.trace_id) for span in (first, second)] == answers
    assert store.failed(0.3) == [first]
    assert store.failed(0.2) == []
    assert store.failed(0.5, limit=1) == [second]
    assert store.failed(prompt="support") == [second, first]
    assert store.failed(prompt="support", version="v1") == store.failed(version="v1") == [first]
    assert store.failed(prompt="judge") == []
    assert list(group_failed_by_bucket([first, second])) == ["tone"]
    assert first.started_at.utcoffset() == timedelta(0)


async def test_a_judge_in_an_open_trace_leads_to_the_answer_too(traces: Any) -> None:
    answering = ScriptedModel([[assistant_message("Soon.")]])
    await Agent("support", Prompt("support", "v1", "Help."), model=answering).run_async("Where?")
    store = TraceStore(traces.path)
    answer = store.trace("LAST").summary.trace_id
    verdict = ScriptedModel([[assistant_message('{"score": 0.1, "comments": []}')]])
    judge = Agent("judge", "Judge.", model=verdict, output_type=RUBRIC, metadata={"judged_trace_id": answer})
    with agents.trace("evaluation") as outer:
        await judge.run_async("Judge.")
    (span,) = store.failed(prompt="support")
    assert span.trace_id == outer.trace_id
    assert store.judged(outer.trace_id) == answer


def test_many_good_verdicts_do_not_hide_a_bad_one(db: SampleDatabase, store: TraceStore) -> None:
    good = db.run()
    for _ in range(250):  # more than the limit of kantan-llm's function
        db.judge(good, 0.9)
    bad = db.judge(db.run(), 0.1)
    assert [span.span_id for span in store.failed()] == [bad]


def test_scores_that_are_not_numbers_are_not_failures(db: SampleDatabase, store: TraceStore) -> None:
    for score in (None, "0.1", [0.1], {"a": 1}, float("nan")):
        db.judge(db.run(), score)
    assert store.failed() == []
    assert store.traces(rubric_below=0.5) == []


def test_verdicts_are_sorted_newest_first_within_a_trace(db: SampleDatabase, store: TraceStore) -> None:
    first, second = db.run(), db.run()
    spans = [db.judge(trace_id, 0.1) for trace_id in (second, first, second)]
    assert [span.span_id for span in store.failed()] == spans[::-1]


def test_without_a_judged_trace_in_the_file_a_verdict_is_about_its_own_trace(
    db: SampleDatabase, store: TraceStore
) -> None:
    alone = db.run(prompt_name="judge")
    gone = db.run(prompt_name="judge", judged_trace_id="trace_gone")
    odd = db.run(prompt_name="judge", judged_trace_id=[1])
    for trace_id in (alone, gone, odd):
        db.judge(trace_id, 0.1)
        assert store.judged(trace_id) == trace_id
    assert store.judged("LAST") == odd
    assert [span.trace_id for span in store.failed(prompt="judge")] == [odd, alone]
    with pytest.raises(TraceNotFoundError):
        store.judged("nothing")


def test_a_verdict_outside_of_runs_belongs_to_no_prompt(db: SampleDatabase, store: TraceStore) -> None:
    db.judge(db.trace(), 0.1)
    assert len(store.failed()) == 1
    assert store.failed(prompt="p") == [] == store.failed(version="v")


@pytest.mark.parametrize(
    ("option", "arguments"),
    [
        ("threshold", {"threshold": "0.5"}),
        ("threshold", {"threshold": float("nan")}),
        ("prompt", {"prompt": 1}),
        ("version", {"version": 2}),
        ("limit", {"limit": 0}),
    ],
)
def test_the_error_for_an_invalid_argument_names_it(
    db: SampleDatabase, store: TraceStore, option: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        store.failed(**arguments)
    assert caught.value.option == option
