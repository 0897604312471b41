"""Markdown in which any text is only text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.lab.experiment.markdown import markdown_list, markdown_table, markdown_text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a | b", r"a \| b"),
        ("<img src=x>", r"\<img src=x\>"),
        ("![x](http://e.org)", r"!\[x\](http:&#8203;//e.org)"),
        ("ask @maria about #12", r"ask @&#8203;maria about \#&#8203;12"),
        ("see GH-12 and !34", "see GH-&#8203;12 and !&#8203;34"),
        ("`rm` *x* _y_", r"\`rm\` \*x\* \_y\_"),
        ("see www.e.org", "see www&#8203;.e.org"),
        ("# head", r"\# head"),
        ("- item", r"\- item"),
        ("12. item", r"12\. item"),
        ("two\nlines\x1b[2J", r"two lines\[U+001B\]\[2J"),
        ("-0.5 to +0.5", "-0.5 to +0.5"),
        ("0.333", "0.333"),
        ("---", r"\---"),
        ("&lt;", r"\&lt;"),
        ("a\\|b", r"a\\\|b"),
    ],
)
def test_text_is_shown_as_it_is(text: str, written: str) -> None:
    assert markdown_text(text) == written


@given(st.text())
def test_a_cell_stays_a_cell(text: str) -> None:
    (_, _, row) = markdown_table(["a", "b"], [[text, "x"]])
    assert "\n" not in row
    assert len(row.replace("\\\\", "").replace("\\|", "").split("|")) == 4


def test_long_lists_and_texts_are_cut_and_say_so() -> None:
    assert [*markdown_list(["a", "b", "c"], 2)] == ["- a", "- b", "- and 1 more"]
    assert markdown_text("x" * 500).endswith("...")
    assert len(markdown_text("x" * 500)) == 200
