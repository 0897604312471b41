"""``kantan-agents agents new``: writes a valid file to the right directory and overwrites nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import AgentDefinition
from kantan_agents.cli.agents.new import slug_of
from kantan_agents.errors import InvalidOptionError
from tests.cli.agent_folder import agent_file
from tests.distributions import ACME, Use


def made(outcome: Any) -> Path:
    assert outcome.code == 0
    assert not outcome.stderr or outcome.stderr.startswith("warning: tools: no tool here is named ")
    return Path(outcome.stdout.removesuffix("\n"))


def test_new_then_validate_then_show(kantan_agents: Any, project: Path) -> None:
    prompt = project / "prompt.md"
    prompt.write_bytes("You review.\r\n---\r\nÉ".encode())
    outcome = kantan_agents(
        *("agents", "new", "Code Reviewer: C++", "--description", "Reviews: code\nwell"),
        *("--tools", "Read, Bash(git diff:*)", "--model", "sonnet", "--prompt", f"@{prompt}"),
    )
    path = made(outcome)
    assert path == project / ".claude" / "agents" / "code-reviewer-c.md"
    assert kantan_agents("agents", "validate", "--strict", "--tools", "Read, Bash").code == 0
    shown = json.loads(kantan_agents("agents", "show", "code reviewer c++", "--json").stdout)
    assert (shown["name"], shown["description"]) == ("Code Reviewer: C++", "Reviews: code\nwell")
    assert (shown["tools"], shown["model"]) == (["Read", "Bash(git diff:*)"], "sonnet")
    assert shown["system_prompt"] == "You review.\r\n---\r\nÉ\n"


def test_without_options_it_may_use_all_tools_and_has_a_prompt_to_begin_with(
    kantan_agents: Any, project: Path
) -> None:
    definition = AgentDefinition.load(
        made(kantan_agents("agents", "new", "helper", "--description", "Helps."))
    )
    assert (definition.tools, definition.model) == ("*", None)
    assert definition.system_prompt == "You are helper. Helps.\n"
    assert definition.path == project / ".claude" / "agents" / "helper.md"


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("text", "tools"),
    [
        ("", ()),
        ("*", "*"),
        ("all", "*"),
        ("Read Grep", ("Read", "Grep")),
        ("mcp__x__\U0001f600", ("mcp__x__\U0001f600",)),
    ],
)
def test_tools(kantan_agents: Any, text: str, tools: Any) -> None:
    path = made(kantan_agents("agents", "new", "x", "--description", "y", "--tools", text))
    assert AgentDefinition.load(path).tools == tools


class TestUnclearTools:
    @pytest.mark.parametrize(
        "text",
        [
            *("all except Bash", "* except Bash", "all, except Bash", "* -Bash", "*, !Bash", "Read, *"),
            *("Bash(git diff:*", "Read, Bash(git"),
        ],
    )
    def test_nothing_is_written(self, kantan_agents: Any, project: Path, text: str) -> None:
        outcome = kantan_agents("agents", "new", "x", "--description", "y", "--tools", text)
        outcome.is_one_error("[E75] Invalid option --tools: ")
        assert not (project / ".claude").exists()

    def test_the_error_gives_the_reason(self, kantan_agents: Any, project: Path) -> None:
        outcome = kantan_agents("agents", "new", "x", "--description", "y", "--tools", "Bash(git diff:*")
        outcome.is_one_error(
            "[E75] Invalid option --tools: 'Bash(git diff:*' is neither a tool name nor Tool("
        )
        assert not (project / ".claude").exists()

    @pytest.mark.parametrize(
        "text", ["Read\nmodel: opus", "Read # not Bash", '"Read", model: "opus"', "Read\udcff"]
    )
    def test_a_text_cannot_set_another_key(self, kantan_agents: Any, project: Path, text: str) -> None:
        outcome = kantan_agents("agents", "new", "x", "--description", "y", "--tools", text)
        if outcome.code == 0:
            assert AgentDefinition.load(made(outcome)).model is None
        else:
            outcome.is_one_error("[E75] Invalid option --tools: ")
            assert not (project / ".claude").exists()


class TestWhere:
    def test_from_a_subdirectory_the_file_goes_to_the_root_of_the_repository(
        self, kantan_agents: Any, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        below = project / "src" / "deep"
        below.mkdir(parents=True)
        monkeypatch.chdir(below)
        path = made(kantan_agents("agents", "new", "x", "--description", "y"))
        assert path == project / ".claude" / "agents" / "x.md"

    def test_outside_a_repository_the_file_goes_to_the_current_directory(
        self, kantan_agents: Any, project: Path
    ) -> None:
        (project / ".git").rmdir()
        path = made(kantan_agents("agents", "new", "x", "--description", "y"))
        assert path == project / ".claude" / "agents" / "x.md"

    @pytest.mark.usefixtures("project")
    def test_with_user_the_file_goes_to_the_home(
        self, kantan_agents: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        new = ("agents", "new", "x", "--description", "y", "--user")
        home = tmp_path / "home"
        assert made(kantan_agents(*new)) == home / ".claude" / "agents" / "x.md"
        # Even if the home is the project, so that the directory belongs to the project.
        monkeypatch.chdir(home)
        assert kantan_agents(*new).code == 2
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
        assert made(kantan_agents(*new)) == tmp_path / "config" / "agents" / "x.md"

    @pytest.mark.usefixtures("project")
    def test_with_dir_the_file_goes_to_that_directory(self, kantan_agents: Any) -> None:
        path = made(kantan_agents("agents", "new", "x", "--description", "y", "--dir", "some/where"))
        assert path == Path("some/where/x.md")
        assert path.exists()

    @pytest.mark.usefixtures("project")
    def test_user_and_dir_cannot_be_combined(self, kantan_agents: Any) -> None:
        outcome = kantan_agents("agents", "new", "x", "--description", "y", "--dir", ".", "--user")
        outcome.is_one_error("[E75] Invalid option --user: cannot be combined with --dir")


class TestRefused:
    def test_a_file_is_never_overwritten(self, kantan_agents: Any, project: Path) -> None:
        path = agent_file(project / ".claude" / "agents" / "x.md", "another")
        before = path.read_bytes()
        outcome = kantan_agents("agents", "new", "X", "--description", "y")
        outcome.is_one_error(f"[E79] Cannot use {path}: File exists")
        assert path.read_bytes() == before

    def test_a_link_is_not_followed(self, kantan_agents: Any, project: Path) -> None:
        directory = project / ".claude" / "agents"
        directory.mkdir(parents=True)
        (directory / "x.md").symlink_to(project / "target")
        assert kantan_agents("agents", "new", "x", "--description", "y").code == 2
        assert not (project / "target").exists()

    @pytest.mark.parametrize("linked", [".claude", ".claude/agents"])
    @pytest.mark.parametrize("options", [[], ["--dir", ".claude/agents"]])
    def test_a_linked_directory_of_the_repository_is_not_followed(
        self, kantan_agents: Any, project: Path, tmp_path: Path, linked: str, options: list[str]
    ) -> None:
        outside = tmp_path / "outside"
        (outside / "agents").mkdir(parents=True)
        (project / linked).parent.mkdir(exist_ok=True)
        (project / linked).symlink_to(outside)
        outcome = kantan_agents("agents", "new", "x", "--description", "y", *options)
        outcome.is_one_error("[E79] Cannot use ")
        assert "a link leads to it" in outcome.stderr
        assert [path.name for path in outside.rglob("*")] == ["agents"]

    def test_an_existing_agent_name_is_refused(self, kantan_agents: Any, project: Path) -> None:
        known = agent_file(project / ".claude" / "agents" / "deep" / "a.md", "Code Reviewer")
        outcome = kantan_agents("agents", "new", "code-reviewer", "--description", "y")
        path = project / ".claude" / "agents" / "code-reviewer.md"
        outcome.is_one_error(f"[E79] Cannot use {path}: there is an agent Code Reviewer already, in {known}")
        assert not path.exists()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (
                ["", "--description", "y"],
                "[E31] Agent definition is not valid: line 1: name: must not be blank",
            ),
            (["x", "--description", " "], "[E31] "),
            (["../..", "--description", "y"], "[E75] Invalid option NAME: must contain a letter or a digit"),
            (
                ["x", "--description", "y", "--prompt", " "],
                "[E75] Invalid option --prompt: must not be empty",
            ),
            (["x", "--description", "y", "--prompt", "@none.md"], "[E79] Cannot use none.md: No such file"),
            (["x", "--description", "y\udcff"], "[E31] "),
        ],
    )
    def test_bad_arguments(
        self, kantan_agents: Any, project: Path, arguments: list[str], message: str
    ) -> None:
        kantan_agents("agents", "new", *arguments).is_one_error(message)
        assert not (project / ".claude").exists()

    def test_a_full_disk_leaves_no_partial_file(
        self, kantan_agents: Any, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        outcome = kantan_agents("agents", "new", "x", "--description", "y")
        path = project / ".claude" / "agents" / "x.md"
        outcome.is_one_error(f"[E79] Cannot use {path}: No space left on device")
        assert not path.exists()

    def test_an_impossible_directory_is_an_error(self, kantan_agents: Any, project: Path) -> None:
        (project / ".claude").write_bytes(b"a file")
        outcome = kantan_agents("agents", "new", "x", "--description", "y")
        outcome.is_one_error(f"[E79] Cannot use {project}/.claude/agents/x.md: ")


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Python DevOps/CI-CD Expert", "python-devops-ci-cd-expert"),
        ("../../etc/passwd", "etc-passwd"),
        ("C:\\agents\\x", "c-agents-x"),
        (".hidden", "hidden"),
        ("コード レビュー", "コード-レビュー"),
    ],
)
def test_a_name_is_never_a_path(name: str, slug: str) -> None:
    assert slug_of(name) == slug


@given(st.text(max_size=200))
def test_a_slug_is_a_plain_file_name(name: str) -> None:
    try:
        slug = slug_of(name)
    except InvalidOptionError:
        return
    assert all(char.isalnum() or char == "-" for char in slug)
    assert slug == slug.strip("-")
    assert 0 < len(f"{slug}.md".encode()) < 256


@pytest.mark.usefixtures("project")
def test_tools_that_do_not_exist_here_are_named_on_stderr_and_the_file_is_written(kantan_agents: Any) -> None:
    outcome = kantan_agents("agents", "new", "x", "--description", "y", "--tools", "Red, Grip, mcp__a, Task")
    assert outcome.code == 0
    assert outcome.stderr == (
        "warning: tools: no tool here is named 'Red' (the nearest name is 'Read'), "
        "'Grip' (the nearest name is 'Grep'); a program that runs the agent must bring them\n"
    )
    assert AgentDefinition.load(Path(outcome.stdout.strip())).tools == ("Red", "Grip", "mcp__a", "Task")


@pytest.mark.usefixtures("project")
def test_tools_of_installed_providers_exist_and_the_nearest_one_is_named(
    kantan_agents: Any, use: Use
) -> None:
    use(ACME)
    new = ("agents", "new", "--description", "y", "--tools")
    assert kantan_agents(*new, "search, s*", "x").stderr == ""
    assert kantan_agents(*new, "Search", "z").stderr == (
        "warning: tools: no tool here is named 'Search' (the nearest name is 'search'); "
        "a program that runs the agent must bring it\n"
    )
