"""The page about installation lists every extra, and what each brings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.install_size import IMPORTS, PLAIN, SDK
from kantan_agents.errors import ExtraMissingError
from kantan_agents.support.extras import EXTRAS

from .pages import ROOT, Page, code_spans, rows

PAGE = Page(ROOT / "docs" / "start" / "install.md")
PERFORMANCE = Page(ROOT / "docs" / "performance.md")
OTHER_NAMES = {"improve"}  # of `lab`


def test_the_page_lists_every_extra() -> None:
    listed = [code_spans(first)[0] for first, *_ in rows(PAGE.section("Extras"))]
    assert sorted(listed) == sorted({*EXTRAS, "all"} - OTHER_NAMES)


def test_the_page_shows_the_message_of_a_missing_extra() -> None:
    reason = "No module named 'prompt_toolkit'"
    error = ExtraMissingError(feature=EXTRAS["chat"].feature, extra="chat", reason=reason)
    assert f"error: {error}\n" in PAGE.text


def test_what_every_extra_brings_is_measured() -> None:
    extras = set(IMPORTS) - {SDK, PLAIN}
    assert extras == set(EXTRAS) - OTHER_NAMES
    measured = [code_spans(first)[0] for first, *_ in rows(PERFORMANCE.section("Install size"))]
    assert sorted(measured) == sorted(f"{PLAIN}[{name}]" for name in extras)


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OLDER = "`pip install kantan-agents` without a clone installs the older version 0.1.3 from PyPI"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_page_installs_from_a_clone(path: Path) -> None:
    text = path.read_text("utf-8").replace(OLDER, "")
    assert not re.findall(r"(?:pip|uv) (?:install|add)\b[^`&\n]*\bkantan[-_]agents(?![/.\w]).*", text)


def test_the_page_says_why() -> None:
    assert OLDER in PAGE.text
