"""What runs that failed or lack a score count as in a comparison."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab import CaseResult, VariantResults, compare
from kantan_agents.lab.evaluation.comparing.changed_cases import changed_cases
from kantan_agents.lab.evaluation.evaluators.evaluator import Better
from tests.lab.evaluation.comparing.scores import result, results, variant_of

OWN = {"help": ("judge", "1")}


def crashing(count: int, of: int = 40, value: float = 0.8, **more: Any) -> VariantResults:
    """Return results of v2, of which the first have failed."""
    return variant_of(
        [result(str(case), value, variant="v2", failed=case < count, **more) for case in range(of)], "v2"
    )


def judged(number: int, value: float | None, variant: str = "v1", **more: Any) -> CaseResult:
    """Return a result that the evaluator ``judge`` was asked about."""
    return attrs.evolve(result(str(number), value, variant=variant), evaluators=OWN, **more)


@pytest.mark.parametrize("value", [0.8, 80.0, 1.0, 4.0])
def test_a_version_that_crashes_is_worse(value: float) -> None:
    found = compare(results([value] * 40), crashing(39, value=value), metrics="help")["help"]
    assert (found.verdict, found.cases, found.missing, found.worst) == ("worse", 40, {"v2": 39}, 0.0)
    assert found.text.endswith("; 39 runs of v2 without a score count as 0")
    back = compare(crashing(39, value=value), results([value] * 40), metrics="help")["help"]
    assert (back.verdict, back.missing) == ("better", {"v2": 39})


def test_missing_scores_can_be_left_out_which_is_said() -> None:
    comparison = compare(results([0.8] * 40), crashing(39), metrics="help", missing="ignore")
    found = comparison["help"]
    assert (found.cases, found.missing, found.worst, found.left_out) == (1, {}, None, 39)
    assert "39 cases without a value on both sides left out" in found.text
    assert comparison.lines[-1] == "39 failed runs of v2"


@pytest.mark.parametrize(
    ("values", "better", "worst"),
    [
        ([0.0, 1.0], "higher", 0.0),
        ([0.0, 1.0], "lower", 1.0),
        ([0.2, 0.9], "lower", 1.0),
        ([3.0, 5.0], "higher", 0.0),
        ([3.0, 5.0], "lower", 10.0),
        ([-2.0, 5.0], "higher", -4.0),
        ([-2.0, -1.0], "lower", 0.0),
    ],
)
def test_what_a_missing_score_counts_as(values: list[float], better: Better, worst: float) -> None:
    side = results([*values, *values], better=better)
    missing = [*values, values[0], None]
    found = compare(side, results(missing, "v2", better=better), metrics="help")["help"]
    assert (found.worst, found.missing, found.cases) == (worst, {"v2": 1}, 4)
    assert (found.difference or 0.0) * (1 if better == "lower" else -1) >= 0


def test_repeats_without_a_score_lower_the_mean_of_their_case() -> None:
    a = variant_of([result("0", 1.0, repeat=number) for number in range(4)])
    b = variant_of([result("0", 1.0, variant="v2", repeat=number, failed=not number) for number in range(4)])
    found = compare(a, b, metrics="help")["help"]
    assert (found.mean_a, found.mean_b) == (1.0, 0.75)


def test_a_failed_score_counts_as_well() -> None:
    found = compare(results([0.5, None, 0.5]), results([0.5, 0.5, None], "v2"))["help"]
    assert (found.cases, found.missing) == (3, {"v1": 1, "v2": 1})
    assert (found.wins, found.losses) == (("1",), ("2",))


def test_a_case_without_a_score_on_either_side_says_nothing() -> None:
    comparison = compare(results([0.5, None, 0.5]), results([0.5, None, 0.5], "v2"), metrics="help")
    found = comparison["help"]
    assert (found.cases, found.missing, found.left_out) == (2, {}, 1)
    assert "1 case without a value on both sides left out" in comparison.text


def test_a_judge_that_has_failed_on_all_runs_of_a_variant_says_nothing_about_it() -> None:
    found = compare(results([0.5] * 9), results([None] * 9, "v2"))["help"]
    assert (found.cases, found.verdict) == (0, "cannot tell")


def test_an_evaluator_that_does_not_apply_leaves_nothing_missing() -> None:
    a = variant_of([judged(number, 0.5) for number in range(4)])
    other = judged(3, 0.5, "v2", scores={}, not_applicable=("judge",))
    b = variant_of([*(judged(number, 0.5, "v2") for number in range(3)), attrs.evolve(other, evaluators={})])
    found = compare(a, b, metrics="help")["help"]
    assert (found.cases, found.missing, found.left_out) == (3, {}, 1)


def test_an_evaluator_that_was_not_asked_yet_leaves_a_score_missing() -> None:
    a = variant_of([judged(number, 0.5) for number in range(4)])
    late = attrs.evolve(judged(3, 0.5, "v2"), scores={}, evaluators={})
    b = variant_of([*(judged(number, 0.5, "v2") for number in range(3)), late], "v2")
    assert compare(a, b, metrics="help")["help"].missing == {"v2": 1}


def test_an_error_of_an_evaluator_of_several_metrics_leaves_all_of_them_missing() -> None:
    a = variant_of([judged(number, 0.5) for number in range(4)])
    error = result("3", None, variant="v2", metric="judge")
    error = attrs.evolve(error, evaluators={"judge": ("judge", "1")})
    b = variant_of([*(judged(number, 0.5, "v2") for number in range(3)), error], "v2")
    assert compare(a, b, metrics="help")["help"].missing == {"v2": 1}


def test_a_variant_that_was_never_scored_by_an_evaluator_is_not_compared_by_it() -> None:
    a = variant_of([judged(number, 0.5) for number in range(4)])
    b = variant_of([judged(number, 0.5, "v2", not_applicable=("other",)) for number in range(4)], "v2")
    b = attrs.evolve(b, results=tuple(attrs.evolve(one, scores={}, evaluators={}) for one in b.results))
    found = compare(a, b, metrics="help")["help"]
    assert (found.cases, found.missing) == (0, {})


def test_figures_are_those_of_finished_runs() -> None:
    found = compare(results([0.8] * 40), crashing(30), metrics=["latency", "failed"])
    assert (found["latency"].cases, found["latency"].left_out, found["failed"].cases) == (10, 30, 40)


def test_the_changed_cases_have_the_values_that_are_compared() -> None:
    a, b = results([0.8] * 4), crashing(1, of=4)
    (first,) = changed_cases(compare(a, b, metrics="help"), a, b)["help"]
    assert (first.case_id, first.value_b, first.change) == ("0", 0.0, "worse")


def test_it_is_json_data_and_another_choice_is_refused() -> None:
    data = json.loads(json.dumps(compare(results([0.8] * 4), crashing(1, of=4)).to_dict()))
    assert (data["missing"], data["metrics"][0]["missing"]) == ("worst", {"v2": 1})
    with pytest.raises(InvalidOptionError, match=r"must be 'worst' or 'ignore', not 'zero'"):
        compare(results([0.8]), results([0.8]), missing="zero")  # type: ignore[arg-type]
