"""The index never misses a text that contains a word."""

from __future__ import annotations

from unicodedata import normalize

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kantan_agents.traces.trigrams import fold, indexed_text, lower_ascii, match_query

CHARACTERS = "abAB%_\"'\\ \n\x00ßẞÜüİiıſKfiﬁΣσςДд天気の😀👨\u200d👩é\u0301ǅᏣꮳ"  # noqa: RUF001 - that they look alike is the point
TEXTS = st.text(st.sampled_from(CHARACTERS), max_size=12) | st.text(max_size=12)


def contains(text: str, word: str) -> bool:
    """Return what a search promises: case, width and the way of writing a letter are ignored."""
    return lower_ascii(word) in lower_ascii(text) or fold(word) in fold(text)


def may_contain(texts: list[str], query: str) -> bool:
    """Return what FTS5 finds: every quoted sequence of one form occurs in the text."""
    indexed = indexed_text(texts)
    return any(
        all(quoted.strip("()")[1:-1].replace('""', '"') in indexed for quoted in form.split(" AND "))
        for form in query.split(" OR ")
    )


@given(before=TEXTS, word=TEXTS, after=TEXTS, other=TEXTS)
@example(before="", word="STRASSE ü", after="", other="")
@example(before="a\n", word="b\n\nabc", after="", other="")
@example(before="", word="ガイド１２３", after="", other="")
def test_a_text_with_a_word_is_never_missed(before: str, word: str, after: str, other: str) -> None:
    query = match_query(word)
    written = (word, word.upper(), word.swapcase(), normalize("NFD", word), normalize("NFKC", word))
    for text in (before + each + after for each in written):
        if query is not None and contains(text, word):
            assert may_contain([other, text], query)


@given(text=TEXTS, word=TEXTS)
def test_any_text_that_contains_a_word_is_found(text: str, word: str) -> None:
    query = match_query(word)
    if query is not None and contains(text, word):
        assert may_contain([text], query)


@pytest.mark.parametrize("word", ["", "a", "ab", "天気", "😀😀", "a\nb", "ab\x00cd", "\n\n\n"])
def test_a_word_without_three_characters_in_a_line_cannot_be_looked_up(word: str) -> None:
    assert match_query(word) is None


def test_a_long_word_is_looked_up_by_sequences_of_all_its_parts() -> None:
    word = "".join(chr(ord("一") + number) for number in range(10_000))
    query = match_query(word)
    assert query is not None
    sequences = query.split(" AND ")
    assert len(sequences) <= 32
    assert word.index(sequences[0].strip('"')) == 0
    assert word.index(sequences[-1].strip('"')) > 9_000


def test_a_line_is_held_once_and_in_all_forms() -> None:
    assert indexed_text(["One\nTwo", "one\nSTRAßE"]) == "one\ntwo\nstraße\nstrasse"
    assert indexed_text(["Ａbc"]) == "Ａbc\nａbc\nabc"  # noqa: RUF001 - full-width


@pytest.mark.parametrize("word", ["カタカナ", "Ａｂｃ", "naïve", "Ｌ１２３"])  # noqa: RUF001 - full-width
def test_an_index_of_an_earlier_version_finds_what_it_found(word: str) -> None:
    query = match_query(word)
    assert query is not None
    old = f"{lower_ascii(word)}\n{word.casefold()}"
    forms = [[quoted.strip('()"') for quoted in form.split(" AND ")] for form in query.split(" OR ")]
    assert any(all(sequence in old for sequence in form) for form in forms)


@pytest.mark.parametrize("word", ["Ꮳꮳ", "ΣΑΣ", "plain", "天気"])
def test_a_folded_word_is_folded_again_to_itself(word: str) -> None:
    assert fold(fold(word)) == fold(word)
