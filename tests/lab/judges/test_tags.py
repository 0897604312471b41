from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import find_tag
from kantan_agents.errors import InvalidOptionError

FULL_WIDTH = str.maketrans("[]:0123456789", "\uff3b\uff3d\uff1a" + "".join(map(chr, range(0xFF10, 0xFF1A))))
NOISE = st.text(alphabet="ab[]:12 \n`MOVEMENT\uff3b\uff3d", max_size=30).filter(lambda text: ":" not in text)


@given(st.integers(1, 50), NOISE, NOISE, st.booleans(), st.booleans())
def test_a_valid_tag_is_found_at_any_position(
    number: int, before: str, after: str, lower: bool, wide: bool
) -> None:
    tag = f"[MOVEMENT:{number}]"
    tag = tag.lower() if lower else tag
    tag = tag.translate(FULL_WIDTH) if wide else tag
    assert find_tag(f"{before}{tag}{after}", 50) == number


@given(st.integers().filter(lambda number: not 1 <= number <= 5), NOISE)
def test_a_number_without_a_rule_is_never_found(number: int, noise: str) -> None:
    tag = f"{noise}[MOVEMENT:{number}]{noise}"
    assert find_tag(tag, 5) is None
    assert find_tag(f"[MOVEMENT:4]{tag}", 5) == 4


@given(st.lists(st.integers(0, 9), min_size=1))
def test_the_last_valid_tag_counts(numbers: list[int]) -> None:
    valid = [number for number in numbers if 1 <= number <= 5]
    text = "\n".join(f"- [MOVEMENT:{number}] if ..." for number in numbers)
    assert find_tag(text, 5) == (valid[-1] if valid else None)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("```\n[MOVEMENT:2]\n```", 2),
        ("**[ movement : 2 ]**", 2),
        ("[MOVEMENT:02]", 2),
        ("[MOVEMENT:-2]", None),
        ("[MOVEMENT:\u22122]", None),
        ("[MOVEMENT:2.0]", None),
        ("[MOVEMENT:two]", None),
        ("[MOVEMENT 2]", None),
        ("[MOVEMENTS:2]", None),
        ("MOVEMENT:2", None),
        ("[MOVEMENT:\n2]", None),
        ("[MOVEMENT:" + "9" * 5000 + "]", None),
        ("", None),
    ],
)
def test_valid_and_invalid_spellings_of_tags(text: str, number: int | None) -> None:
    assert find_tag(text, 3) == number


@pytest.mark.parametrize(
    ("piece", "length"),
    [
        ("[", 5_000_000),
        *(
            (piece, 500_000)
            for piece in (
                "[MOVEMENT",
                "[MOVEMENT:1",
                "[ ",
                " ",
                "1",
                "[MOVEMENT:7]",
                "\uff3b",
                "a",
                "\u0301\u0327",
            )
        ),
    ],
)
def test_long_texts_of_almost_a_tag_are_read_to_their_end(piece: str, length: int) -> None:
    # If the time were not linear in the length, this test would not finish.
    assert find_tag("[MOVEMENT:" + piece * (length // len(piece)), 5) is None


@pytest.mark.parametrize(
    "tag", ["", "1A", "A B", "A:", "[A", None, 5, "A\n", ".a", "a\u200b", "\U0001f600", "a/b"]
)
def test_an_invalid_tag_name_is_an_error(tag: Any) -> None:
    with pytest.raises(InvalidOptionError, match="option tag") as caught:
        find_tag("x", 3, tag)
    assert repr(tag) in str(caught.value)


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ("\u30ec\u30d3\u30e5\u30fc", "[\u30ec\u30d3\u30e5\u30fc:2]"),
        ("review.v2", "[Review.V2:2]"),
        ("\u7b2c2\u6bb5", "\uff3b\u7b2c2\u6bb5\uff1a\uff12\uff3d"),
        ("\u0939\u093f\u0928\u094d\u0926\u0940", "[\u0939\u093f\u0928\u094d\u0926\u0940:\u0968]"),
        ("caf\u00e9", "[CAFE\u0301:2]"),
        ("cafe\u0301", "[caf\u00e9:2]"),
        ("\u30ac", "[\u30ab\u3099:2]"),
        ("stra\u00dfe", "[STRASSE:2]"),
    ],
)
def test_a_tag_may_have_a_name_in_any_script(tag: str, text: str) -> None:
    assert find_tag(text, 3, tag) == 2
    assert find_tag(text, 3) is None
    assert find_tag(text, 3, f"{tag}x") is None


NAMES = st.builds(
    str.__add__,
    st.characters(categories=["L"]),
    st.text(st.characters(categories=["L", "M", "N"], include_characters="_-."), max_size=10),
)


@given(NAMES, st.integers(1, 5), st.sampled_from(["NFC", "NFD"]), NOISE)
def test_every_name_of_letters_is_found_in_either_unicode_form(
    name: str, number: int, form: Any, noise: str
) -> None:
    text = unicodedata.normalize(form, f"[{name}:{number}]")
    assert find_tag(f"{noise}{text}{noise}", 5, name) == number


@pytest.mark.parametrize("count", [0, -1, True, "3", 2.0])
def test_an_invalid_count_of_rules_is_an_error(count: Any) -> None:
    with pytest.raises(InvalidOptionError, match="option count"):
        find_tag("x", count)
