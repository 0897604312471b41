"""``SkillLoader`` finds skills in folders, follows no links, and notices changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kantan_agents import Skill, SkillLoader
from kantan_agents.errors import InvalidOptionError, SkillNotFoundError
from tests.tools.skills.conftest import WriteSkill


def test_skills_are_found_in_folders_and_in_folders_that_group_them(
    folder: Path, write_skill: WriteSkill
) -> None:
    write_skill("pdf")
    write_skill("charts", at=folder / "office")
    # What is below a skill belongs to it.
    write_skill("inner", at=folder / "pdf" / "examples")
    assert SkillLoader(folder).load_skills_now().names() == ("charts", "pdf")


def test_a_folder_that_is_a_skill_itself_can_be_named(write_skill: WriteSkill) -> None:
    assert SkillLoader(write_skill("pdf")).load_skills_now().names() == ("pdf",)


def test_the_first_directory_wins_and_the_other_file_is_shadowed(
    folder: Path, tmp_path: Path, write_skill: WriteSkill
) -> None:
    first, second = write_skill("pdf"), write_skill("pdf", at=tmp_path / "more")
    catalog = SkillLoader(
        [folder, tmp_path / "more"], builtin=[Skill("pdf", "Built in"), Skill("zip", "Packs")]
    ).load_skills_now()
    assert [catalog.get("PDF").folder, catalog.get("zip").folder] == [first, None]
    assert [one.path for one in catalog.shadowed] == [second / "SKILL.md", None]


def test_a_project_and_its_user_are_searched_by_default(tmp_path: Path, write_skill: WriteSkill) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    (project / ".git").mkdir(parents=True)
    (project / "src").mkdir()
    near = write_skill("pdf", at=project / ".claude" / "skills")
    write_skill("pdf", at=home / ".claude" / "skills")
    write_skill("mine", at=home / ".kode" / "skills")
    catalog = SkillLoader(cwd=project / "src", home=home).load_skills_now()
    assert catalog.names() == ("mine", "pdf")
    assert catalog.get("pdf").folder == Path(os.path.realpath(near))


def test_a_file_that_is_wrong_is_a_problem_and_the_others_load(folder: Path, write_skill: WriteSkill) -> None:
    write_skill("good")
    write_skill("bad", "compatibility: [a]\n")
    (folder / "empty").mkdir()
    (folder / "empty" / "SKILL.md").write_bytes(b"")
    catalog = SkillLoader(folder).load_skills_now()
    assert catalog.names() == ("good",)
    assert [(problem.path, problem.code) for problem in catalog.problems] == [
        (folder / "bad" / "SKILL.md", "E188"),
        (folder / "empty" / "SKILL.md", "E187"),
    ]


def test_links_are_not_followed_and_are_named(folder: Path, tmp_path: Path, write_skill: WriteSkill) -> None:
    outside = write_skill("outside", at=tmp_path / "elsewhere")
    (folder / "outside").symlink_to(outside)
    (folder / "file").mkdir()
    (folder / "file" / "SKILL.md").symlink_to(outside / "SKILL.md")
    catalog = SkillLoader(folder).load_skills_now()
    assert catalog.names() == ()
    named = {problem.path for problem in catalog.problems}
    assert named == {folder / "outside", folder / "file" / "SKILL.md"}
    # The directory that was named may be a link itself.
    (tmp_path / "link").symlink_to(outside.parent)
    assert SkillLoader(tmp_path / "link").load_skills_now().names() == ("outside",)


async def test_a_change_is_seen_and_nothing_is_read_again_without_one(
    folder: Path, write_skill: WriteSkill
) -> None:
    loader = SkillLoader(folder)
    assert await loader.load_skills() is await loader.load_skills()
    place = write_skill("pdf", body="One")
    before = await loader.load_skills()
    assert before is await loader.load_skills()
    (place / "SKILL.md").write_text("---\nname: pdf\ndescription: New\n---\nTwo", encoding="utf-8")
    assert (await loader.get_skill("pdf")).body == "Two"
    assert before.get("pdf").body == "One"
    (place / "SKILL.md").unlink()
    with pytest.raises(SkillNotFoundError, match=r"pdf \(available: none\)"):
        await loader.get_skill("pdf")


def test_options_are_checked() -> None:
    with pytest.raises(InvalidOptionError, match="builtin"):
        SkillLoader((), builtin=["pdf"])  # type: ignore[list-item]
    with pytest.raises(InvalidOptionError, match="directories"):
        SkillLoader(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match="cache_size"):
        SkillLoader((), cache_size=-1)
