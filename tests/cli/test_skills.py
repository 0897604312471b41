"""``kantan-agents skills``: what is listed, and what is said about wrong files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def folder(project: Path) -> Path:
    """The project's folder with a skill and a command."""
    made = project / ".claude"
    skill = made / "skills" / "pdf"
    skill.mkdir(parents=True)
    text = "---\nname: pdf\ndescription: Fills forms\nallowed-tools: Read\n---\n\nFill.\n"
    (skill / "SKILL.md").write_text(text, encoding="utf-8")
    (made / "commands").mkdir()
    (made / "commands" / "review.md").write_text("# Review\n\nSee @README.md: !`ls`\n", encoding="utf-8")
    return made


def test_skills_and_commands_are_listed(kantan_agents: Any, folder: Path) -> None:
    outcome = kantan_agents("skills", "list")
    assert outcome.code == 0
    assert "pdf" in outcome.stdout
    assert "(tools: Read)" in outcome.stdout
    assert "/review" in outcome.stdout
    assert outcome.stderr == "0 errors, 2 warnings; see kantan-agents skills validate\n"
    data = json.loads(kantan_agents("skills", "list", "--json").stdout)
    assert data["skills"][0]["allowed_tools"] == ["Read"]
    assert data["skills"][0]["path"] == str(folder / "skills" / "pdf" / "SKILL.md")
    assert [command["name"] for command in data["commands"]] == ["review"]


def test_without_any_the_directories_are_named(kantan_agents: Any, project: Path) -> None:
    outcome = kantan_agents("skills", "list")
    assert outcome.code == 0
    assert str(project / ".claude" / "skills") in outcome.stdout


def test_what_is_not_executed_is_a_warning_with_its_line(kantan_agents: Any, folder: Path) -> None:
    outcome = kantan_agents("skills", "validate")
    lines = outcome.stdout.splitlines()
    assert outcome.code == 0
    assert [line.partition("review.md")[2][:12] for line in lines] == [":3: warning:"] * 2
    assert outcome.stderr == "2 files loaded, 0 errors, 2 warnings\n"
    assert kantan_agents("skills", "validate", "--strict").code == 1


def test_files_and_directories_can_be_named(kantan_agents: Any, folder: Path) -> None:
    skill = folder / "skills" / "pdf" / "SKILL.md"
    assert kantan_agents("skills", "validate", "--strict", str(skill), str(skill.parent.parent)).code == 0
    assert kantan_agents("skills", "validate", "--strict", str(folder / "commands")).code == 1
    assert kantan_agents("skills", "validate", str(folder / "none")).code == 2


def test_a_file_that_cannot_be_loaded_is_an_error(kantan_agents: Any, folder: Path) -> None:
    skill = folder / "skills" / "pdf" / "SKILL.md"
    skill.write_text("---\nname: other\ndescription: x\ncolor: red\n---\n", encoding="utf-8")
    for arguments in ((), (str(skill),)):
        outcome = kantan_agents("skills", "validate", *arguments, "--json")
        errors = [one for one in json.loads(outcome.stdout)["problems"] if one["severity"] == "error"]
        assert (outcome.code, [(one["code"], one["line"]) for one in errors]) == (1, [("E188", 2)])
    assert kantan_agents("skills", "list").code == 1


def test_keys_without_effect_are_named(kantan_agents: Any, folder: Path) -> None:
    (folder / "skills" / "pdf" / "SKILL.md").write_text(
        "---\nname: pdf\ndescription: x\nmodel: sonnet\nmine: 1\n---\n", encoding="utf-8"
    )
    outcome = kantan_agents("skills", "validate", str(folder / "skills"))
    assert "warning: kept, no effect here: mine, model" in outcome.stdout
