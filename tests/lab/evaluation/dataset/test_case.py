"""``Case``: what is in it, and what is refused."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given

from kantan_agents.errors import InvalidCaseError
from kantan_agents.lab import Case
from tests.lab.evaluation.values import cases


def test_the_id_is_the_beginning_of_the_hash_unless_it_is_given() -> None:
    case = Case("q")
    assert len(case.hash) == 64
    assert case.id == case.hash[:16] == Case("q", id="").id == Case("q", id=" ").id
    assert Case("q", id="mine").id == "mine"


def test_the_hash_is_that_of_input_context_and_expected_output() -> None:
    case = Case("q", context={"a": 1, "b": 2}, expected="x")
    assert case.hash == Case("q", context={"b": 2, "a": 1}, expected="x").hash
    assert case.hash == attrs.evolve(case, id="other", metadata={"c": 1}, conversation="d").hash
    others = [
        Case("r", context=case.context, expected="x"),
        Case("q", expected="x"),
        Case("q", context=case.context),
    ]
    assert len({case.hash, *(other.hash for other in others)}) == 4


@given(cases())
def test_a_case_shares_nothing_with_its_caller(case: Case) -> None:
    context: dict[str, Any] = {"list": [1]}
    made = attrs.evolve(case, context=context)
    context["list"].append(2)
    assert made.context == {"list": [1]}
    assert attrs.evolve(case) == case


def test_tuples_become_lists_as_in_json() -> None:
    assert Case("q", expected=(1, (2,))).expected == [1, [2]]
    assert Case(({"role": "user"},)).input == [{"role": "user"}]


def test_two_halves_of_a_character_become_one_as_in_json() -> None:
    assert Case("\ud83d\ude00").input == "\U0001f600"
    assert Case("half \ud83d").input == "half \ud83d"


DEEP: list[Any] = []
for _ in range(5000):
    DEEP = [DEEP]

INVALID: dict[str, tuple[dict[str, Any], str]] = {
    "input": ({"input": 5}, "input must be a str or a list of dicts, not 5"),
    "input item": ({"input": ["q"]}, "input must be a str or a list of dicts"),
    "nan": ({"expected": {"a": [float("nan")]}}, "expected.a.0 is nan, which JSON does not have"),
    "infinity": ({"context": {"a": float("inf")}}, "context.a is inf"),
    "set": ({"metadata": {"a": {1}}}, "metadata.a is a set, which JSON does not have"),
    "bytes": ({"expected": b"x"}, "expected is a bytes"),
    "key": ({"expected": {1: "a"}}, "expected has the key 1, which is not a str"),
    "context": ({"context": [1]}, r"context must be a dict, not \[1\]"),
    "metadata": ({"metadata": None}, "metadata must be a dict, not None"),
    "id": ({"id": 5}, "id must be a str, not 5"),
    "id that is not Unicode": ({"id": "\ud800"}, "id .* is not valid Unicode"),
    "conversation": ({"conversation": 5}, "conversation must be a str, not 5"),
    "empty conversation": ({"conversation": ""}, "conversation is empty"),
    "deep": ({"expected": DEEP}, "expected is nested more than 200 levels deep"),
    "digits": ({"expected": 10**5000}, "expected is an integer with too many digits"),
}


@pytest.mark.parametrize("name", INVALID)
def test_what_is_not_json_data_is_refused_with_its_place(name: str) -> None:
    values, reason = INVALID[name]
    with pytest.raises(InvalidCaseError, match=rf"E101\] Invalid case .*: {reason}"):
        Case(**{"input": "question", **values})


def test_the_error_names_the_case_by_its_id_or_its_input() -> None:
    with pytest.raises(InvalidCaseError) as raised:
        Case("question", expected={1})
    assert raised.value.case == "question"
    with pytest.raises(InvalidCaseError) as raised:
        Case("question", id="c1", expected={1})
    assert raised.value.case == "c1"
