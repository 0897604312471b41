"""Splits: one conversation is on one side, and cases that are added move no other one."""

from __future__ import annotations

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab import Case, Dataset, Split
from tests.lab.evaluation.values import case_lists

_SEEDS = st.integers(0, 20)


def parts(split: Split) -> dict[str, str]:
    """Return the part of each case by its id."""
    opened = {"train": split.train, "validation": split.validation, "test": split.test.open("a test")}
    return {case.id: name for name, dataset in opened.items() for case in dataset}


@given(case_lists(), _SEEDS)
def test_every_case_is_in_one_part_in_its_order(cases: list[Case], seed: int) -> None:
    dataset = Dataset("d", cases)
    split = dataset.split(seed=seed)
    assert len(split.train) + len(split.validation) + len(split.test) == len(dataset)
    assert parts(split).keys() == {case.id for case in cases}
    assert [*split.train] == [case for case in cases if case in split.train]


@given(case_lists(max_size=12), _SEEDS, st.lists(st.integers(0, 2), min_size=12, max_size=12))
def test_a_conversation_is_never_on_both_sides(cases: list[Case], seed: int, groups: list[int]) -> None:
    grouped = [
        attrs.evolve(case, conversation=f"c{group}") for case, group in zip(cases, groups, strict=False)
    ]
    found = parts(Dataset("d", grouped).split(seed=seed))
    for group in range(3):
        assert len({found[case.id] for case in grouped if case.conversation == f"c{group}"}) <= 1


@given(case_lists(), case_lists(), _SEEDS)
def test_cases_that_are_added_move_no_other_one(cases: list[Case], more: list[Case], seed: int) -> None:
    known = {case.id for case in cases}
    larger = Dataset("d", [*(case for case in more if case.id not in known), *cases])
    before = parts(Dataset("d", cases).split(seed=seed))
    after = parts(larger.split(seed=seed))
    assert {case_id: after[case_id] for case_id in before} == before


@given(st.text(), st.text(), st.text(), _SEEDS)
def test_a_corrected_reference_moves_no_case_and_equal_inputs_are_on_one_side(
    question: str, one: str, other: str, seed: int
) -> None:
    cases = [Case(question, id="1", expected=one), Case(question, id="2", expected=other, context={"a": 1})]
    assert len(set(parts(Dataset("d", cases).split(seed=seed)).values())) == 1


def test_the_sizes_are_about_the_wanted_ones_and_another_seed_gives_another_split() -> None:
    dataset = Dataset("d", [Case(str(number)) for number in range(2000)])
    split = dataset.split(train=0.5, validation=0.3, test=0.2)
    sizes = (len(split.train), len(split.validation), len(split.test))
    assert [abs(size - wanted) < 90 for size, wanted in zip(sizes, (1000, 600, 400), strict=True)] == [
        True
    ] * 3
    assert (split.train.name, split.validation.name, split.test.name) == ("d-train", "d-validation", "d-test")
    assert dataset.split(seed=1).train != dataset.split().train
    assert dataset.split(seed=1).train == dataset.split(seed=1).train


@given(case_lists(), _SEEDS, st.permutations([1.0, 0.0, 0.0]))
def test_a_fraction_of_zero_gives_an_empty_part(cases: list[Case], seed: int, sizes: list[float]) -> None:
    train, validation, test = sizes
    split = Dataset("d", cases).split(train=train, validation=validation, test=test, seed=seed)
    found = (len(split.train), len(split.validation), len(split.test))
    assert found == tuple(int(size) * len(cases) for size in sizes)


@pytest.mark.parametrize(
    ("fractions", "option"),
    [
        ({"train": 0.7}, "test"),
        ({"train": -0.2, "validation": 1.0}, "train"),
        ({"test": float("nan")}, "test"),
        ({"validation": "0.2"}, "validation"),
        ({"seed": 1.5}, "seed"),
    ],
)
def test_fractions_that_do_not_add_up_are_refused(fractions: dict[str, float], option: str) -> None:
    with pytest.raises(InvalidOptionError) as raised:
        Dataset("d", [Case("q")]).split(**fractions)  # type: ignore[arg-type]
    assert raised.value.option == option


def test_fractions_may_have_rounding_errors() -> None:
    Dataset("d", [Case("q")]).split(train=0.1 + 0.2, validation=0.1, test=0.6)
