"""Each table of the documentation that promises behaviour has a test for every row."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator

import attrs
import pytest

from .pages import PAGES, ROOT, Page
from .promises import PROMISES

_RULE = re.compile(r"^\|[ :|-]*---[ :|-]*\|$")
_HEADING = re.compile(r"^#+ +(?P<title>.+)$")
_PROMISE = re.compile(r"^(?:What happens|When|Effect|Error|Ends with|Decision|Policy|Checked when|Promise)")
"""The beginnings of column titles under which a table says how the library behaves."""


@attrs.frozen
class Table:
    """One table of a page: its place, the titles of its columns and the first cell of each row."""

    page: str
    heading: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str, str]:
        """Its key in ``PROMISES``."""
        return self.page, self.heading, self.columns[0]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line[1:-1].split(" | ")]


def tables(page: Page) -> Iterator[Table]:
    """Yield the tables of a page."""
    lines = page.text.splitlines()
    heading = ""
    for index, line in enumerate(lines):
        title = _HEADING.match(line)
        heading = title["title"] if title else heading
        if _RULE.match(line):
            rows = []
            for row in lines[index + 1 :]:
                if not row.startswith("|"):
                    break
                rows.append(_cells(row)[0])
            yield Table(page.name, heading, tuple(_cells(lines[index - 1])), tuple(rows))


TABLES = {table.key: table for path in PAGES for table in tables(Page(path))}
CHECKED_ELSEWHERE = {
    "docs/reference/errors.md",
    "docs/reference/specification.md",
    "docs/where-do-i-put.md",
    "docs/reference/command-line.md",
}
"""Pages whose tables have tests of their own."""
LISTS = {"Code", "No."}
"""First columns of tables that only list: errors, which ``tests/errors`` covers, and decisions."""


@functools.cache
def _tests(module: str) -> frozenset[str]:
    tree = ast.parse((ROOT / "tests" / module).read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, functions))


@pytest.mark.parametrize("key", PROMISES, ids=" / ".join)
def test_every_row_of_a_table_of_promises_has_its_tests(key: tuple[str, str, str]) -> None:
    assert set(PROMISES[key]) == set(TABLES[key].rows)
    for row, named in PROMISES[key].items():
        assert named, row
        for name in named:
            module, _, test = name.partition("::")
            assert test.startswith("test_"), name
            assert test in _tests(module), name


def test_every_table_about_behaviour_is_a_table_of_promises() -> None:
    about_behaviour = {
        key
        for key, table in TABLES.items()
        if table.page not in CHECKED_ELSEWHERE
        and table.columns[0] not in LISTS
        and any(_PROMISE.match(column) for column in table.columns)
    }
    assert about_behaviour <= set(PROMISES)
