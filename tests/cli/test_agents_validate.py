"""``kantan-agents agents validate``: every problem in subagent files, one per line for editors."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.cli.agents.files import find_files, read_files
from tests.cli.agent_folder import ERRORS, REPAIRED, agent_file, broken_folder, hostile_file
from tests.subagent_files.real_world_files import SAMPLES, write_samples

LINE = re.compile(r"(?P<path>[^:]+):(?P<line>\d+): (?P<severity>error|warning): (?P<message>.+)")


@pytest.fixture
def agents(project: Path) -> Path:
    """The project's directory of agents, which does not exist yet."""
    return project / ".claude" / "agents"


def parsed(text: str) -> list[dict[str, str]]:
    lines = []
    for line in text.splitlines():
        match = LINE.fullmatch(line)
        assert match, line
        lines.append(match.groupdict())
    return lines


def test_a_process_reports_every_invalid_file(process: Any, agents: Path) -> None:
    broken_folder(agents)
    agent_file(agents / "sound.md", "sound")
    outcome = process("agents", "validate", ".claude/agents")
    assert outcome.code == 1
    problems = parsed(outcome.stdout)
    errors = {
        problem["path"]: (int(problem["line"]), problem["message"][-4:-1])
        for problem in problems
        if problem["severity"] == "error"
    }
    assert errors == {f".claude/agents/{name}": (line, code) for name, (_, line, code) in ERRORS.items()}
    warned = {problem["path"] for problem in problems if problem["severity"] == "warning"}
    assert warned == {f".claude/agents/{name}" for name in REPAIRED}
    files = len(ERRORS) + len(REPAIRED) + 1
    warnings = len(problems) - len(ERRORS)
    assert outcome.stderr == f"{files} files, {len(ERRORS)} errors, {warnings} warnings\n"


def test_the_exact_form_of_a_line(kantan_agents: Any, project: Path) -> None:
    (project / "a b.md").write_bytes(ERRORS["no-name.md"][0])
    outcome = kantan_agents("agents", "validate", "a b.md")
    assert outcome.stdout == "a b.md:1: error: name: is missing [E31]\n"
    assert outcome.stderr == "1 file, 1 error, 0 warnings\n"


def test_valid_files_exit_with_0(kantan_agents: Any, agents: Path) -> None:
    agent_file(agents / "a.md", "a")
    agent_file(agents / "deep" / "b.md", "b")
    for arguments in ([], ["--strict"], [str(agents)], [str(agents / "a.md"), str(agents / "deep")]):
        outcome = kantan_agents("agents", "validate", *arguments)
        assert (outcome.code, outcome.stdout) == (0, "")
        assert outcome.stderr == "2 files, 0 errors, 0 warnings\n"


