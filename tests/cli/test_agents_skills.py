"""The command line about skills: ``agents validate``, ``agents show``, ``run`` and ``tools explain``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.testing import ScriptedToolCall
from tests.cli.agent_folder import agent_file


@pytest.fixture
def agents(project: Path) -> Path:
    """The project's directory of agents, which does not exist yet."""
    return project / ".claude" / "agents"


@pytest.fixture
def skills(agents: Path) -> Path:
    folder = agents.parent / "skills"
    for name, more in (("pdf", "allowed-tools: Read\n"), ("charts", "")):
        (folder / name).mkdir(parents=True)
        text = f"---\nname: {name}\ndescription: Knows {name}\n{more}---\n\nDo it.\n"
        (folder / name / "SKILL.md").write_text(text, encoding="utf-8")
    return folder


class TestValidate:
    def test_a_skill_that_does_not_exist_is_named_with_the_nearest_name(
        self, kantan_agents: Any, agents: Path, skills: Path
    ) -> None:
        agent_file(agents / "a.md", "a", more="skills: pdf, chart\n")
        outcome = kantan_agents("agents", "validate", "--strict")
        assert outcome.code == 1
        (line,) = outcome.stdout.splitlines()
        assert line.endswith(
            "a.md:4: warning: skills: no skill here is named 'chart' (the nearest name is 'charts')"
        )

    def test_without_a_folder_of_skills_nothing_is_said(self, kantan_agents: Any, agents: Path) -> None:
        agent_file(agents / "a.md", "a", more="skills: pdf\n")
        assert kantan_agents("agents", "validate", "--strict").code == 0

    def test_a_folder_beside_the_named_one_counts(self, kantan_agents: Any, tmp_path: Path) -> None:
        file = agent_file(tmp_path / "pack" / "agents" / "a.md", "a", more="skills: nope\n")
        (tmp_path / "pack" / "skills").mkdir()
        assert "'nope'" in kantan_agents("agents", "validate", str(file)).stdout

    def test_a_folder_can_be_given(
        self, kantan_agents: Any, agents: Path, skills: Path, tmp_path: Path
    ) -> None:
        agent_file(agents / "a.md", "a", more="skills: pdf\n")
        (tmp_path / "none").mkdir()
        assert "'pdf'" in kantan_agents("agents", "validate", "--skills", str(tmp_path / "none")).stdout
        assert kantan_agents("agents", "validate", "--strict", "--skills", str(skills)).code == 0
        assert kantan_agents("agents", "validate", "--skills", str(tmp_path / "missing")).code == 2

    def test_the_tools_for_skills_exist(self, kantan_agents: Any, agents: Path) -> None:
        agent_file(agents / "a.md", "a", more="tools: Skill, ReadSkillFile, Skil\n")
        (line,) = kantan_agents("agents", "validate").stdout.splitlines()
        assert "is named 'Skil' (the nearest name is 'Skill')" in line


class TestShow:
    def test_every_field_is_acted_on_or_listed_as_kept(self, kantan_agents: Any, agents: Path) -> None:
        more = (
            "tools: a\ndisallowedTools: b\nmodel: sonnet\nmaxTurns: 3\nversion: '1'\ncontext: {k: v}\n"
            "skills: pdf\ncolor: red\npermissionMode: plan\nmcpServers: {}\nhooks: {}\nmemory: user\n"
            "effort: high\ninitialPrompt: Go\ncategory: x\nauthor: me\nisolation: worktree\n"
        )
        agent_file(agents / "a.md", "a", more=more)
        kept = [
            *("color", "permissionMode", "hooks", "memory", "effort", "initialPrompt"),
            *("category", "author", "isolation"),
        ]
        data = json.loads(kantan_agents("agents", "show", "a", "--json").stdout)
        assert data["kept_without_effect"] == kept
        shown = " ".join(kantan_agents("agents", "show", "a").stdout.split())
        assert f"kept, no effect here: {', '.join(kept)}" in shown

    def test_a_plain_file_has_no_such_line(self, kantan_agents: Any, agents: Path) -> None:
        agent_file(agents / "a.md", "a")
        assert "no effect" not in kantan_agents("agents", "show", "a").stdout
        assert json.loads(kantan_agents("agents", "show", "a", "--json").stdout)["kept_without_effect"] == []

    def test_missing_skills_are_data(self, kantan_agents: Any, agents: Path, skills: Path) -> None:
        agent_file(agents / "a.md", "a", more="skills: pdf, nope\n")
        data = json.loads(kantan_agents("agents", "show", "a", "--json").stdout)
        assert data["unknown_skills"] == ["nope"]


class TestExplain:
    def test_the_limit_of_a_skill_is_explained(self, kantan_agents: Any, agents: Path, skills: Path) -> None:
        agent_file(agents / "a.md", "a", more="skills: pdf\n")
        assert kantan_agents("tools", "explain", "Write", "--agent", "a").code == 0
        outcome = kantan_agents("tools", "explain", "Write", "--agent", "a", "--skill", "pdf", "--json")
        data = json.loads(outcome.stdout)
        assert (outcome.code, data["allowed"], data["layer"]) == (1, False, "skill pdf")
        assert kantan_agents("tools", "explain", "Skill", "--agent", "a", "--skill", "pdf").code == 0

    def test_a_skill_needs_an_agent_and_must_exist(
        self, kantan_agents: Any, agents: Path, skills: Path
    ) -> None:
        agent_file(agents / "a.md", "a")
        assert "needs --agent" in kantan_agents("tools", "explain", "Write", "--skill", "pdf").stderr
        unknown = kantan_agents("tools", "explain", "Write", "--agent", "a", "--skill", "nope")
        assert (unknown.code, "E189" in unknown.stderr) == (2, True)


class TestRun:
    def test_an_agent_has_the_skills_of_its_file_and_missing_ones_are_named(
        self, kantan_agents: Any, serve: Any, agents: Path, skills: Path
    ) -> None:
        agent_file(agents / "a.md", "a", more="tools: []\nskills: pdf, pfd\n")
        with serve([ScriptedToolCall("Skill", {"name": "pdf"}), "Filled."]) as server:
            outcome = kantan_agents("run", "--agent", "a", "Fill it.")
        assert (outcome.code, outcome.stdout) == (0, "Filled.\n")
        assert outcome.stderr == (
            "warning: skills: no skill here is named 'pfd' (the nearest name is 'pdf'); "
            "agent 'a' runs without it\n"
        )
        assert "Do it." in json.dumps(server.requests[1].body)

    def test_a_markdown_file_is_a_command(self, kantan_agents: Any, serve: Any, project: Path) -> None:
        folder = project / ".claude" / "commands"
        folder.mkdir(parents=True)
        (folder / "greet.md").write_text("Greet $1 in $2.", encoding="utf-8")
        with serve(["Salut."]) as server:
            outcome = kantan_agents("run", "/greet Ada French")
        assert (outcome.code, outcome.stdout) == (0, "Salut.\n")
        assert server.requests[0].body["input"] == [{"role": "user", "content": "Greet Ada in French."}]
