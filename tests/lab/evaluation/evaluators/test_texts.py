"""Scores of texts against a reference."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.evaluators import chrf, normalized, overlap, rouge_l, similar
from tests.lab.evaluation.values import expecting, finished

REFERENCE_NUMBERS: list[tuple[str, str, float, float]] = [
    ("The order arrives on Monday.", "The order will arrive on Monday morning.", 0.6666666667, 0.4883118180),
    ("the cat sat on the mat", "the mat sat on the cat", 0.6666666667, 0.8801892552),
    ("Refund 7 was sent, twice!", "refund 7 was sent", 0.8888888889, 0.8111436781),
    ("Guten Morgen, wie geht es Ihnen?", "Guten Tag, wie geht's?", 0.5454545455, 0.4522580291),
    ("yes", "no", 0.0, 0.0),
    ("a", "a b c d e f g", 0.25, 0.1724137931),
    ("state-of-the-art e-mail", "state of the art email", 0.7272727273, 0.4141308093),
    ("", "x", 0.0, 0.0),
    ("one two three four five", "five four three two one", 0.2, 0.5073801743),
    ("ab", "abcdefgh", 0.0, 0.2340425532),
]
"""rouge-score 0.1.2 (rougeL, F1, no stemming) and sacrebleu 2.6 (sentence_chrf / 100)."""


@pytest.mark.parametrize(("output", "reference", "rouge", "char"), REFERENCE_NUMBERS)
async def test_the_numbers_are_those_of_the_reference_implementations(
    output: str, reference: str, rouge: float, char: float
) -> None:
    run = finished(output, case=expecting(reference))
    assert (await rouge_l().score(run))["rouge_l"].value == pytest.approx(rouge, abs=1e-9)
    assert (await chrf().score(run))["chrf"].value == pytest.approx(char, abs=1e-9)


def test_texts_beyond_ascii_are_compared_by_their_own_words() -> None:
    assert overlap.chrf("ご注文は月曜日に届きます。", "注文は月曜に届く予定です。") == pytest.approx(
        0.296024346
    )
    assert overlap.rouge_l("ご注文は月曜日に届きます。", "注文は月曜に届く予定です。") == pytest.approx(2 / 3)
    assert overlap.rouge_l("Ärger", "Ärger") == 1.0


WORDS = st.lists(st.sampled_from("abcd"), max_size=7)


@given(WORDS, WORDS)
def test_the_longest_common_subsequence_is_the_longest(one: list[str], other: list[str]) -> None:
    subsequences = {
        picked for size in range(len(other) + 1) for picked in itertools.combinations(other, size)
    }
    longest = max(
        size
        for size in range(len(one) + 1)
        for picked in itertools.combinations(one, size)
        if picked in subsequences
    )
    assert overlap._longest_common(one, other) == longest


@given(st.text(), st.text())
def test_scores_are_from_0_to_1_and_the_same_text_has_1(one: str, other: str) -> None:
    for score in (overlap.rouge_l, overlap.chrf):
        assert 0.0 <= score(one, other) <= 1.0 + 1e-12
        assert score(one, one) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("output", "reference", "same"),
    [
        ("  Paris. ", "paris", True),
        ("It's 3.5 km!", "its 3.5 km", False),
        ("\uff30aris", "Paris", True),
        ("- 5 apples", "5 apples", True),
        ("-5", "5", False),
        ("\u22125", "-5", True),
        ("3.5", "35", False),
        ("5 %", "5", False),
        ("$5", "5", False),
        ("10\u201320", "10-20", True),
        ("STRASSE", "straße", True),
        ("no", "not", False),
    ],
)
async def test_normalized_ignores_form_and_nothing_else(output: str, reference: str, same: bool) -> None:
    assert (await normalized().score(finished(output, case=expecting(reference))))["normalized"].value == same


@pytest.mark.parametrize("make", [normalized, rouge_l, chrf, lambda: similar("model")])
async def test_a_case_without_a_text_to_compare_with_gets_no_score(make: Any) -> None:
    assert await make().score(finished("x")) == {}
    assert await make().score(finished("x", case=expecting({"a": 1}))) == {}


async def test_similar_is_the_cosine_of_the_users_vectors() -> None:
    vectors = {"hello": [3.0, 0.0], "hi": [1.0, 1.0], "zero": [0.0, 0.0]}

    def embed(texts: list[str]) -> list[list[float]]:
        return [vectors[text] for text in texts]

    async def embed_later(texts: list[str]) -> list[list[float]]:
        return embed(texts)

    run = finished("hello", case=expecting("hi"))
    for one in (similar(embed, version="1"), similar(embed_later)):
        assert (await one.score(run))["similar"].value == pytest.approx(0.7071067812)
    assert (await similar(embed).score(finished("zero", case=expecting("hi"))))["similar"].value == 0.0
    assert similar("a").version != similar("b").version != similar(embed).version
    vectors = {"hello": [1.5, 2.142857142857143, 5.0], "hi": [1.5, 2.142857142857143, 5.0]}
    assert (await similar(embed).score(run))["similar"].value == 1.0  # not 1.0000001


async def test_an_embedder_that_fails_is_a_failed_score() -> None:
    run = finished("hello", case=expecting("hi"))
    (score,) = (await similar(lambda texts: [[1.0]]).score(run)).values()
    assert score.value is None and "E57" in str(score.error)
    with pytest.raises(InvalidOptionError, match="embed: must be a model's name or a function"):
        similar(7)  # type: ignore[arg-type]
