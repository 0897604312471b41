"""The tables of the guides match the classes and functions that they describe."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from kantan_agents import DEFAULT_STAGES, Pipeline, ToolRetrieval
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


def names_in(section: str) -> set[str]:
    return {span.partition("=")[0] for first, *_ in rows(section) for span in code_spans(first)}


@pytest.mark.parametrize(
    ("name", "heading", "table", "function"),
    [
        ("tool-retrieval", "Options", "| Option |", ToolRetrieval),
    ],
)
def test_a_table_of_options_lists_them_all(
    name: str, heading: str, table: str, function: Callable[..., Any]
) -> None:
    _, found, rest = page(name).section(heading).partition(table)
    assert found
    parameters = set(inspect.signature(function).parameters)
    assert names_in(rest.partition("\n\n")[0]) == parameters


@pytest.mark.parametrize(
    ("name", "heading", "function"),
    [
        ("tool-retrieval", "Options", ToolRetrieval),
    ],
)
def test_the_defaults_in_a_table_match_the_code(
    name: str, heading: str, function: Callable[..., Any]
) -> None:
    table = page(name).section(heading).partition("| Option | Default |")[2]
    written = {code_spans(option)[0]: default.strip('`"') for option, default, _ in rows(table)}
    for option, parameter in inspect.signature(function).parameters.items():
        if (
            parameter.default not in ((), None, attrs.NOTHING, inspect.Parameter.empty)
            and option != "retriever"
        ):
            assert written[option].removesuffix(".0") == str(parameter.default).removesuffix(".0")


def test_the_keywords_of_parameter_rules_are_listed_with_their_errors() -> None:
    listed = {
        code_spans(keyword)[0]: code_spans(code)[0]
        for keyword, _, code in rows(sub_section("tool-rules", "Parameter keywords"))
    }
    assert listed == {keyword: error.code for keyword, error in PARAMETER_ERRORS.items()}
