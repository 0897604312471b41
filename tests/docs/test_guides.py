"""The tables of the guides match the classes and functions that they describe."""

from __future__ import annotations

import re

from kantan_agents import DEFAULT_STAGES, Pipeline
from kantan_agents.errors import PARAMETER_ERRORS

from .pages import ROOT, Page, code_spans, rows


def page(name: str) -> Page:
    return Page(ROOT / "docs" / "guides" / f"{name}.md")


def test_the_middleware_page_lists_the_stages_in_order() -> None:
    section = page("middleware").section("Change the stages of a run")
    assert tuple(code_spans(first)[0] for first, *_ in rows(section)) == Pipeline(DEFAULT_STAGES).names


def sub_section(name: str, heading: str) -> str:
    """Return the text under a third-level heading of a page."""
    _, _, rest = page(name).text.partition(f"\n### {heading}\n")
    assert rest, f"{name} has no section {heading!r}"
    return re.split(r"^##", rest, maxsplit=1, flags=re.MULTILINE)[0]


def test_the_keywords_of_parameter_rules_are_listed_with_their_errors() -> None:
    reference = Page(ROOT / "docs" / "reference" / "tool-rules.md")
    listed = {
        code_spans(keyword)[0]: code_spans(code)[0]
        for keyword, _, code in rows(reference.section("Parameter keywords"))
    }
    assert listed == {keyword: error.code for keyword, error in PARAMETER_ERRORS.items()}
