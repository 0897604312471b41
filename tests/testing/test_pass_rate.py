"""The rule of ``evaluated``: what passes, what fails for certain, and what may be chance."""

from __future__ import annotations

from math import comb
from typing import Any

import pytest

from kantan_agents.lab import Case, CaseResult, Score
from kantan_agents.testing.pass_rate import PassRate, is_failed_check, pass_rate, passes, shortfall
from tests.lab.evaluation.report.made_results import cases_of, result
from tests.sizes import size

NUMBERS = size((*range(1, 40), 75, 150, 300), (*range(1, 13), 20, 39, 75))


def of(passed: float, cases: int, min_pass: float = 0.9) -> PassRate:
    return PassRate(passed, cases, cases, cases, min_pass)


@pytest.mark.parametrize("min_pass", [0.5, 0.8, 0.9, 0.95, 0.99])
def test_an_agent_that_is_good_enough_fails_in_at_most_1_of_40_sessions(min_pass: float) -> None:
    for cases in NUMBERS:
        false_alarms = sum(
            comb(cases, passed) * min_pass**passed * (1 - min_pass) ** (cases - passed)
            for passed in range(cases + 1)
            if of(passed, cases, min_pass).verdict == "failed"
        )
        assert false_alarms <= 0.025


@pytest.mark.parametrize(
    ("passed", "cases", "min_pass", "verdict"),
    [
        (0, 1, 0.9, "uncertain"),  # one unlucky case
        (0, 2, 0.9, "failed"),
        (9, 10, 0.9, "passed"),
        (8, 10, 0.9, "uncertain"),
        (7, 10, 0.9, "uncertain"),
        (6, 10, 0.9, "failed"),
        (80, 100, 0.9, "failed"),
        (30, 30, 1.0, "passed"),
        (29, 30, 1.0, "failed"),  # an agent that always passes cannot fail one
        (19.5, 20, 1.0, "failed"),  # not even in one of two repeats
        (0.3 * 3, 1, 0.9, "passed"),  # 0.8999999999999999
    ],
)
def test_a_rate_passes_fails_or_may_be_chance(
    passed: float, cases: int, min_pass: float, verdict: str
) -> None:
    assert of(passed, cases, min_pass).verdict == verdict


def test_the_number_of_more_cases_is_the_smallest_that_would_fail() -> None:
    found = of(8, 10)
    assert found.more_cases is not None
    total = 10 + found.more_cases
    assert of(0.8 * total, total).verdict == "failed"
    assert of(0.8 * (total - 1), total - 1).verdict == "uncertain"
    assert of(8_999, 10_000).more_cases is None


def test_the_text_has_the_rate_its_interval_and_what_is_asked_for() -> None:
    assert of(18, 30).text == ("18 of 30 cases pass: 60.0% (95% interval 40.6% to 77.3%), and 90.0% must")


def rate_of(results: list[CaseResult], **options: Any) -> PassRate | None:
    return pass_rate(results, **{"min_pass": 0.9, "threshold": 0.5, "is_scored": True, **options})


def test_repeats_are_averaged_and_a_conversation_is_one_observation() -> None:
    first, second = cases_of(2)
    talk = [Case(f"turn {number}", id=f"t{number}", conversation="talk") for number in range(3)]
    found = rate_of(
        [
            *(result(first, "v", {"m": number == 0}, repeat=number) for number in range(4)),
            *(result(one, "v", {"m": 1}) for one in (second, *talk)),
        ]
    )
    assert found is not None
    assert (found.passed, found.cases, found.independent) == (4.25, 5, 3)


def test_one_long_conversation_that_fails_does_not_fail_the_test_for_certain() -> None:
    talk = [Case(f"turn {number}", id=f"t{number}", conversation="talk") for number in range(40)]
    same = [Case("the same question", id=f"s{number}") for number in range(40)]
    others = cases_of(10)
    for failing in (talk, same):
        found = rate_of([result(one, "v", {"m": one in others}) for one in (*failing, *others)])
        assert found is not None
        assert (found.rate, found.independent, found.verdict) == (0.2, 11, "uncertain")


def test_what_has_no_score_is_left_out_and_what_has_failed_is_not() -> None:
    cases = cases_of(5)
    broken = Score(None, error="KeyError: 'x'")
    found = rate_of(
        [
            result(cases[0], "v", {"m": 1}),
            result(cases[1], "v", {"m": broken}),
            result(cases[2], "v", {}),  # no evaluator applies
            result(cases[3], "v", {}, status="failed", output=None, error="ValueError: no"),
            result(cases[4], "v", {"m": broken, "n": 0}),
        ]
    )
    assert found is not None
    assert (found.passed, found.cases) == (1, 3)
    assert rate_of([result(cases[1], "v", {"m": broken})]) is None


def test_if_all_must_pass_one_case_of_a_conversation_fails() -> None:
    talk = [Case(f"turn {number}", id=f"t{number}", conversation="talk") for number in range(3)]
    found = rate_of([result(one, "v", {"m": one.id != "t1"}) for one in talk], min_pass=1.0)
    assert found is not None
    assert (found.verdict, found.independent) == ("failed", 1)
    assert found.interval.high > 0.99


def test_a_failed_assertion_does_not_pass_at_any_threshold() -> None:
    (case,) = cases_of(1)
    one = result(case, "v", {"m": Score(None, error="AssertionError: assert 1 == 2\n +  where 1 = f()")})
    assert passes(one, -1.0, is_scored=True) is False
    assert shortfall(one.scores["m"], -1.0) == "0, assert 1 == 2"
    assert not is_failed_check(Score(None, error="AssertionErrorOfMine: no"))


def test_without_evaluators_a_run_passes_if_it_finishes() -> None:
    (case,) = cases_of(1)
    assert passes(result(case, "v", {}), 0.5, is_scored=False) is True
    failed = result(case, "v", {}, status="failed", output=None, error="ValueError: no")
    assert passes(failed, 0.5, is_scored=False) is False


def test_every_score_must_reach_the_threshold() -> None:
    (case,) = cases_of(1)
    one = result(case, "v", {"m": 0.7, "n": 0.6})
    assert passes(one, 0.6, is_scored=True) is True
    assert passes(one, 0.65, is_scored=True) is False
