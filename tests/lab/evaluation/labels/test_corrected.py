"""What people would say about all cases, from the labels of a few."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import agents
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.errors import (
    InvalidOptionError,
    NotComparableError,
    TraceDatabaseError,
    UnusableLabelsError,
)
from kantan_agents.lab import (
    CaseResult,
    Evaluation,
    Label,
    LabelQueue,
    Score,
    VariantResults,
    add_label,
    corrected_compare,
    corrected_score,
    remove_label,
)
from kantan_agents.lab.evaluation.labels.judged_units import judged_units
from kantan_agents.lab.evaluation.labels.label import RatedResult
from kantan_agents.lab.evaluation.statistics import clopper_pearson
from tests.lab.evaluation.labels.shop import copied, evaluate_shop, good, label_all
from tests.sizes import size

# ---- what is said


def test_a_judge_that_prefers_one_variant_is_corrected(evaluation: Evaluation) -> None:
    label_all(LabelQueue.of(evaluation, "helpful", by="aiko", sample=36))
    a, b = evaluation["v1"], evaluation["v2"]
    found = corrected_compare(a, b, "helpful")
    truth = np.mean([good(str(one.output)) for one in b.results]) - np.mean(
        [good(str(one.output)) for one in a.results]
    )
    assert found.low is not None and found.high is not None
    assert found.low < truth < found.high
    assert found.judge_difference > found.high
    assert (found.a, found.b, found.labels, found.cases, found.independent) == ("v1", "v2", 36, 40, 40)
    assert "as people judge it" in found.text and "36 labels, 40 cases" in found.text
    assert f"the judge alone says {found.judge_difference:.2g}" in found.text
    assert found.to_dict()["text"] == found.text


def test_the_other_way_round_the_difference_has_the_other_sign(evaluation: Evaluation) -> None:
    label_all(LabelQueue.of(evaluation, "helpful", by="aiko", sample=36))
    a, b = evaluation["v1"], evaluation["v2"]
    one, other = corrected_compare(a, b, "helpful"), corrected_compare(b, a, "helpful")
    assert other.low is not None and other.high is not None
    assert one.difference == pytest.approx(-other.difference)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))
    assert one.judge_difference == pytest.approx(-other.judge_difference)


def test_a_clear_difference_has_a_verdict(evaluation: Evaluation) -> None:
    luck = random.Random(1)
    for item in (queue := LabelQueue.of(evaluation, "helpful", by="aiko", scale="1-5")):
        queue.label(item, luck.choice((4, 5) if "very long" in str(item.output) else (1, 2)))
    a, b = evaluation["v1"], evaluation["v2"]
    found, turned = corrected_compare(a, b, "helpful"), corrected_compare(b, a, "helpful")
    assert (found.verdict, turned.verdict) == ("better", "worse")
    assert found.text.startswith("v2 better on helpful, as people judge it, by 0.7")
    assert turned.text.startswith("v1 worse on helpful, as people judge it, by 0.7")
    assert found.text.partition(" by ")[2] == turned.text.partition(" by ")[2]


def test_if_no_label_differs_the_interval_is_around_zero(evaluation: Evaluation) -> None:
    for item in (queue := LabelQueue.of(evaluation, "helpful", by="aiko")):
        queue.label(item, 1)
    found = corrected_compare(evaluation["v1"], evaluation["v2"], "helpful")
    assert (found.verdict, found.difference, found.judge_weight) == ("cannot tell", 0.0, 0.0)
    assert found.low is not None and found.high is not None
    assert -0.1 < found.low < 0.0 < found.high < 0.1
    assert "cannot tell, the difference is 0 (-0.069 to 0.069, 40 labels, 40 cases)" in found.text
    assert "does not make this more precise, so only the labels count" in found.text


def test_the_interval_of_a_score_stays_inside_the_scale_and_is_not_wider_than_that_of_the_labels(
    evaluation: Evaluation,
) -> None:
    queue = LabelQueue.of(evaluation, "helpful", by="aiko", sample=30, variants="v2")
    for number, item in enumerate(queue):
        queue.label(item, number not in (3, 20))
    found = corrected_score(evaluation["v2"], "helpful")
    alone = clopper_pearson(28, 30)
    assert found.low is not None and found.high is not None
    assert 0.0 <= found.low < found.mean < found.high <= 1.0
    assert found.high - found.low <= alone.high - alone.low + 1e-9


def test_the_score_of_one_variant_is_corrected(evaluation: Evaluation) -> None:
    label_all(LabelQueue.of(evaluation, "quality", by="aiko", sample=34, variants="v2"))
    found = corrected_score(evaluation["v2"], "helpful", people="quality")
    truth = np.mean([good(str(one.output)) for one in evaluation["v2"].results])
    assert found.low is not None and found.high is not None and found.low < truth < found.high
    assert found.judge_mean == pytest.approx(evaluation["v2"].mean("helpful"))
    assert found.text.startswith("v2 on quality, as people judge it: 0.")
    assert found.to_dict()["labels"] == 34


def test_repeats_are_averaged_inside_a_case(tmp_path: Path) -> None:
    agents.set_trace_processors([])
    evaluation = evaluate_shop(tmp_path / "t.sqlite3", 31, repeats=2)
    label_all(LabelQueue.of(evaluation, "helpful", by="aiko"))
    found = corrected_compare(evaluation["v1"], evaluation["v2"], "helpful")
    assert (found.labels, found.cases, found.independent) == (31, 31, 31)


def test_cases_of_a_conversation_count_as_one(tmp_path: Path) -> None:
    agents.set_trace_processors([])
    evaluation = evaluate_shop(tmp_path / "t.sqlite3", 32, ["v1"], conversation="one and the same")
    label_all(LabelQueue.of(evaluation, "helpful", by="aiko"))
    with pytest.raises(UnusableLabelsError, match=r"1 conversation has a label .* only 1 conversation"):
        corrected_score(evaluation["v1"], "helpful")


# ---- what is refused


def test_labels_picked_by_hand_are_refused_until_they_are_removed(evaluation: Evaluation) -> None:
    drawn = LabelQueue.of(evaluation, "helpful", by="aiko", sample=35)
    label_all(drawn)
    a, b = evaluation["v1"], evaluation["v2"]
    add_label(evaluation, "case-0", "v2", 0, "helpful", True, by="bo")
    add_label(evaluation, "case-1", "v2", 0, "helpful", True, by="bo")
    with pytest.raises(
        UnusableLabelsError, match=r"2 of 72 labels \(bo\) were picked by hand.*unlike"
    ) as caught:
        corrected_compare(a, b, "helpful")
    assert caught.value.code == "E107"
    assert corrected_compare(a, b, "helpful", by="aiko").labels == 35
    for case in ("case-0", "case-1"):
        remove_label(evaluation, case, "v2", 0, "helpful", by="bo")
    assert corrected_compare(a, b, "helpful") == corrected_compare(a, b, "helpful", by="aiko")


def test_too_few_labels_are_refused_with_the_number_that_it_takes(evaluation: Evaluation) -> None:
    a, b = evaluation["v1"], evaluation["v2"]
    with pytest.raises(UnusableLabelsError, match="0 cases have a label with both variants, and it takes 30"):
        corrected_compare(a, b, "helpful")
    label_all(LabelQueue.of(evaluation, "helpful", by="aiko", sample=29))
    with pytest.raises(UnusableLabelsError, match=r"29 cases have .* label 1 more of 'shop'"):
        corrected_compare(a, b, "helpful")
    with pytest.raises(UnusableLabelsError, match="29 cases have a label with 'v1'"):
        corrected_score(a, "helpful")


def test_labels_of_one_variant_do_not_tell_the_difference(evaluation: Evaluation) -> None:
    label_all(LabelQueue.of(evaluation, "helpful", by="aiko", variants="v1"))
    assert corrected_score(evaluation["v1"], "helpful").labels == 40
    with pytest.raises(UnusableLabelsError, match="0 cases have a label with both"):
        corrected_compare(evaluation["v1"], evaluation["v2"], "helpful")


def test_with_too_few_cases_it_is_said_to_evaluate_more(few: Path) -> None:
    with (
        copied(few) as evaluation,
        pytest.raises(UnusableLabelsError, match="only 4 cases, so evaluate more"),
    ):
        corrected_compare(evaluation["v1"], evaluation["v2"], "helpful")


def test_variants_of_two_evaluations_can_be_compared_if_the_cases_are_the_same(
    evaluation: Evaluation, shop: Path, few: Path
) -> None:
    label_all(LabelQueue.of(evaluation, "helpful", by="aiko"))
    with copied(evaluation.path) as other:
        found = corrected_compare(evaluation["v1"], other["v2"], "helpful")
        assert found.labels == 40
    with copied(few) as unlike, pytest.raises(NotComparableError, match="no case has scores"):
        corrected_compare(evaluation["v1"], unlike["v2"], "helpful")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda e: corrected_compare(e["v1"], e["v2"], "helpfull"), "did you mean"),
        (lambda e: corrected_compare(e["v1"], e, "helpful"), "results of a variant"),
        (lambda e: corrected_compare(e["v1"], VariantResults("e", "v", ()), "helpful"), "stored results"),
        (lambda e: corrected_score(e["v1"], "helpful", level=1), "level"),
        (lambda e: corrected_score(e["v1"], "helpful", by=""), "by"),
        (lambda e: corrected_score(e["v1"], ""), "metric"),
    ],
)
def test_an_invalid_argument_is_named(
    evaluation: Evaluation, call: Callable[[Evaluation], Any], says: str
) -> None:
    with pytest.raises(InvalidOptionError, match=says):
        call(evaluation)


# ---- the promise of the interval


def test_the_interval_covers_what_people_would_say_of_all_cases(tmp_path: Path) -> None:
    """Eight people each label a sample of their own; the judge alone is far off."""
    agents.set_trace_processors([])
    path = tmp_path / "t.sqlite3"
    evaluation = evaluate_shop(path, 60)
    a, b = evaluation["v1"], evaluation["v2"]
    truth = np.mean([good(str(one.output)) for one in b.results]) - np.mean(
        [good(str(one.output)) for one in a.results]
    )
    covered = 0
    for seed in range(8):
        by = f"person {seed}"
        label_all(LabelQueue.of(evaluation, "helpful", by=by, sample=30, seed=seed))
        found = corrected_compare(a, b, "helpful", by=by)
        assert found.low is not None and found.high is not None
        assert found.labels == 30
        covered += int(found.low <= truth <= found.high)
        assert found.judge_difference > truth + 0.15
    assert covered >= 7
    everybody = corrected_compare(a, b, "helpful")
    assert everybody.labels > 55
    assert everybody.difference == pytest.approx(truth, abs=0.05)


def test_the_interval_covers_the_truth_with_conversations_and_repeats_of_unequal_number() -> None:
    """Cases are drawn from conversations of 1 to 6 cases; the judge is biased, and worse in long ones."""
    random_numbers = np.random.default_rng(7)
    replications, covered = size(200, 60), 0
    for _ in range(replications):
        results, labels = _conversations(random_numbers, conversations=60, share=0.4)
        low, high = judged_units(results, "m", labels).corrected(0.95).interval or (0.0, 0.0)
        covered += low <= _TRUTH <= high
    # At most 2.6 standard errors below 95 %: 91 % of 200.
    assert covered / replications >= 0.95 - 2.6 * np.sqrt(0.95 * 0.05 / replications)


@given(st.integers(0, 1_000), st.randoms(use_true_random=False))
def test_with_all_labels_the_corrected_mean_is_that_of_the_cases_in_any_order(seed: int, order: Any) -> None:
    (a, b), labels = _conversations(np.random.default_rng(seed), conversations=8, share=1.0)

    def of_case(results: VariantResults) -> dict[str, float]:
        values: dict[str, list[float]] = {}
        for one in results.results:
            (given,) = labels[one.case_id, one.case_hash, one.variant, one.repeat]
            values.setdefault(one.case_id, []).append(given.value)
        return {case: float(np.mean(found)) for case, found in values.items()}

    before, after = of_case(a), of_case(b)
    expected = np.mean([after[case] - before[case] for case in before])
    shuffled = [
        VariantResults("e", one.variant, tuple(order.sample(one.results, len(one.results)))) for one in (a, b)
    ]
    for sides in ((a, b), shuffled):
        units = judged_units(sides, "m", labels)
        assert units.corrected(0.95).mean == pytest.approx(expected, abs=1e-9)
        assert set(units.probabilities) == {1.0}


def test_a_case_of_several_runs_is_drawn_with_a_higher_probability() -> None:
    runs = [_result((case, "", "a", repeat), "talk", 0.5) for case in ("1", "2") for repeat in (0, 1)]
    single = _result(("3", "", "a", 0), "other", 0.5)
    keys: list[RatedResult] = [("1", "", "a", 0), ("3", "", "a", 0)]
    labels = {key: [_label(key, 1.0, 0.5)] for key in keys}
    units = judged_units([VariantResults("e", "a", (*runs, single))], "m", labels)
    assert (units.cases, units.labelled) == (3, 2)
    assert (units.independent, units.labelled_units) == (2, 2)
    assert units.probabilities == [1 - 0.5**2, 1.0, 0.5]


_TRUTH = 0.1


def _conversations(
    random_numbers: np.random.Generator, conversations: int, share: float
) -> tuple[tuple[VariantResults, VariantResults], dict[RatedResult, list[Label]]]:
    """Return results whose differences have the mean 0.1 over cases, and labels of a random share."""
    runs: dict[str, list[CaseResult]] = {"a": [], "b": []}
    truths: dict[RatedResult, float] = {}
    sizes = random_numbers.integers(1, 7, conversations)
    for number, cases in enumerate(sizes.tolist()):
        common = random_numbers.normal(0.0, 0.3)
        # Longer conversations have the larger differences; the mean over cases is 0.1.
        effect = _TRUTH + 0.05 * (cases - 13 / 3) + common
        for case in range(cases):
            for repeat in range(1 + (number + case) % 2):
                for variant, extra in (("a", 0.0), ("b", effect)):
                    truth = random_numbers.normal(extra, 0.2)
                    score = 0.5 * truth + random_numbers.normal(0.0, 0.1) + (0.3 if variant == "b" else 0.0)
                    key = (f"{number}.{case}", "", variant, repeat)
                    truths[key] = truth
                    runs[variant].append(_result(key, str(number), score))
    drawn = {(case, repeat) for case, _, _, repeat in truths if random_numbers.random() < share}
    labels = {key: [_label(key, value, share)] for key, value in truths.items() if (key[0], key[3]) in drawn}
    a, b = (VariantResults("e", variant, tuple(found)) for variant, found in runs.items())
    return (a, b), labels


def _result(key: RatedResult, conversation: str, score: float) -> CaseResult:
    case, case_hash, variant, repeat = key
    return CaseResult(
        *(case, case_hash, conversation, variant, repeat, "finished", "", None, None, 0.0, 0, 0, None, 1),
        scores={"m": Score(score)},
    )


def _label(key: RatedResult, value: float, probability: float) -> Label:
    case, case_hash, variant, repeat = key
    now = datetime(2026, 1, 1, tzinfo=timezone.utc)
    return Label(case, case_hash, variant, repeat, "m", "aiko", value, None, None, probability, now)


def test_labels_of_a_database_that_is_gone_are_an_error_and_no_traceback_of_sqlite(
    evaluation: Evaluation, tmp_path: Path
) -> None:
    a = evaluation["v1"]
    shutil.move(evaluation.path, tmp_path / "elsewhere.sqlite3")
    with pytest.raises(TraceDatabaseError):
        corrected_score(a, "helpful")
