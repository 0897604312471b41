"""The package depends on numpy alone, and each function names where it comes from."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from kantan_agents.lab.evaluation import statistics

FILES = sorted(Path(statistics.__file__ or "").parent.glob("*.py"))
FUNCTIONS = [name for name in statistics.__all__ if name[0].islower()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_imports_only_numpy_attrs_and_the_standard_library(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [one.name for one in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            first = name.partition(".")[0]
            is_inside = name.startswith(
                ("kantan_agents.lab.evaluation.statistics", "kantan_agents.lab.betting")
            )
            assert is_inside or first in {"numpy", "attrs"} or first in sys.stdlib_module_names, name


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"is_binary", "paired_p", "paired_interval"}))
def test_a_function_names_its_source(name: str) -> None:
    documentation = getattr(statistics, name).__doc__
    assert "Source: " in documentation
    assert "Raises:" in documentation


@pytest.mark.parametrize("name", statistics.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    assert getattr(statistics, name) is not None
