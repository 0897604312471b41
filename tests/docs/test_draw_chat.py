"""The picture of a session in the guide to the chat shows what the chat shows now."""

from __future__ import annotations

import runpy

import pytest

from .pages import ROOT, Page

SCRIPT = ROOT / "docs" / "draw_chat.py"


@pytest.fixture(scope="module")
def drawing() -> dict[str, object]:
    return runpy.run_path(str(SCRIPT))


@pytest.mark.slow
def test_drawing_the_session_again_changes_nothing(drawing: dict[str, object]) -> None:
    drawn = drawing["picture"]()  # type: ignore[operator]
    assert drawn.encode() == drawing["PICTURE"].read_bytes(), f"run python {SCRIPT.relative_to(ROOT)}"  # type: ignore[attr-defined]


def test_the_guide_shows_the_picture(drawing: dict[str, object]) -> None:
    picture = drawing["PICTURE"].name  # type: ignore[attr-defined]
    assert f"](../assets/{picture})" in Page(ROOT / "docs" / "guides" / "chat.md").text
