"""``project_instructions`` returns the text of the nearest file, in which no marker is ever filled."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent, project_instructions
from kantan_agents.core.templating import render_template, without_markers
from kantan_agents.errors import InvalidOptionError, ProjectInstructionsError
from kantan_agents.testing import ScriptedModel


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    (root / "src" / "deep").mkdir(parents=True)
    (tmp_path / "AGENTS.md").write_text("of a folder above the repository", encoding="utf-8")
    return root


def test_the_nearest_folder_wins_and_then_the_order_of_the_names(repository: Path) -> None:
    assert project_instructions(repository / "src") == ""
    (repository / "AGENTS.md").write_text("of the root", encoding="utf-8")
    (repository / "CLAUDE.md").write_text("other", encoding="utf-8")
    (repository / "src" / "CLAUDE.md").write_text("of src", encoding="utf-8")
    assert project_instructions(repository) == "# Project instructions (AGENTS.md)\n\nof the root"
    assert project_instructions(repository / "src" / "deep").endswith("(CLAUDE.md)\n\nof src")
    assert project_instructions(repository, ["CLAUDE.md"]).endswith("other")


async def test_markers_in_it_reach_the_model_and_are_not_filled(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "t0ken")
    text = "Use {{ $ctx.secret }} and {{$env.TOKEN}} and {{ other }}."
    (repository / "AGENTS.md").write_text(text, encoding="utf-8")
    model = ScriptedModel(["Done."])
    added = project_instructions(repository)
    agent = Agent("dev", f"For {{{{ $ctx.who }}}}.\n\n{added}", model=model, allow_env=True)
    await agent.run_async("Hello", {"who": "Ada", "secret": "s3cret"})
    instructions = model.calls[0].system_instructions or ""
    assert instructions.startswith("For Ada.")
    assert instructions.replace("\u2060", "").endswith(text)


MARKERS = st.lists(
    st.sampled_from(["{", "{{", "}}", " ", "$ctx", "$env", ".a", "$ctx.a", "b", "\n", "\u2060"])
)


@given(MARKERS.map("".join))
def test_nothing_is_ever_filled_in_a_text_without_markers(text: str) -> None:
    literal = without_markers(text)
    assert render_template(literal, {"a": "FILLED", "b": "FILLED"}, allow_env=True) == literal
    assert literal.replace("\u2060", "") == text.replace("\u2060", "")


def test_a_long_file_is_cut_and_says_so(repository: Path) -> None:
    (repository / "AGENTS.md").write_text("x" * 100, encoding="utf-8")
    text = project_instructions(repository, max_chars=10)
    assert text.endswith(f"\n\n{'x' * 10}\n[90 more characters are left out]")


def test_a_link_inside_the_repository_is_read_and_one_that_leaves_it_is_refused(repository: Path) -> None:
    (repository / "AGENTS.md").write_text("shared", encoding="utf-8")
    (repository / "src" / "CLAUDE.md").symlink_to(repository / "AGENTS.md")
    assert project_instructions(repository / "src").endswith("(CLAUDE.md)\n\nshared")
    (repository / "src" / "deep" / "AGENTS.md").symlink_to(repository.parent / "AGENTS.md")
    with pytest.raises(ProjectInstructionsError, match="leads out of the repository"):
        project_instructions(repository / "src" / "deep")


@pytest.mark.parametrize("content", [b"\0", b"\xff"])
def test_a_file_that_is_no_text_is_an_error_and_not_skipped(repository: Path, content: bytes) -> None:
    (repository / "AGENTS.md").write_bytes(content)
    with pytest.raises(ProjectInstructionsError):
        project_instructions(repository)


def test_options_are_checked(repository: Path) -> None:
    for names in ("AGENTS.md", ["../AGENTS.md"], [""], [3]):
        with pytest.raises(InvalidOptionError, match="names"):
            project_instructions(repository, names)  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match="root"):
        project_instructions(repository / "missing")
    with pytest.raises(InvalidOptionError, match="max_chars"):
        project_instructions(repository, max_chars=0)
