"""A pairwise judge as an evaluator: asked in both orders, and compared like any other score."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kantan_agents import Agent, Prompt, TraceStore, record_traces
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab import Case, Dataset, compare, evaluate, judge_quality, preferred
from kantan_agents.lab.evaluation.evaluators import PairwiseVerdict, exact, pairwise
from kantan_agents.lab.evaluation.statistics import position_bias
from kantan_agents.testing import ScriptedModel


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TraceStore]:
    recorder = record_traces(tmp_path / "traces.sqlite3")
    yield TraceStore(tmp_path / "traces.sqlite3")
    recorder.shutdown()


def outputs_of(call: Any) -> tuple[str, str]:
    """Return the two outputs in the order in which the judge sees them."""
    text = call.input if isinstance(call.input, str) else call.input[0]["content"]
    _, first, second = text.split("Output ")
    return first, second


def a_judge(decide: Any) -> tuple[Any, list[str]]:
    """Return a judge, and what it was asked."""
    asked: list[str] = []

    def reply(call: Any) -> str:
        first, second = outputs_of(call)
        asked.append(first)
        return f'{{"winner": "{decide(first, second)}", "reason": "so it seems"}}'

    return pairwise(model=ScriptedModel(reply)), asked


def kinder(first: str, second: str) -> str:
    kind = ("please" in first, "please" in second)
    return {(True, False): "A", (False, True): "B"}.get(kind, "tie")


def agent(version: str, answer: str) -> Agent[Any]:
    return Agent("a", Prompt("p", version, f"Say {answer}."), model=ScriptedModel(lambda _call: answer))


DATASET = Dataset("d", [Case(str(number), id=str(number)) for number in range(12)])


def test_the_output_that_a_judge_prefers_in_both_orders_is_better(store: TraceStore) -> None:
    plain, kind = agent("v1", "Go."), agent("v2", "Go, please.")
    judge, asked = a_judge(kinder)
    baseline = evaluate({"v1": plain}, DATASET, name="e")["v1"]
    metric = preferred(judge, over=baseline)
    evaluation = evaluate({"v1": plain, "v2": kind}, DATASET, metric, name="e")
    assert evaluation["v1"].mean("preferred") == 0.5
    assert evaluation["v2"].mean("preferred") == 1.0
    assert len(asked) == 2 * len(DATASET)  # the baseline is not compared with itself
    found = compare(evaluation["v1"], evaluation["v2"], metrics="preferred")["preferred"]
    assert (found.verdict, len(found.wins)) == ("better", 12)
    asked.clear()
    evaluate({"v1": plain, "v2": kind}, DATASET, preferred(judge, over=baseline), name="e")
    assert asked == []


def test_a_judge_that_prefers_a_place_decides_nothing(store: TraceStore) -> None:
    plain, kind = agent("v1", "Go."), agent("v2", "Go, please.")
    judge, _ = a_judge(lambda _first, _second: "A")
    baseline = evaluate({"v1": plain}, DATASET, name="e")["v1"]
    evaluation = evaluate({"v2": kind}, DATASET, preferred(judge, over=baseline), name="f")
    score = evaluation.results[0].scores["preferred"]
    assert (score.value, score.source) == (0.5, "model")
    assert score.label == "tie: it prefers the first output"
    position = judge_quality(evaluation, "preferred").position
    assert (position.value, position.count) == (1.0, len(DATASET))
    assert "it prefers what it sees first (12 times the first, 0 times the second" in position.text


def test_outputs_that_are_the_same_say_nothing_about_the_judge(store: TraceStore) -> None:
    judge, asked = a_judge(kinder)
    baseline = evaluate({"v1": agent("v1", "Go.")}, DATASET, name="e")["v1"]
    evaluation = evaluate({"v2": agent("v2", "Go.")}, DATASET, preferred(judge, over=baseline), name="f")
    assert asked == []
    assert evaluation.results[0].scores["preferred"].label == "tie: the outputs are the same"
    assert judge_quality(evaluation, "preferred").position.value is None


@pytest.mark.parametrize("one", ["a", "b", "tie"])
@pytest.mark.parametrize("other", ["a", "b", "tie"])
def test_a_label_says_what_the_judge_leans_to(one: Any, other: Any) -> None:
    verdict = PairwiseVerdict(one if one == other else "tie", (one, other))
    read = PairwiseVerdict.from_label(verdict.label)
    assert read is not None and read.winner == verdict.winner
    assert position_bias(*orders(read)).bias == position_bias(*orders(verdict)).bias


def orders(verdict: PairwiseVerdict) -> tuple[list[int], list[int]]:
    places = {"a": 1, "b": -1, "tie": 0}
    first, second = verdict.answers
    return [places[first]], [-places[second]]


def test_other_labels_are_no_verdicts() -> None:
    assert PairwiseVerdict.from_label("polite") is None is PairwiseVerdict.from_label(None)
    assert PairwiseVerdict(None, error="gone").label is None


def test_a_case_without_an_output_of_the_other_variant_gets_no_score(store: TraceStore) -> None:
    baseline = evaluate({"v1": agent("v1", "Go.")}, DATASET.sample(3), name="e")["v1"]
    judge, _ = a_judge(kinder)
    results = evaluate(
        {"v2": agent("v2", "Go, please.")}, DATASET, preferred(judge, over=baseline), name="f"
    ).results
    assert sum(bool(one.scores) for one in results) == 3


def test_a_judge_that_fails_is_a_failed_score(store: TraceStore) -> None:
    baseline = evaluate({"v1": agent("v1", "Go.")}, DATASET.sample(1), name="e")["v1"]
    judge = pairwise(model=ScriptedModel([ValueError("gone")]))
    (result,) = evaluate(
        {"v2": agent("v2", "No.")}, DATASET.sample(1), preferred(judge, over=baseline), name="f"
    ).results
    score = result.scores["preferred"]
    assert score.value is None and score.error is not None and "gone" in score.error


def test_other_arguments_are_refused(store: TraceStore) -> None:
    baseline = evaluate({"v1": agent("v1", "Go.")}, DATASET.sample(1), name="e")["v1"]
    with pytest.raises(InvalidOptionError, match="pairwise"):
        preferred(exact(), over=baseline)  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match=r'evaluation\["v1"\]'):
        preferred(a_judge(kinder)[0], over="v1")  # type: ignore[arg-type]
