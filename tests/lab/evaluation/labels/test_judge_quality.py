"""How far a judge can be trusted."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import agents
import pytest

from kantan_agents import Agent
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab import (
    Case,
    Dataset,
    Evaluation,
    Evaluator,
    LabelQueue,
    add_label,
    evaluate,
    judge_quality,
)
from kantan_agents.lab.evaluation.evaluators import PairwiseVerdict
from kantan_agents.lab.evaluation.statistics import clopper_pearson
from kantan_agents.testing import ScriptedModel
from tests.lab.evaluation.experiment.counting import question_of
from tests.lab.evaluation.labels.shop import WORDY, evaluate_shop, good, label_all


def test_the_rates_of_a_judge_are_those_of_the_labelled_results(evaluation: Evaluation) -> None:
    label_all(LabelQueue.of(evaluation, "helpful", by="aiko", scale="yesno"))
    found = judge_quality(evaluation, "helpful")
    passed = [one for one in evaluation.results if good(str(one.output))]
    failed = [one for one in evaluation.results if not good(str(one.output))]
    agreed = sum((one.scores["helpful"].value or 0.0) >= 0.5 for one in passed)
    refused = sum((one.scores["helpful"].value or 0.0) < 0.5 for one in failed)
    assert found.results == 80 and found.picked == 0
    assert found.true_positive.value == agreed / len(passed)
    assert found.true_negative.value == refused / len(failed)
    for rate in (found.true_positive, found.true_negative):
        assert rate.low is not None and rate.high is not None and rate.value is not None
        assert rate.low <= rate.value <= rate.high
    # Both variants of a case are one unit.
    cases = [len({one.case_id for one in some}) for some in (passed, failed)]
    independent = [f"of {count} independent cases" for count in cases]
    assert f"it passed {agreed} of {len(passed)} results {independent[0]} that people passed" in found.text
    assert f"it failed {refused} of {len(failed)} results {independent[1]} that people failed" in found.text


def test_repeats_of_a_case_do_not_count_as_so_many_results(tmp_path: Path) -> None:
    """Ten cases with four equal answers each are as good as ten results: 8 of 10, not 32 of 40."""
    echo = ScriptedModel(lambda call: question_of(call).split()[-1])
    cases = [Case(f"number {number}", id=f"c{number}") for number in range(10)]
    kind = Evaluator("kind", "1", lambda finished: float(int(finished.text) % 5 > 0), source="model")
    agent = Agent("echo", "Echo.", model=echo)
    evaluation = evaluate(agent, Dataset("d", cases), kind, repeats=4, store=tmp_path / "t.sqlite3")
    for item in (queue := LabelQueue.of(evaluation, "kind", by="aiko")):
        queue.label(item, 1.0)
    found = judge_quality(evaluation, "kind")
    assert found.true_positive.value == 0.8
    assert (found.true_positive.low, found.true_positive.high) == pytest.approx(clopper_pearson(8, 10))
    assert "0.8 (0.44 to 0.97): it passed 32 of 40 results of 10 independent cases" in found.text
    assert found.true_negative.reason == "people failed 0 results, and it takes at least 5"
    # Lengths differ between cases only, as c0 to c9 have one digit each.
    assert found.length.reason is not None


def test_few_cases_with_many_repeats_cannot_tell(tmp_path: Path) -> None:
    agents.set_trace_processors([])
    evaluation = evaluate_shop(tmp_path / "t.sqlite3", 3, repeats=2)
    for item in (queue := LabelQueue.of(evaluation, "helpful", by="aiko")):
        queue.label(item, 1.0)
    found = judge_quality(evaluation, "helpful")
    expected = "people passed 12 results of 3 independent cases, and it takes at least 5 independent cases"
    assert found.true_positive.reason == expected


def test_a_judge_that_likes_long_answers_is_found_out(evaluation: Evaluation) -> None:
    label_all(LabelQueue.of(evaluation, "helpful", by="aiko"))
    found = judge_quality(evaluation, "helpful").length
    assert found.value is not None and found.p is not None
    assert found.value > 0.2 and found.p < 0.05
    assert "longer outputs get better scores from it than from people" in found.text
    assert all(WORDY in str(one.output) for one in evaluation["v2"].results)


@pytest.mark.parametrize(("turn", "says"), [(1, "more generous"), (-1, "stricter")])
def test_a_judge_that_changes_over_time_is_found_out(evaluation: Evaluation, turn: int, says: str) -> None:
    label_all(LabelQueue.of(evaluation, "helpful", by="aiko"))
    start = datetime(2026, 1, 1, tzinfo=timezone.utc)
    with closing(sqlite3.connect(evaluation.path)) as connection, connection:
        query = (
            "SELECT j.result, j.value - p.value FROM kantan_agents_scores j JOIN kantan_agents_scores p "
            "ON j.result = p.result AND j.metric = p.metric WHERE j.rater = '' AND p.rater = 'aiko'"
        )
        errors = sorted(connection.execute(query), key=lambda row: row[1] * turn)
        for day, (result, _) in enumerate(errors):
            at = (start + timedelta(days=day)).isoformat()
            connection.execute(
                "UPDATE kantan_agents_scores SET created_at = ? WHERE result = ? AND rater = ''", (at, result)
            )
    found = judge_quality(evaluation, "helpful").drift
    assert found.p is not None and found.p < 0.01
    assert says in found.text


def test_the_mean_of_several_people_counts_and_people_can_be_chosen(evaluation: Evaluation) -> None:
    label_all(LabelQueue.of(evaluation, "helpful", by="aiko"))
    label_all(LabelQueue.of(evaluation, "helpful", by="bo"), wrong=1.0)
    everybody = judge_quality(evaluation, "helpful")
    assert everybody.true_negative.reason is not None  # all means are 0.5
    assert "people failed 0 results, and it takes at least 5" in everybody.text
    aiko, bo = (judge_quality(evaluation, "helpful", by=by) for by in ("aiko", ["bo"]))
    assert aiko.true_positive.value is not None and bo.true_positive.value is not None
    assert aiko.true_positive.value > 0.6 > bo.true_positive.value


def test_labels_can_have_another_name_than_the_judge(evaluation: Evaluation) -> None:
    label_all(LabelQueue.of(evaluation, "is it any good?", by="aiko"))
    found = judge_quality(evaluation, "helpful", people="is it any good?")
    assert (found.metric, found.people, found.results) == ("helpful", "is it any good?", 80)
    assert judge_quality(evaluation, "helpful").results == 0


def test_a_judge_that_says_the_same_about_everything_cannot_be_rated(evaluation: Evaluation) -> None:
    label_all(LabelQueue.of(evaluation, "generous", by="aiko"))
    found = judge_quality(evaluation, "generous")
    for rate in (found.true_positive, found.true_negative):
        assert rate.value is None and rate.low is None
        assert rate.reason == "the judge has given all 80 results the same score, 1"
    assert "true positive rate: cannot tell" in found.text


def test_with_too_few_labels_nothing_is_known(evaluation: Evaluation) -> None:
    label_all(LabelQueue.of(evaluation, "helpful", by="aiko", sample=2))
    found = judge_quality(evaluation, "helpful")
    assert all(one.value is None for one in found.measures)
    assert found.length.reason == "4 results have a score and a label, and it takes at least 10"
    assert judge_quality(evaluation, "generous").results == 0


def test_labels_of_one_class_say_nothing_about_the_other(evaluation: Evaluation) -> None:
    queue = LabelQueue.of(evaluation, "helpful", by="aiko")
    for item in queue:
        queue.label(item, True)
    found = judge_quality(evaluation, "helpful")
    assert found.true_positive.value is not None
    assert found.true_negative.reason == "people failed 0 results, and it takes at least 5"


def test_the_rates_and_the_bias_of_a_judge_on_another_scale_are_unknown(evaluation: Evaluation) -> None:
    label_all(LabelQueue.of(evaluation, "helpful", by="aiko"))
    with closing(sqlite3.connect(evaluation.path)) as connection, connection:
        connection.execute(
            "UPDATE kantan_agents_scores SET value = 1 + 4 * value WHERE metric = 'helpful' AND rater = ''"
        )
    found = judge_quality(Evaluation(evaluation.path, evaluation.row), "helpful")
    assert found.length.reason is not None and "the labels are from 0 to 1" in found.length.reason
    assert found.drift.value is None
    for rate in (found.true_positive, found.true_negative):  # every grade passes a threshold of 0.5
        assert rate.value is None and "the labels are from 0 to 1" in rate.text


def test_labels_that_were_picked_by_hand_are_mentioned(evaluation: Evaluation) -> None:
    label_all(LabelQueue.of(evaluation, "helpful", by="aiko", sample=10))
    drawn = {item.case_id for item in LabelQueue.of(evaluation, "helpful", by="bo", sample=10)}
    (picked, *_) = [one for one in evaluation.results if one.case_id not in drawn]
    add_label(evaluation, picked.case_id, picked.variant, 0, "helpful", True, by="bo")
    found = judge_quality(evaluation, "helpful")
    assert found.picked == 1 and "1 of them picked by hand" in found.text


def test_pairwise_verdicts_show_the_bias_by_position(evaluation: Evaluation) -> None:
    luck = random.Random(1)
    verdicts = [PairwiseVerdict("tie", ("a", "b")) for _ in range(12)]  # first in both orders
    verdicts += [PairwiseVerdict(side, (side, side)) for side in luck.choices(("a", "b"), k=20)]
    verdicts += [PairwiseVerdict("tie"), PairwiseVerdict(None, error="broken")]
    found = judge_quality(evaluation, "helpful", verdicts=verdicts).position
    assert (found.value, found.count) == (12 / 32, 32)
    assert "it prefers what it sees first (12 times the first, 0 times the second" in found.text
    other = judge_quality(
        evaluation, "helpful", verdicts=[PairwiseVerdict("tie", ("b", "a")) for _ in range(12)]
    )
    assert other.position.value == -1.0 and "sees second" in other.position.text
    assert "no verdicts" in judge_quality(evaluation, "helpful").position.text


def test_it_is_json_data(evaluation: Evaluation) -> None:
    label_all(LabelQueue.of(evaluation, "helpful", by="aiko", sample=10))
    found = judge_quality(evaluation, "helpful")
    data = found.to_dict()
    assert data["true_positive"]["value"] == found.true_positive.value
    assert data["text"] == found.text
    assert found.length.to_dict()["name"] == "length"


@pytest.mark.parametrize(
    ("metric", "options", "says"),
    [
        ("helpfull", {}, "did you mean 'helpful'"),
        ("nothing", {}, "there are generous, helpful"),
        ("helpful", {"threshold": -1}, "threshold"),
        ("helpful", {"people": ""}, "people"),
        ("helpful", {"by": []}, "by"),
        ("helpful", {"by": 3}, "by"),
    ],
)
def test_an_invalid_argument_is_named(
    evaluation: Evaluation, metric: str, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidOptionError, match=says):
        judge_quality(evaluation, metric, **options)
