"""A ``SKILL.md`` is read as the format says, repaired like a subagent file, and never limits less."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Skill
from kantan_agents.errors import InvalidSkillError, SkillFileError


def text(*lines: str, body: str = "Do it.\n") -> str:
    return "\n".join(("---", "name: pdf", "description: Fills forms", *lines, "---", "", body))


def test_all_fields_of_the_format_are_read() -> None:
    skill = Skill.loads(
        text(
            "license: MIT",
            "allowed-tools: Read Bash(git diff:*)",
            "compatibility: Needs poppler",
            "metadata: {author: me, version: '1.10'}",
            "model: sonnet",
            "mine: 1",
        )
    )
    assert skill == Skill(
        "pdf",
        "Fills forms",
        "Do it.\n",
        allowed_tools=("Read", "Bash(git diff:*)"),
        license="MIT",
        compatibility="Needs poppler",
        metadata={"author": "me", "version": "1.10"},
        extra={"model": "sonnet", "mine": 1},
    )
    assert skill.to_dict()["allowed_tools"] == ["Read", "Bash(git diff:*)"]


def test_a_colon_in_the_description_is_repaired_and_noted() -> None:
    skill = Skill.loads("---\nname: pdf\ndescription: Fills forms: all of them\n---\nBody")
    assert skill.description == "Fills forms: all of them"
    assert [note.is_repair for note in skill.notes] == [True]


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("mine: 1", "*"),
        ("allowed-tools:", ()),
        ("allowed-tools: []", ()),
        ("allowed-tools: '*'", "*"),
        ("allowed_tools: [Read, Grep]", ("Read", "Grep")),
        ("Allowed Tools: Read", ("Read",)),
    ],
)
def test_only_a_missing_list_or_a_star_allows_all_tools(line: str, allowed: Any) -> None:
    skill = Skill.loads(text(line))
    assert skill.allowed_tools == allowed
    assert skill.limits_tools is (allowed != "*")


@pytest.mark.parametrize("line", ["allowed-tools Read", "- allowed-tools: Read"])
def test_a_limit_that_cannot_be_read_is_an_error_and_never_no_limit(line: str) -> None:
    with pytest.raises((InvalidSkillError, SkillFileError)):
        Skill.loads(text(line))


def test_an_entry_that_cannot_be_understood_allows_nothing_and_is_named() -> None:
    skill = Skill.loads(text("allowed-tools: Bash(a*b), Grep"))
    assert [skill.rules.permits("Bash"), skill.rules.permits("Grep")] == [False, True]
    (note,) = skill.notes
    assert (note.line, note.message.partition(":")[0]) == (4, "allowed-tools")


@pytest.mark.parametrize(
    "name",
    ["PDF", "pdf_forms", "-pdf", "pdf-", "pdf--x", "p" * 65, "../pdf", "pdf/x", "", "pdf\n", "\uff50df"],
)
def test_a_name_outside_of_the_format_is_refused(name: str) -> None:
    with pytest.raises(InvalidSkillError, match="name: "):
        Skill(name, "Does it")


@given(st.from_regex(r"\A[a-z0-9]{1,20}(-[a-z0-9]{1,20}){0,2}\Z"))
def test_a_name_of_the_format_is_accepted(name: str) -> None:
    assert Skill(name, "Does it").name == name


def test_a_wrong_list_is_named_as_the_file_spells_it() -> None:
    with pytest.raises(InvalidSkillError) as caught:
        Skill.loads(text("allowed-tools: {a: b}"))
    assert (caught.value.line, caught.value.problems[0].partition(":")[0]) == (4, "allowed-tools")


def test_all_mistakes_are_listed_at_once() -> None:
    with pytest.raises(InvalidSkillError) as caught:
        Skill("A B", "x" * 1025, compatibility="y" * 501, metadata=[])
    fields = [problem.partition(":")[0] for problem in caught.value.problems]
    assert fields == ["name", "description", "compatibility", "metadata"]


def test_the_name_must_be_that_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    file = tmp_path / "other" / "SKILL.md"
    file.write_text(text(), encoding="utf-8")
    with pytest.raises(InvalidSkillError, match=r"line 2: name: must be that of the folder, 'other'"):
        Skill.load(file)


@pytest.mark.parametrize("content", [b"no frontmatter", b"---\nname: \xff\n---\n", b""])
def test_a_file_that_cannot_be_read_names_itself(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "SKILL.md"
    file.write_bytes(content)
    with pytest.raises(SkillFileError) as caught:
        Skill.load(tmp_path)
    assert caught.value.path == str(file)


def test_a_skill_cannot_be_changed() -> None:
    skill = Skill("pdf", "Fills forms", metadata={"tags": ["a"]})
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        skill.allowed_tools = "*"  # type: ignore[misc]
    with pytest.raises(TypeError):
        skill.metadata["tags"].append("b")
    assert copy.deepcopy(skill) == skill
