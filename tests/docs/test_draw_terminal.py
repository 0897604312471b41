"""The picture of a terminal in README.md shows the current output of the command."""

from __future__ import annotations

import runpy
from collections.abc import Iterator

import pytest
from agents import set_trace_processors

from .pages import ROOT, Page

SCRIPT = ROOT / "docs" / "draw_terminal.py"


@pytest.fixture
def drawing() -> Iterator[dict[str, object]]:
    yield runpy.run_path(str(SCRIPT))
    set_trace_processors([])


def test_drawing_the_picture_again_changes_nothing(drawing: dict[str, object]) -> None:
    drawn = drawing["picture"]()  # type: ignore[operator]
    assert drawn.encode() == drawing["PICTURE"].read_bytes(), f"run python {SCRIPT.relative_to(ROOT)}"  # type: ignore[attr-defined]


def test_the_readme_shows_the_picture(drawing: dict[str, object]) -> None:
    picture = drawing["PICTURE"].relative_to(ROOT).as_posix()  # type: ignore[attr-defined]
    assert f"]({picture})" in Page(ROOT / "README.md").text
