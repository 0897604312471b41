"""``changed_cases``: the cases behind a comparison."""

from __future__ import annotations

from kantan_agents.lab import compare
from kantan_agents.lab.evaluation.comparing.changed_cases import changed_cases
from tests.lab.evaluation.report.made_results import cases_of, result, variant


def test_the_cases_that_changed_are_listed_the_largest_change_first() -> None:
    cases = cases_of(4)
    a = variant("v1", [result(one, "v1", {"m": 0.5}) for one in cases])
    values = (0.5, 0.25, 1.0, 0.75)
    b = variant("v2", [result(one, "v2", {"m": value}) for one, value in zip(cases, values, strict=True)])
    changed = changed_cases(compare(a, b), a, b)
    assert [(one.case_id, one.change) for one in changed["m"]] == [
        ("c2", "better"),
        ("c1", "worse"),
        ("c3", "better"),
    ]
    assert changed["m"][0].to_dict() == {
        "metric": "m",
        "case": "c2",
        "change": "better",
        "a": {"value": 0.5, "trace_ids": ["trace_v1_c2"]},
        "b": {"value": 1.0, "trace_ids": ["trace_v2_c2"]},
    }


def test_less_is_better_where_the_metric_says_so_and_times_are_left_out() -> None:
    cases = cases_of(2)
    a = variant("v1", [result(one, "v1", {"m": 3}, seconds=1.0) for one in cases], m="lower")
    b = variant("v2", [result(one, "v2", {"m": 1}, seconds=2.0) for one in cases], m="lower")
    changed = changed_cases(compare(a, b), a, b)
    assert {one.change for one in changed["m"]} == {"better"}
    assert changed.keys() == {"m"}


def test_a_case_that_fails_with_one_of_them_has_flipped() -> None:
    cases = cases_of(3)
    a = variant("v1", [result(one, "v1", {"m": 1}) for one in cases])
    failed = result(cases[1], "v2", {}, status="failed", output=None, error="ValueError: no")
    b = variant("v2", [result(cases[0], "v2", {"m": 1}), failed, result(cases[2], "v2", {"m": 1})])
    (one,) = changed_cases(compare(a, b), a, b)["failed"]
    assert (one.case_id, one.change, one.value_a, one.value_b) == ("c1", "worse", 0.0, 1.0)


def test_a_variant_has_not_changed_against_itself() -> None:
    cases = cases_of(3)
    a = variant("v1", [result(one, "v1", {"m": 1}) for one in cases])
    assert changed_cases(compare(a, a), a, a) == {}
