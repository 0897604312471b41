"""The tables of the guides match the classes and functions that they describe."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from kantan_agents import DEFAULT_STAGES, ModelCall, Pipeline, Run, ToolCall
from kantan_agents.errors import PARAMETER_ERRORS
from kantan_agents.middleware import Budget, Cache, Hedge, LimitConcurrency, Redact, Retry, SlashCommands

from .pages import ROOT, Page, code_spans, rows


def page(name: str) -> Page:
    return Page(ROOT / "docs" / "guides" / f"{name}.md")


def test_the_pipeline_page_lists_the_stages_in_order() -> None:
    section = page("pipeline").section("The stages of a run")
    assert tuple(code_spans(first)[0] for first, *_ in rows(section)) == Pipeline(DEFAULT_STAGES).names


def sub_section(name: str, heading: str) -> str:
    """Return the text under a third-level heading of a page."""
    _, _, rest = page(name).text.partition(f"\n### {heading}\n")
    assert rest, f"{name} has no section {heading!r}"
    return re.split(r"^##", rest, maxsplit=1, flags=re.MULTILINE)[0]


@pytest.mark.parametrize(
    ("name", "heading", "kind"),
    [
        ("pipeline", "Pipeline", Pipeline),
        ("pipeline", "Run", Run),
        ("middleware", "ModelCall", ModelCall),
        ("middleware", "ToolCall", ToolCall),
    ],
)
def test_every_documented_member_of_an_object_exists(name: str, heading: str, kind: type) -> None:
    listed = [span for first, *_ in rows(sub_section(name, heading)) for span in code_spans(first)]
    assert listed
    for span in listed:
        member = span.partition("(")[0]
        assert member == kind.__name__ or hasattr(kind, member), span


@pytest.mark.parametrize("kind", [ModelCall, ToolCall])
def test_the_middleware_page_lists_every_attribute_of_a_call(kind: type) -> None:
    section = sub_section("middleware", kind.__name__)
    listed = {span for first, *_ in rows(section) for span in code_spans(first)}
    # Only the library itself uses the private ones.
    assert {field.name for field in attrs.fields(kind) if not field.name.startswith("_")} <= listed


def names_in(section: str) -> set[str]:
    return {span.partition("=")[0] for first, *_ in rows(section) for span in code_spans(first)}


@pytest.mark.parametrize(
    ("name", "heading", "table", "function"),
    [
        ("budgets", "Reference", "| Argument |", Budget),
        ("ready-made-middleware", "Retry", "| Option |", Retry),
        ("ready-made-middleware", "Redact", "| Option |", Redact),
        ("ready-made-middleware", "Cache", "| Option |", Cache),
        ("ready-made-middleware", "LimitConcurrency", "| Option |", LimitConcurrency),
        ("ready-made-middleware", "Hedge", "| Option |", Hedge),
        ("slash-commands", "Reference", "| Argument of `SlashCommands` |", SlashCommands),
    ],
)
def test_a_table_of_options_lists_them_all(
    name: str, heading: str, table: str, function: Callable[..., Any]
) -> None:
    _, found, rest = page(name).section(heading).partition(table)
    assert found
    parameters = set(inspect.signature(function).parameters)
    assert names_in(rest.partition("\n\n")[0]) | _IN_ANOTHER_ROW.get(function, set()) == parameters


_IN_ANOTHER_ROW: dict[Any, set[str]] = {Redact: {"key"}}  # described with mode="hash"


@pytest.mark.parametrize(
    ("name", "heading", "function"),
    [
        ("ready-made-middleware", "Retry", Retry),
        ("ready-made-middleware", "Cache", Cache),
        ("ready-made-middleware", "LimitConcurrency", LimitConcurrency),
        ("ready-made-middleware", "Hedge", Hedge),
    ],
)
def test_the_defaults_in_a_table_match_the_code(
    name: str, heading: str, function: Callable[..., Any]
) -> None:
    table = page(name).section(heading).partition("| Option | Default |")[2]
    written = {code_spans(option)[0]: default.strip('`"') for option, default, _ in rows(table)}
    for option, parameter in inspect.signature(function).parameters.items():
        if parameter.default not in ((), None, attrs.NOTHING, inspect.Parameter.empty):
            assert written[option].removesuffix(".0") == str(parameter.default).removesuffix(".0")


def test_the_keywords_of_parameter_rules_are_listed_with_their_errors() -> None:
    reference = Page(ROOT / "docs" / "reference" / "tool-rules.md")
    listed = {
        code_spans(keyword)[0]: code_spans(code)[0]
        for keyword, _, code in rows(reference.section("Parameter keywords"))
    }
    assert listed == {keyword: error.code for keyword, error in PARAMETER_ERRORS.items()}
