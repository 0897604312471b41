"""The table of docs/reference/api.md is up to date, and every name can be imported from the package that it gives."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from kantan_agents import KantanAgentsError, errors

from .pages import ROOT, Page, code_spans, rows
from .scripts import load

script = load("api_table")
PAGE = Page(ROOT / "docs" / "api.md")
TABLE = [
    (code_spans(name)[0], kind, summary, code_spans(package)[0])
    for name, kind, summary, package in rows(PAGE.section("All names"))
]

INTERNAL = {
    # Other packages of the library need them.
    "kantan_agents.tools.commands": {
        *("HELP", "HELP_COMMAND", "PREFIX", "checked_aliases", "checked_prefix"),
        *("name_in", "shown_name", "unknown_command"),
    },
    "kantan_agents.core.events": {"Emitter", "Observers", "Outcome", "emitter_for"},
    "kantan_agents.errors": {"PREFIX"},
}
"""Names in ``__all__`` that are not for users."""


def test_writing_the_table_again_changes_nothing() -> None:
    assert PAGE.text == script.written(PAGE.text), "run `python docs/api_table.py` and commit the page"


PACKAGES = sorted({package for *_, package in TABLE})


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_can_be_imported_and_is_of_the_listed_kind(package: str) -> None:
    module = import_module(package)
    for name, kind, summary in [row[:3] for row in TABLE if row[3] == package]:
        value = getattr(module, name)
        is_exception = isinstance(value, type) and issubclass(value, BaseException)
        assert is_exception == (kind == "exception"), name
        assert isinstance(value, type) or kind != "class", name
        assert not re.search(r"``|\(spec", summary), name
        assert summary, name


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_that_a_documented_package_exports_has_a_row(package: str) -> None:
    listed = {name for name, *_ in TABLE}
    exported = set(getattr(import_module(package), "__all__", ()))
    assert exported - listed == INTERNAL.get(package, set())


def test_every_error_with_a_code_has_a_row() -> None:
    listed = {name for name, *_ in TABLE}
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    assert {value.__name__ for value in classes if issubclass(value, KantanAgentsError)} - listed == set()


@pytest.mark.parametrize("page", ["no marks", script.BEGIN, f"{script.END}\n{script.BEGIN}"])
def test_a_page_without_the_marks_is_an_error(page: str) -> None:
    with pytest.raises(ValueError, match="the page needs a line"):
        script.written(page)
