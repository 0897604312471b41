"""The translation of SQL: each statement for both databases is understood, and nothing else is passed on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import kantan_agents
from kantan_agents.errors import NotInPostgresError
from kantan_agents.traces.postgres.dialect import translated

PACKAGE = Path(kantan_agents.__file__).parent
SHARED = (
    "traces/copying/*.py",
    "traces/store/*.py",
    "traces/recorder/run_writing.py",
    "lab/**/*.py",
    "page/**/*.py",
)
# A file has its own search, index and pruning, and the server its own search.
OWN = ("build_index", "candidates", "find", "find_in_server", "free_pages", "index", "prune")
STATEMENT = re.compile(r"\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|WITH)\b")


def texts_of(path: Path) -> Iterator[str]:
    """Yield the texts of a module, with the values of its constants, and ``?`` for what is known later."""
    module = import_module(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts))
    yield from (value for value in vars(module).values() if isinstance(value, str))
    tree = ast.parse(path.read_text("utf-8"))
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    inside = {id(part) for node in joined for part in ast.walk(node)}
    yield from ("".join(text_of(part, vars(module)) for part in node.values) for node in joined)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value


def text_of(part: ast.expr, constants: Mapping[str, Any]) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    named = part.value if isinstance(part, ast.FormattedValue) else part
    return str(constants.get(named.id, "?")) if isinstance(named, ast.Name) else "?"


def test_every_statement_for_both_databases_is_understood() -> None:
    paths = {path for pattern in SHARED for path in PACKAGE.glob(pattern) if path.stem not in OWN}
    found = {text for path in paths for text in texts_of(path) if STATEMENT.match(text)}
    assert len(found) > 150
    assert all(map(translated, found))


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT CAST(name AS INTEGER) FROM spans",
        "SELECT id FROM spans WHERE name LIKE input || '%'",
        "SELECT id FROM spans WHERE name like ?",
        "SELECT id FROM spans WHERE name GLOB ?",
        "SELECT id FROM spans WHERE name = ? COLLATE NOCASE",
        "SELECT id FROM spans WHERE typeof(name) = 'integer'",
        "SELECT id FROM spans CROSS\nJOIN traces",
        "SELECT substr(id, 0, 3) FROM spans",
        "SELECT id FROM spans ORDER BY COALESCE(name, (SELECT MAX(id) FROM traces)) DESC",
        "SELECT id FROM spans ORDER BY lower(name)",
        "SELECT random(), date('now') FROM spans",
        "INSERT OR REPLACE INTO traces(id) VALUES (?)",
        "CREATE TRIGGER one BEFORE INSERT ON traces BEGIN DELETE FROM spans; END",
        "PRAGMA data_version",
    ],
)
def test_what_the_databases_might_understand_differently_is_an_error(sql: str) -> None:
    with pytest.raises(NotInPostgresError, match="E141"):
        translated(sql)


def test_literals_and_parameters_are_kept() -> None:
    sql = (
        "SELECT 'It''s 5 % of :this?' FROM traces WHERE id = :id AND group_id IS ? ORDER BY group_id DESC, id"
    )
    assert translated(sql) == (
        "SELECT 'It''s 5 %% of :this?' FROM traces WHERE id = %(id)s AND group_id IS NOT DISTINCT FROM %s "
        "ORDER BY group_id DESC NULLS LAST, id"
    )
