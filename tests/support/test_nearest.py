"""The nearest names are those that rapidfuzz finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA, LCSseq

from kantan_agents.support.nearest import common_letters_with, most_similar, near_keys, nearest

LETTERS = st.text("abcd_é", max_size=9)


@given(LETTERS, LETTERS)
def test_common_letters_are_the_longest_common_subsequence(one: str, other: str) -> None:
    assert common_letters_with(one)(other) == LCSseq.similarity(one, other)


@given(LETTERS, st.lists(LETTERS, max_size=20), st.integers(1, 5), st.sampled_from([0, 60]))
def test_the_most_similar_texts_are_those_of_rapidfuzz(
    text: str, others: list[str], limit: int, percent: int
) -> None:
    found = process.extract(text, others, scorer=fuzz.ratio, limit=limit, score_cutoff=percent)
    assert most_similar(text, others, limit, percent / 100) == [place for _, _, place in found]


@given(LETTERS, st.lists(LETTERS))
def test_the_nearest_name_ignores_case_and_the_order_of_the_names(text: str, names: list[str]) -> None:
    assert nearest(text.upper(), names) == nearest(text, reversed(names))


def test_a_name_that_resembles_none_has_no_nearest() -> None:
    assert nearest("delete", ["search", "list"]) is None
    assert nearest("delte", ["search", "Delete"]) == "Delete"


@given(st.text("rslu", max_size=6))
def test_a_near_key_is_one_edit_away(key: str) -> None:
    is_near = key != "rules" and OSA.distance(key, "rules") <= 1
    assert near_keys([key], "rules") == ([key] if is_near else [])