def test_without_paths_the_usual_directories_are_searched(
    kantan_agents: Any, project: Path, agents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home" / ".kode" / "agents").mkdir(parents=True)
    (tmp_path / "home" / ".kode" / "agents" / "bad.md").write_bytes(b"---\nname: bad\n")
    agent_file(agents / "a.md", "a", "Use: this")
    below = project / "src" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    outcome = kantan_agents("agents", "validate")
    assert [(Path(problem["path"]).name, problem["severity"]) for problem in parsed(outcome.stdout)] == [
        ("a.md", "warning"),
        ("bad.md", "error"),
    ]


def test_warnings_exit_with_0_and_with_strict_1(kantan_agents: Any, agents: Path) -> None:
    agent_file(agents / "a.md", "a", "Use: this")
    outcome = kantan_agents("agents", "validate")
    assert (outcome.code, outcome.stderr) == (0, "1 file, 0 errors, 1 warning\n")
    assert kantan_agents("agents", "validate", "--strict").code == 1


def test_tools_that_grant_nothing_give_a_warning_on_their_line(kantan_agents: Any, agents: Path) -> None:
    more = "model: opus\nallowedTools: Read, Bash(x\ndisallowedTools: NotebookEdit(docs/*)\n"
    agent_file(agents / "a.md", "a", more=more)
    problems = parsed(kantan_agents("agents", "validate", "--tools", "Read").stdout)
    assert [problem["line"] for problem in problems] == ["5", "6"]
    assert problems[0]["message"].endswith("; it grants nothing")
    assert problems[1]["message"].endswith("; NotebookEdit is denied entirely")


def test_limits_without_effect_here_give_a_warning_on_their_line(kantan_agents: Any, agents: Path) -> None:
    more = (
        "permissionMode: plan\nhooks: {Stop: [x]}\n'readonly': true\nagents: [a]\nmodel: opus[1m]\nfoo: 1\n"
    )
    agent_file(agents / "a.md", "a", more=more)
    problems = parsed(kantan_agents("agents", "validate").stdout)
    assert [(problem["line"], problem["message"].partition(":")[0]) for problem in problems] == [
        ("4", "permissionMode"),
        ("5", "hooks"),
        ("6", "readonly"),
        ("7", "agents"),
        ("8", "model"),
        ("9", "foo"),
    ]
    assert all("no effect here" in problem["message"] for problem in problems if problem["line"] != "8")
    assert {problem["severity"] for problem in problems} == {"warning"}
    shown = " ".join(kantan_agents("agents", "show", "a").stdout.split())
    data = json.loads(kantan_agents("agents", "show", "a", "--json").stdout)
    for problem in problems:
        assert problem["message"] in shown
        assert problem["message"] in data["remarks"]


def test_a_file_without_a_prompt_gives_a_warning(kantan_agents: Any, agents: Path) -> None:
    path = agent_file(agents / "mute.md", "mute", prompt=" \n")
    outcome = kantan_agents("agents", "validate")
    assert (outcome.code, outcome.stdout) == (0, f"{path}:1: warning: has no prompt: it cannot be run\n")
    assert kantan_agents("agents", "validate", "--strict").code == 1
    assert kantan_agents("run", "hi", "--agent", "mute").code == 2


def test_a_readme_is_no_error_unless_it_is_named(kantan_agents: Any, agents: Path) -> None:
    agent_file(agents / "a.md", "a")
    readme = agents / "README.md"
    readme.write_text("# Agents\n\n- Bash\n")
    line = f"{readme}:1: warning: is not an agent: the file has no frontmatter\n"
    outcome = kantan_agents("agents", "validate")
    assert (outcome.code, outcome.stdout) == (0, line)
    assert kantan_agents("agents", "list").code == 0
    fixed = kantan_agents("agents", "fix")
    assert (fixed.code, fixed.stdout, fixed.stderr) == (0, "", "1 file, 0 fixed\n")
    for paths in ([str(readme)], [str(agents), str(readme)]):
        outcome = kantan_agents("agents", "validate", *paths)
        assert outcome.code == 1
        assert "error: has no frontmatter: its first line is not '---' [E30]" in outcome.stdout
    kantan_agents("agents", "show", "readme").is_one_error(f"[E30] Agent file cannot be read: {readme}:1")


class TestNames:
    def test_a_duplicate_name_in_one_directory_gives_a_warning(
        self, kantan_agents: Any, agents: Path
    ) -> None:
        agent_file(agents / "a.md", "Code Reviewer")
        agent_file(agents / "deep" / "b.md", "code-reviewer")
        for arguments in ([], [str(agents)]):
            outcome = kantan_agents("agents", "validate", *arguments)
            assert outcome.code == 0
            assert outcome.stdout == (
                f"{agents}/deep/b.md:2: warning: name: {agents}/a.md also has the name "
                "code-reviewer, and is the one used\n"
            )

    def test_a_duplicate_name_in_two_directories_gives_no_warning(
        self, kantan_agents: Any, project: Path, agents: Path
    ) -> None:
        agent_file(agents / "a.md", "a")
        agent_file(project / ".kode" / "agents" / "a.md", "a")
        assert kantan_agents("agents", "validate", "--strict").code == 0

    def test_a_file_given_twice_is_read_once(self, kantan_agents: Any, agents: Path) -> None:
        path = str(agent_file(agents / "a.md", "a"))
        outcome = kantan_agents("agents", "validate", path, str(agents), path)
        assert (outcome.code, outcome.stderr) == (0, "1 file, 0 errors, 0 warnings\n")


class TestFiles:
    def test_a_given_file_may_have_any_suffix(self, kantan_agents: Any, project: Path) -> None:
        (project / ".hidden.txt").write_bytes(b"")
        assert kantan_agents("agents", "validate", ".hidden.txt").code == 1

    def test_missing_paths_are_an_error(self, kantan_agents: Any, project: Path) -> None:
        (project / "link.md").symlink_to("nowhere.md")
        for path in ("none", "link.md"):
            outcome = kantan_agents("agents", "validate", ".", path)
            outcome.is_one_error(f"[E79] Cannot use {path}: No such file or directory")
        kantan_agents("agents", "validate", "x" * 5000).is_one_error("[E79] Cannot use xxx")

    def test_no_files_at_all(self, kantan_agents: Any, project: Path) -> None:
        outcome = kantan_agents("agents", "validate", "--strict")
        assert (outcome.code, outcome.stdout) == (0, "")
        assert outcome.stderr.startswith(f"no agent files found in {project}/.kode/agents, {project}/.claude")
        outcome = kantan_agents("agents", "validate", ".")
        assert (outcome.code, outcome.stderr) == (0, "no agent files found in .\n")

    def test_files_deleted_during_the_command_are_skipped(self, agents: Path) -> None:
        vanishing = agent_file(agents / "a.md", "a")
        staying = agent_file(agents / "b.md", "b")
        found = find_files([agents])
        vanishing.unlink()
        assert [file.path for file in read_files(found.files)] == [staying]

    @pytest.mark.skipif(os.name == "nt", reason="no pipes and links there")
    def test_paths_that_are_not_regular_files_are_reported_without_blocking(
        self, kantan_agents: Any, agents: Path
    ) -> None:
        agents.mkdir(parents=True)
        os.mkfifo(agents / "pipe.md")
        (agents / "link.md").symlink_to("nowhere.md")
        (agents / "loop").symlink_to(agents)
        outcome = kantan_agents("agents", "validate", str(agents / "pipe.md"), str(agents))
        assert outcome.code == 1
        assert [(Path(problem["path"]).name, problem["message"]) for problem in parsed(outcome.stdout)] == [
            ("pipe.md", "is not a regular file [E30]"),
            ("link.md", "the target of the link does not exist [E30]"),
        ]


def test_json(kantan_agents: Any, agents: Path) -> None:
    (agents / "sub").mkdir(parents=True)
    (agents / "a.md").write_bytes(ERRORS["turns.md"][0])
    (agents / "sub" / "b.md").write_bytes(REPAIRED["colon.md"])
    outcome = kantan_agents("agents", "validate", "--json")
    assert (outcome.code, outcome.stdout.count("\n")) == (1, 1)
    data = json.loads(outcome.stdout)
    error, warning = data.pop("problems")
    assert data == {"files": 2, "errors": 1, "warnings": 1}
    assert error.pop("message").startswith("maxTurns: ")
    assert warning.pop("message").startswith("description: ")
    assert error == {
        "path": str(agents / "a.md"),
        "line": 4,
        "severity": "error",
        "code": "E31",
        "is_repair": False,
    }
    assert warning == {
        "path": str(agents / "sub" / "b.md"),
        "line": 3,
        "severity": "warning",
        "code": None,
        "is_repair": True,
    }


def test_a_problem_is_one_line_whatever_the_file_name(kantan_agents: Any, agents: Path) -> None:
    hostile_file(agents / "a\nb\x1b[2J\t[bold].md")
    problems = parsed(kantan_agents("agents", "validate").stdout)
    assert {problem["path"] for problem in problems} == {f"{agents}/a b[U+001B][2J [bold].md"}
    assert [problem["message"].partition(":")[0] for problem in problems] == ["odd[U+001B][1m", "tools"]


def test_every_real_world_file_is_reported_with_its_line(kantan_agents: Any, agents: Path) -> None:
    outcome = kantan_agents("agents", "validate", str(write_samples(agents)))
    assert outcome.code == 1
    found = [one for one in parsed(outcome.stdout) if "tools: no tool here is named" not in one["message"]]
    for name, wild in SAMPLES.items():
        lines = [(one["line"], one["severity"]) for one in found if Path(one["path"]).stem == name]
        severity = "error" if wild.severity == "error" else "warning"
        assert lines[:1] == ([] if wild.line is None else [(str(wild.line), severity)]), name


class TestToolsThatDoNotExist:
    @pytest.fixture(autouse=True)
    def _agent(self, agents: Path) -> None:
        agent_file(agents / "a.md", "a", more="model: opus\ntools: Red, Bosh(git diff:*), mcp__x, Task\n")

    def test_each_is_named_on_the_line_of_the_list(self, kantan_agents: Any) -> None:
        outcome = kantan_agents("agents", "validate")
        [problem] = parsed(outcome.stdout)
        assert (problem["line"], problem["severity"]) == ("5", "warning")
        assert problem["message"] == (
            "tools: no tool here is named 'Red' (the nearest name is 'Read'), 'Bosh' (the nearest name is "
            "'Bash'); a program that runs the agent must bring them"
        )
        assert outcome.stderr == "1 file, 0 errors, 1 warning\n"
        assert (outcome.code, kantan_agents("agents", "validate", "--strict").code) == (0, 1)

    def test_those_that_the_program_brings_are_not_missing(self, kantan_agents: Any) -> None:
        outcome = kantan_agents("agents", "validate", "--strict", "--tools", "Bosh, Red")
        assert (outcome.code, outcome.stdout) == (0, "")

    def test_show_names_them(self, kantan_agents: Any) -> None:
        assert "no tool here is named 'Red' (the nearest name is 'Read'), 'Bosh'" in " ".join(
            kantan_agents("agents", "show", "a").stdout.split()
        )
        assert json.loads(kantan_agents("agents", "show", "a", "--json").stdout)["unknown_tools"] == [
            "Red",
            "Bosh",
        ]

    def test_run_names_them_on_stderr_and_answers(self, kantan_agents: Any, serve: Any) -> None:
        with serve(["Hello."]):
            outcome = kantan_agents("run", "hi", "--agent", "a", "--model", "gpt-5")
        assert (outcome.code, outcome.stdout) == (0, "Hello.\n")
        assert outcome.stderr == (
            "warning: tools: no tool of agent 'a' is named 'Red', 'Bosh'; the agent runs without them\n"
        )
