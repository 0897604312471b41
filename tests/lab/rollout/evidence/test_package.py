"""The package depends on numpy and attrs alone, and each function names where it comes from."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from kantan_agents.lab import betting
from kantan_agents.lab.rollout import evidence

FILES = sorted(
    path for package in (evidence, betting) for path in Path(package.__file__ or "").parent.glob("*.py")
)
FUNCTIONS = [name for name in evidence.__all__ if name[0].islower()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_imports_only_numpy_attrs_and_the_standard_library(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [one.name for one in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            first = name.partition(".")[0]
            is_inside = name.startswith(("kantan_agents.lab.rollout.evidence", "kantan_agents.lab.betting"))
            assert is_inside or first in {"numpy", "attrs"} or first in sys.stdlib_module_names, name


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_names_its_shapes_and_its_source(name: str) -> None:
    documentation = getattr(evidence, name).__doc__
    assert "Source: " in documentation
    assert "Raises:" in documentation
    assert "Shape (observations,)" in documentation


@pytest.mark.parametrize("name", evidence.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(evidence, name) is not None


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - {"log_e_process"}))
def test_the_page_explains_it(name: str) -> None:
    page = Path(__file__).resolve().parents[4] / "docs" / "reference" / "statistics-of-rollouts.md"
    assert f"| `{name}` |" in page.read_text(encoding="utf-8")
