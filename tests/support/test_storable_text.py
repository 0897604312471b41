"""Texts that every database takes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.support.storable_text import storable_text, whole_text

anything = st.text(st.characters(exclude_categories=()))


@given(anything)
def test_every_text_becomes_one_that_can_be_stored_and_those_that_can_stay(text: str) -> None:
    stored = storable_text(text)
    assert "\0" not in stored
    assert stored.encode().decode() == stored
    assert storable_text(stored) is stored
    if "\0" not in text and not any("\ud800" <= one <= "\udfff" for one in text):
        assert stored is text


@given(anything)
def test_only_halves_and_zeros_change(text: str) -> None:
    halves = sum("\ud800" <= one <= "\udfff" for one in text)
    pairs = len(text) - len(whole_text(text))
    assert whole_text(text).count("\ufffd") == text.count("\ufffd") + halves - 2 * pairs
    assert storable_text(text) == whole_text(text).replace("\0", "\u2400")
