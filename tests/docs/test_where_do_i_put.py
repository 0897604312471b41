"""The recipes of docs/where-do-i-put.md name existing files, each of which has every item of its kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import get_args

import attrs
import pytest
import typer

import kantan_agents.middleware
from kantan_agents import DEFAULT_STAGES, KantanAgentsError, Middleware, Pipeline, TraceSummary, errors
from kantan_agents.cli.app import app
from kantan_agents.core.events import EVENT_KINDS
from kantan_agents.errors import PARAMETER_ERRORS
from kantan_agents.lab.evaluation.dataset.importing.import_dataset import Format
from kantan_agents.lab.evaluation.evaluators.judges import CRITERIA
from kantan_agents.models.structured.requests.families import FAMILIES
from kantan_agents.traces.schema import COLUMNS

from .pages import PAGES, ROOT, Page, code_spans, rows
from .test_reference import standard_keys

PAGE = Page(ROOT / "docs" / "where-do-i-put.md")
TOP = ("kantan_agents/", "docs/", "tests/", "benchmarks/", ".mkdocs.yml", "pyproject.toml")
PATHS = sorted(
    {
        span
        for line in PAGE.text.splitlines()
        for span in code_spans(line)
        if " " not in span and (span.startswith(TOP) or re.fullmatch(r"[A-Z]+\.md", span))
    }
)


def middleware() -> list[str]:
    values = {name: getattr(kantan_agents.middleware, name) for name in kantan_agents.middleware.__all__}
    return [
        name for name, value in values.items() if isinstance(value, type) and issubclass(value, Middleware)
    ]


def error_classes() -> list[str]:
    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    return [
        value.__name__ for value in classes if issubclass(value, KantanAgentsError) and hasattr(value, "code")
    ]


def traces_commands() -> list[str]:
    group = vars(typer.main.get_command(app))["commands"]["traces"]
    return sorted(vars(group)["commands"])


def pages() -> list[str]:
    docs = ROOT / "docs"
    found = [path.relative_to(docs).as_posix() for path in PAGES if path.is_relative_to(docs)]
    return [path for path in found if not path.startswith(("decisions/", "reference/middleware/"))]


ITEMS: dict[str, Callable[[], Iterable[str]]] = {
    "A ready-made middleware": middleware,
    "A stage": lambda: Pipeline(DEFAULT_STAGES).names,
    # Skipped: a family of two words appears in the code as a constant with an underscore.
    "A provider family": lambda: [family.name for family in FAMILIES if " " not in family.name],
    "A native provider": lambda: ["AnthropicProvider", "GeminiProvider"],
    "A CLI command": traces_commands,
    "An error code": error_classes,
    "A ready-made judge": lambda: CRITERIA,
    "A dataset of another tool": lambda: get_args(Format),
    "A trace column": lambda: [column for columns in COLUMNS.values() for column in columns],
    "A field of a trace summary": lambda: [field.name for field in attrs.fields(TraceSummary)],
    "A metadata key": lambda: [key.removesuffix("*") for key in standard_keys()],
    "An event": lambda: [kind.__name__ for kind in EVENT_KINDS],
    "A tool-rule keyword": lambda: list(PARAMETER_ERRORS),
    "A documentation page": pages,
}


@pytest.mark.parametrize("path", PATHS)
def test_every_path_of_the_page_exists(path: str) -> None:
    found = ROOT / path
    assert found.is_dir() if path.endswith("/") else found.is_file()


def test_every_recipe_is_checked() -> None:
    assert re.findall("^## (.+)$", PAGE.text, re.MULTILINE) == list(ITEMS)


@pytest.mark.parametrize("recipe", ITEMS)
def test_every_existing_item_is_in_the_files_of_its_recipe(recipe: str) -> None:
    files = [code_spans(first)[0] for first, *_ in rows(PAGE.section(recipe))]
    items = list(ITEMS[recipe]())
    assert files
    assert items
    for file in files:
        text = (ROOT / file).read_text(encoding="utf-8")
        missing = [
            item for item in items if not re.search(rf"(?<![a-z]){re.escape(item)}", text, re.IGNORECASE)
        ]
        assert missing == [], f"{file} has nothing about {missing}"
