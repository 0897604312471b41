"""The page about other frameworks names the override that the package ships, and CI runs its commands."""

from __future__ import annotations

from importlib.resources import files

from packaging.requirements import Requirement

from kantan_agents.agent.bridge.tested_versions import PACKAGES, TESTED

from .pages import ROOT, Page, code_spans, rows

PAGE = Page(ROOT / "docs" / "start" / "install.md")
SHIPPED = files("kantan_agents") / "newest-sdk.txt"


def override() -> str:
    (line,) = (line for line in SHIPPED.read_text().splitlines() if not line.startswith("#"))
    return line


def test_the_shipped_override_lifts_the_pin_that_kantan_llm_declares() -> None:
    requirement = Requirement(override())
    assert requirement.name == "openai"
    assert requirement.specifier.contains("3.57.0")


def test_the_commands_of_the_page_have_the_shipped_override() -> None:
    assert f"The file has one line, `{override()}`." in PAGE.text
    assert f'override-dependencies = ["{override()}"]' in PAGE.text


def test_the_session_runs_the_commands_of_the_page() -> None:
    session = (ROOT / "noxfile.py").read_text()
    assert '"--override", "kantan_agents/newest-sdk.txt"' in session
    assert "--override kantan_agents/newest-sdk.txt ." in PAGE.text
    assert 'session.install("--upgrade", "openai-agents", *frameworks)' in session
    assert "pip install --upgrade openai-agents langchain-openai pydantic-ai" in PAGE.text


def test_the_page_lists_the_tested_combinations() -> None:
    section = PAGE.section("Which versions are tested")
    listed = [tuple(span for cell in row for span in code_spans(cell)) for row in rows(section)]
    assert listed == [PACKAGES, *TESTED]
