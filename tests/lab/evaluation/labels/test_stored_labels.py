"""Labels that are added one by one, and the agreement of people."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kantan_agents.errors import EvaluationNotFoundError, InvalidOptionError
from kantan_agents.lab import (
    Case,
    Dataset,
    Evaluation,
    LabelQueue,
    add_label,
    agreement,
    evaluate,
    labels_of,
    remove_label,
)
from tests.lab.evaluation.labels.shop import copied, generous, label_all, plain, shop_agent

# ---- labels picked by hand


def test_a_label_picked_by_hand_has_no_probability(evaluation: Evaluation) -> None:
    add_label(evaluation, "case-2", "v2", 0, "helpful", True, by="aiko", label="fine", comment="indeed")
    (found,) = labels_of(evaluation)
    assert (found.case_id, found.variant, found.repeat, found.metric) == ("case-2", "v2", 0, "helpful")
    assert (found.value, found.label, found.comment, found.by) == (1.0, "fine", "indeed", "aiko")
    assert found.probability is None
    assert found.to_dict()["created_at"].endswith("+00:00")


def test_a_later_label_of_the_same_person_replaces_the_earlier(evaluation: Evaluation) -> None:
    for value, by in ((1, "aiko"), (4, "aiko"), (1, "bo")):
        add_label(evaluation, "case-2", "v2", 0, "helpful", value, by=by, scale="1-5")
    assert [(one.by, one.value, one.label) for one in labels_of(evaluation)] == [
        ("aiko", 0.75, "4"),
        ("bo", 0.0, "1"),
    ]


def test_a_label_can_be_removed(evaluation: Evaluation) -> None:
    add_label(evaluation, "case-2", "v2", 0, "helpful", True, by="aiko")
    assert not remove_label(evaluation, "case-2", "v2", 0, "helpful", by="bo")
    assert remove_label(evaluation, "case-2", "v2", 0, "helpful", by="aiko")
    assert not remove_label(evaluation, "case-2", "v2", 0, "helpful", by="aiko")
    assert labels_of(evaluation) == ()


def test_labels_and_scores_of_the_same_metric_are_apart(evaluation: Evaluation) -> None:
    scores = [one.scores["helpful"] for one in evaluation.results]
    label_all(LabelQueue.of(evaluation, "helpful", by="aiko", sample=5))
    with copied(evaluation.path) as again:
        assert [one.scores["helpful"] for one in again.results] == scores
        assert labels_of(again, "generous") == ()


def test_labels_stay_if_the_evaluation_is_started_again_with_other_evaluators(
    evaluation: Evaluation,
) -> None:
    label_all(LabelQueue.of(evaluation, "helpful", by="aiko", sample=40))
    before = labels_of(evaluation)
    cases = [
        Case(f"question {n}", id=f"case-{n}", context={"customer": {"name": "Aiko"}}, expected="right")
        for n in range(20)
    ]
    again = evaluate(
        {"v1": shop_agent("v1")}, Dataset("questions", cases), generous, name="shop", store=evaluation.path
    )
    here = [one for one in before if int(one.case_id[5:]) < 20]
    assert list(labels_of(again)) == here and len(here) == 40


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (("nothing", "v1", 0, "helpful", 1), EvaluationNotFoundError, "'nothing'"),
        (("case-1", "v9", 0, "helpful", 1), EvaluationNotFoundError, "v9"),
        (("case-1", "v1", 1, "helpful", 1), EvaluationNotFoundError, "repetition 1"),
        (("case-1", "v1", -1, "helpful", 1), InvalidOptionError, "repeat"),
        (("case-1", "v1", 0, "", 1), InvalidOptionError, "metric"),
        (("case-1", "v1", 0, "helpful", 2), InvalidOptionError, "value"),
    ],
)
def test_a_label_for_nothing_is_refused(
    evaluation: Evaluation, arguments: tuple[Any, ...], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        add_label(evaluation, *arguments, by="aiko")
    assert labels_of(evaluation) == ()


# ---- agreement


def test_two_people_who_say_yes_or_no_agree_by_kappa(evaluation: Evaluation) -> None:
    label_all(LabelQueue.of(evaluation, "helpful", by="aiko", sample=30, scale="yesno"))
    label_all(LabelQueue.of(evaluation, "helpful", by="bo", sample=20, scale="yesno"), wrong=0.2)
    found = agreement(evaluation, "helpful")
    assert (found.statistic, found.people, found.results) == ("kappa", ("aiko", "bo"), 40)
    assert found.value is not None and found.low is not None and found.high is not None
    assert 0.3 < found.value < 0.95 and found.low < found.value < found.high
    assert found.text.startswith("agreement on helpful: kappa 0.")
    assert found.text.endswith("40 results labelled by both)")


def test_several_people_and_grades_agree_by_alpha(evaluation: Evaluation) -> None:
    for by, wrong in (("aiko", 0.0), ("bo", 0.1), ("cy", 0.1)):
        label_all(LabelQueue.of(evaluation, "helpful", by=by, sample=10, scale="yesno"), wrong)
    found = agreement(evaluation, "helpful")
    assert (found.statistic, found.results) == ("alpha", 20)
    assert "two or more of 3 people" in found.text

    for by, off in (("aiko", 0), ("bo", 1)):
        queue = LabelQueue.of(evaluation, "style", by=by, sample=10, scale="1-5")
        for item in queue:
            queue.label(item, 1 + int(item.case_id[5:]) % 4 + off)
    graded = agreement(evaluation, "style")
    assert graded.statistic == "alpha"
    assert graded.value is not None and 0.3 < graded.value < 1.0


@pytest.mark.parametrize(
    ("people", "sample", "says"),
    [
        ((), 1, "nobody has labelled anything"),
        (("aiko",), 20, "only aiko"),
        (("aiko", "bo"), 3, "6 results are labelled by two people, and it takes at least 10"),
    ],
)
def test_with_too_few_labels_agreement_is_unknown(
    evaluation: Evaluation, people: tuple[str, ...], sample: int, says: str
) -> None:
    for by in people:
        label_all(LabelQueue.of(evaluation, "helpful", by=by, sample=sample))
    found = agreement(evaluation, "helpful")
    assert found.value is None and found.low is None
    assert found.reason is not None and says in found.reason
    assert "cannot tell" in found.text and found.to_dict()["text"] == found.text


def test_if_all_labels_are_the_same_agreement_is_unknown(evaluation: Evaluation) -> None:
    for by in ("aiko", "bo"):
        queue = LabelQueue.of(evaluation, "helpful", by=by, sample=10)
        for item in queue:
            queue.label(item, 1)
    found = agreement(evaluation, "helpful")
    assert (found.value, found.reason, found.results) == (None, "all labels are the same", 20)


@settings(max_examples=15)  # each commits many transactions to a file
@given(st.permutations(range(4)), st.permutations(range(4)))
def test_neither_order_of_labels_nor_of_people_matters(few: Any, one: list[int], other: list[int]) -> None:
    values = [("aiko", 0, True), ("aiko", 1, False), ("bo", 0, True), ("bo", 1, True)]
    found = []
    for order in (one, other):
        with copied(few) as evaluation:
            for place in order:
                by, case, value = values[place]
                add_label(evaluation, f"case-{case}", "v1", 0, "helpful", value, by=by)
            found.append((plain(labels_of(evaluation)), agreement(evaluation, "helpful")))
    assert found[0] == found[1]
