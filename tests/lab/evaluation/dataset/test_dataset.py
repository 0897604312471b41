"""``Dataset``: its cases, its hash, and datasets made from it."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.errors import InvalidCaseError, InvalidOptionError
from kantan_agents.lab import Case, Dataset
from tests.lab.evaluation.values import case_lists

ONE, TWO = Case("one", id="1"), Case("two", id="2")


def test_cases_are_found_by_id() -> None:
    dataset = Dataset("d", [ONE, TWO])
    assert (len(dataset), [*dataset], dataset["2"]) == (2, [ONE, TWO], TWO)
    assert "1" in dataset
    assert ONE in dataset
    assert Case("other", id="1") not in dataset
    assert "3" not in dataset
    assert repr(dataset) == "<Dataset 'd', 2 cases>"
    with pytest.raises(KeyError, match="the dataset 'd' has no case with the id '3'"):
        dataset["3"]


def test_two_cases_with_one_id_are_refused_with_both_places() -> None:
    with pytest.raises(
        InvalidCaseError, match=r"E101\] Invalid case '1': cases\[0\] and cases\[2\] have this id"
    ):
        Dataset("d", [ONE, TWO, Case("x", id="1")])


@pytest.mark.parametrize(
    ("values", "option"),
    [
        ({"name": 5}, "name"),
        ({"name": " "}, "name"),
        ({"cases": 5}, "cases"),
        ({"cases": "text"}, "cases"),
        ({"cases": [ONE, {"input": "q"}]}, "cases"),
    ],
)
def test_invalid_arguments_are_errors_that_name_the_option(values: dict[str, Any], option: str) -> None:
    with pytest.raises(InvalidOptionError) as raised:
        Dataset(**{"name": "d", "cases": [ONE], **values})
    assert raised.value.option == option


def test_the_name_is_not_part_of_what_makes_datasets_equal() -> None:
    assert Dataset("a", [ONE]) == Dataset("b", [ONE])
    assert Dataset("a", [ONE]).hash == Dataset("b", [ONE]).hash
    assert Dataset("a", [ONE]) != Dataset("a", [TWO])


@given(case_lists(), st.randoms())
def test_the_hash_depends_on_ids_and_contents_and_not_on_their_order(
    cases: list[Case], order: random.Random
) -> None:
    shuffled = [*cases]
    order.shuffle(shuffled)
    dataset = Dataset("d", cases)
    assert dataset.hash == Dataset("d", shuffled).hash
    fewer = Dataset("d", cases[1:])
    assert (dataset.hash == fewer.hash) == (len(cases) == 0)


@given(case_lists(), st.integers(1, 10), st.integers(0, 3), st.randoms())
def test_a_sample_has_the_same_cases_in_any_order_of_the_dataset(
    cases: list[Case], n: int, seed: int, order: random.Random
) -> None:
    dataset = Dataset("d", cases)
    drawn = dataset.sample(n, seed)
    assert len(drawn) == min(n, len(dataset))
    assert [*drawn] == [case for case in dataset if case in drawn]
    shuffled = [*cases]
    order.shuffle(shuffled)
    again = Dataset("d", shuffled).sample(n, seed)
    assert {case.id for case in again} == {case.id for case in drawn}


def test_another_seed_gives_another_sample() -> None:
    dataset = Dataset("d", [Case(str(number)) for number in range(100)])
    assert len({dataset.sample(10, seed).hash for seed in range(5)}) == 5


def test_a_sample_needs_a_size_and_a_seed() -> None:
    for arguments, option in (((0,), "n"), ((True,), "n"), ((1, "x"), "seed"), ((1, True), "seed")):
        with pytest.raises(InvalidOptionError) as raised:
            Dataset("d", [ONE]).sample(*arguments)
        assert raised.value.option == option


def test_deduplicated_keeps_the_first_of_equal_contents() -> None:
    again = Case("one", id="3", metadata={"a": 1}, conversation="c")
    assert [*Dataset("d", [ONE, TWO, again]).deduplicated()] == [ONE, TWO]


@given(case_lists())
def test_deduplicating_twice_changes_nothing(cases: list[Case]) -> None:
    once = Dataset("d", cases).deduplicated()
    assert once.deduplicated() == once
    assert {case.hash for case in once} == {case.hash for case in cases}


def test_filter_keeps_the_cases_for_which_the_predicate_holds() -> None:
    dataset = Dataset("d", [ONE, TWO]).filter(lambda case: case.input == "two")
    assert ([*dataset], dataset.name) == ([TWO], "d")
