"""Numbers as people read them."""

from __future__ import annotations

import pytest

from kantan_agents.lab.evaluation.comparing.number_texts import (
    difference_text,
    interval_text,
    number_text,
    p_text,
    score_text,
)


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.0, 3, "0"),
        (1.0, 3, "1"),
        (0.8, 3, "0.8"),
        (2 / 3, 3, "0.667"),
        (-0.02841, 2, "-0.028"),
        (0.0999, 2, "0.1"),
        (15.5, 2, "16"),
        (150.0, 2, "150"),
        (123456.7, 3, "123,457"),
        (0.00001234, 2, "1.2e-05"),
    ],
)
def test_a_number_has_the_digits_that_mean_something(value: float, digits: int, text: str) -> None:
    assert number_text(value, digits) == text


def test_a_difference_has_a_sign_and_what_is_not_known_is_empty() -> None:
    assert (difference_text(0.5), difference_text(-0.5), difference_text(0.0)) == ("+0.5", "-0.5", "0")
    assert interval_text(-1.0, 2.0) == "-1 to +2"
    assert (score_text(None), difference_text(None), interval_text(None, 1.0), p_text(None)) == ("",) * 4


def test_a_small_p_is_not_zero() -> None:
    assert (p_text(0.00001), p_text(0.0421), p_text(1.0)) == ("<0.001", "0.042", "1.000")
