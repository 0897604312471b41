"""The distance between a typed name and a command is that of Damerau and Levenshtein, as in rapidfuzz."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import process
from rapidfuzz.distance import DamerauLevenshtein

from kantan_agents.tools.commands.registry import edit_distance, probably_meant

LETTERS = st.text("abcd", max_size=8)


@given(LETTERS, LETTERS)
def test_the_distance_is_that_of_rapidfuzz(one: str, other: str) -> None:
    assert edit_distance(one, other) == DamerauLevenshtein.distance(one, other)


@given(LETTERS, st.lists(LETTERS, max_size=20), st.integers(1, 4), st.sampled_from([0.0, 0.5]))
def test_the_names_that_are_probably_meant_are_those_of_rapidfuzz(
    typed: str, names: list[str], limit: int, least: float
) -> None:
    score = DamerauLevenshtein.normalized_similarity
    found = process.extract(typed, names, scorer=score, limit=limit, score_cutoff=least)
    assert probably_meant(typed, names, limit, least) == [place for _, _, place in found]
