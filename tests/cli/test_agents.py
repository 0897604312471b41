"""``kantan-agents agents list``, ``show`` and ``search``."""

from __future__ import annotations

import json
import pwd
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from kantan_agents.cli.app import invoke
from tests.cli.agent_folder import (
    ERRORS,
    HOSTILE_NAME,
    REPAIRED,
    agent_file,
    broken_folder,
    hostile_file,
)

COMMANDS = ("list", "show", "search", "validate", "new", "fix")


@pytest.fixture
def agents(project: Path) -> Path:
    """The project's directory of agents, with three of them."""
    directory = project / ".claude" / "agents"
    agent_file(directory / "reviewer.md", "Code Reviewer", "Reviews code.", "tools: Read, Bash(git diff:*)\n")
    agent_file(directory / "planner.md", "planner", r'"Plans a review.\nThen rests."', "model: sonnet\n")
    agent_file(directory / "deep" / "tester.md", "tester", "Tests the code.", "tools: []\nmine: {a: [1]}\n")
    return directory


class TestHelp:
    def test_the_group_shows_its_commands(self, kantan_agents: Any) -> None:
        outcome = kantan_agents("agents")
        assert (outcome.code, outcome.stderr) == (0, "")
        assert "Usage: kantan-agents agents [OPTIONS] COMMAND [ARGS]..." in outcome.stdout
        for command in COMMANDS:
            assert f"│ {command} " in outcome.stdout
        assert "│ agents " in kantan_agents("--help").stdout

    @pytest.mark.parametrize("command", COMMANDS)
    def test_help_fits_80_columns_and_lists_the_exit_codes(self, kantan_agents: Any, command: str) -> None:
        outcome = kantan_agents("agents", command, "--help")
        assert outcome.code == 0
        assert max(map(len, outcome.stdout.splitlines())) <= 80
        assert "Exit codes: 0 " in outcome.stdout

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["show"], "Missing argument 'NAME'; see kantan-agents agents show --help"),
            (["search"], "Missing argument 'TEXT'"),
            (["new", "x"], "Missing option '--description'"),
            (["bogus"], "No such command 'bogus'; see kantan-agents agents --help"),
        ],
    )
    def test_mistakes_in_the_arguments(self, kantan_agents: Any, arguments: list[str], message: str) -> None:
        kantan_agents("agents", *arguments).is_one_error(f"[usage] {message}")

    def test_no_command_imports_the_sdk(self, agents: Path) -> None:
        (agents / "repaired.md").write_bytes(REPAIRED["colon.md"])
        program = (
            "import sys; from kantan_agents.cli.app import invoke; "
            "commands = ['list'], ['show', 'tester'], ['search', 'a'], ['validate'], ['fix'], "
            "['new', 'x', '--description', 'y']; "
            "codes = [invoke(['agents', *command]) for command in commands]; "
            "codes.append(invoke(['run', 'hi', '--agent', 'nobody']) - 2); "
            "sys.exit(any(codes) or 'agents' in sys.modules or 'openai' in sys.modules)"
        )
        finished = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
        assert finished.returncode == 0, finished.stderr


@pytest.mark.usefixtures("agents")
class TestList:
    def test_the_agents_are_rows(self, kantan_agents: Any) -> None:
        outcome = kantan_agents("agents", "list")
        assert (outcome.code, outcome.stderr) == (0, "")
        assert outcome.stdout.splitlines() == [
            "name           scope    model   description",
            "Code Reviewer  project          Reviews code.",
            "planner        project  sonnet  Plans a review.",
            "tester         project          Tests the code.",
        ]

    def test_json(self, kantan_agents: Any, agents: Path) -> None:
        outcome = kantan_agents("agents", "list", "--json")
        assert outcome.code == 0
        data = json.loads(outcome.stdout)
        assert data["problems"] == data["shadowed"] == data["repaired"] == []
        assert [agent["name"] for agent in data["agents"]] == ["Code Reviewer", "planner", "tester"]
        reviewer, planner, tester = data["agents"]
        assert reviewer["tools"] == ["Read", "Bash(git diff:*)"]
        assert reviewer["path"] == str(agents / "reviewer.md")
        assert (planner["tools"], planner["model"]) == ("*", "sonnet")
        assert planner["description"] == "Plans a review.\nThen rests."
        assert (tester["tools"], tester["scope"], tester["extra"]) == ([], "project", {"mine": {"a": [1]}})
        assert "system_prompt" not in tester

    def test_problems_are_counted_and_listed_with_all(
        self, kantan_agents: Any, project: Path, agents: Path
    ) -> None:
        broken_folder(agents)
        agent_file(project / ".kode" / "agents" / "t.md", "TESTER", "Another.")
        outcome = kantan_agents("agents", "list")
        assert outcome.code == 1
        counts = f"{len(ERRORS)} errors, {len(REPAIRED)} files repaired, 1 file shadowed; --all shows them"
        assert outcome.stdout.splitlines()[-2:] == ["", counts]

        shown = kantan_agents("agents", "list", "--all")
        assert shown.code == 1
        _, problems, repaired, shadowed = shown.stdout.split("\n\n")
        assert problems.startswith(f"problems\n{agents}/bytes.md:3: error: byte 25 is not valid UTF-8 ")
        assert problems.count("\n") == len(ERRORS)
        assert f"{agents}/colon.md:3: warning: description: " in repaired
        assert shadowed == (
            f"shadowed\n{agents}/deep/tester.md: tester is shadowed by {project}/.kode/agents/t.md\n"
        )

    def test_json_lists_the_problems(self, kantan_agents: Any, project: Path, agents: Path) -> None:
        broken_folder(agents)
        agent_file(project / ".kode" / "agents" / "t.md", "TESTER", "Another.")
        outcome = kantan_agents("agents", "list", "--json")
        assert (outcome.code, outcome.stdout.count("\n")) == (1, 1)
        data = json.loads(outcome.stdout)
        errors = [problem for problem in data["problems"] if problem["severity"] == "error"]
        assert {Path(error["path"]).name: (error["line"], error["code"]) for error in errors} == {
            name: (line, code) for name, (_, line, code) in ERRORS.items()
        }
        assert {Path(repaired["path"]).name for repaired in data["repaired"]} == set(REPAIRED)
        assert all(repaired["repairs"] for repaired in data["repaired"])
        by = str(project / ".kode" / "agents" / "t.md")
        assert data["shadowed"] == [{"name": "tester", "path": str(agents / "deep" / "tester.md"), "by": by}]

    def test_in_a_narrow_terminal_a_record_takes_a_few_lines(
        self, kantan_agents: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", "30")
        lines = kantan_agents("agents", "list").stdout.splitlines()
        assert lines[:2] == ["Code Reviewer  project", "  Reviews code."]
        assert max(map(cell_len, lines)) <= 30


class TestNoAgents:
    def test_it_lists_the_searched_directories(
        self, kantan_agents: Any, project: Path, tmp_path: Path
    ) -> None:
        outcome = kantan_agents("agents", "list")
        assert outcome.code == 0
        assert outcome.stdout.splitlines() == [
            "There are no agents. They are looked for in:",
            f"  {project}/.kode/agents",
            f"  {project}/.claude/agents",
            f"  {tmp_path}/home/.kode/agents",
            f"  {tmp_path}/home/.claude/agents",
        ]

    @pytest.mark.usefixtures("project")
    def test_json(self, kantan_agents: Any) -> None:
        outcome = kantan_agents("agents", "list", "--json")
        assert outcome.code == 0
        assert json.loads(outcome.stdout) == {"agents": [], "problems": [], "shadowed": [], "repaired": []}

    @pytest.mark.usefixtures("project")
    def test_none_can_be_shown(self, kantan_agents: Any) -> None:
        kantan_agents("agents", "show", "x").is_one_error("[E32] Agent not found: x (available: none)")


class TestMissingDirectories:
    def test_a_deleted_working_directory_is_a_one_line_error(
        self, kantan_agents: Any, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (project / "gone").mkdir()
        monkeypatch.chdir(project / "gone")
        (project / "gone").rmdir()
        new = ["new", "x", "--description", "y"]
        for command in (["list"], ["show", "x"], ["search", "x"], ["validate"], ["fix"], new):
            outcome = kantan_agents("agents", *command)
            outcome.is_one_error("[E75] Invalid option cwd: there is no working directory")
        kantan_agents("run", "hi", "--agent", "x").is_one_error("[E75] Invalid option cwd: ")
        path = agent_file(project / "a.md", "a")
        assert kantan_agents("agents", "validate", str(path)).code == 0

    def test_without_a_home_the_project_is_listed(
        self, kantan_agents: Any, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def unknown(uid: int) -> Any:
            raise KeyError(uid)

        agent_file(project / ".claude" / "agents" / "a.md", "a")
        monkeypatch.delenv("HOME")
        monkeypatch.setattr(pwd, "getpwuid", unknown)
        outcome = kantan_agents("agents", "list", "--all")
        assert outcome.code == 0
        assert "~/.claude/agents:1: warning: the directory is skipped: the user has no home" in outcome.stdout
        outcome = kantan_agents("agents", "new", "x", "--description", "y", "--user")
        outcome.is_one_error("[E75] Invalid option home: '~/.claude/agents' needs a home directory")


@pytest.mark.usefixtures("agents")
class TestShow:
    def test_all_fields_of_a_file_are_shown(self, kantan_agents: Any, agents: Path) -> None:
        more = "tools: *\nmaxTurns: 5\nhooks: {Stop: [x]}\n"
        agent_file(agents / "colon.md", "colon", "Use: this", more, prompt="Prompt\n")
        outcome = kantan_agents("agents", "show", "COLON")
        assert (outcome.code, outcome.stderr) == (0, "")
        lines = outcome.stdout.splitlines()
        assert lines[:3] == ["name         colon", "description  Use: this", "scope        project"]
        assert lines[-2:] == ["", "Prompt"]
        for line in ("tools        all", "maxTurns     5", 'hooks        {"Stop": ["x"]}'):
            assert line in lines
        assert "description: contains ': ' and is not quoted" in " ".join(outcome.stdout.split())

    def test_allowed_tools_are_shown(self, kantan_agents: Any) -> None:
        def tools(name: str) -> str:
            lines = kantan_agents("agents", "show", name).stdout.splitlines()
            return " ".join(next(line for line in lines if line.startswith("tools ")).split()[1:])

        assert tools("code_reviewer") == "Read, Bash(git diff:*)"
        assert tools("planner") == "all"
        assert tools("tester") == "none"

    def test_json(self, kantan_agents: Any) -> None:
        outcome = kantan_agents("agents", "show", "tester", "--json")
        data = json.loads(outcome.stdout)
        assert (outcome.code, data["name"], data["system_prompt"]) == (0, "tester", "Do.")
        assert (data["tools"], data["scope"], data["repairs"]) == ([], "project", [])

    def test_the_prompt_goes_to_a_pipe_byte_for_byte(
        self, agents: Path, capsysbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        prompt = "\x1b[2J é\r\n---\n\ttabs \u2028 and no line end"
        agent_file(agents / "exact.md", "exact", prompt=prompt)
        assert invoke(["agents", "show", "exact", "--prompt"]) == 0
        assert capsysbinary.readouterr().out == prompt.encode()

    def test_a_prompt_cannot_send_control_characters_to_a_terminal(
        self, kantan_agents: Any, agents: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hostile_file(agents / "hostile.md")
        monkeypatch.setattr(type(sys.stdout), "isatty", lambda _self: True)
        assert "\x1b" not in kantan_agents("agents", "show", HOSTILE_NAME, "--prompt").stdout

    def test_the_error_for_an_unknown_name_lists_similar_names_first(self, kantan_agents: Any) -> None:
        outcome = kantan_agents("agents", "show", "tster")
        outcome.is_one_error("[E32] Agent not found: tster (available: tester, Code Reviewer, planner)")

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("no-front", "[E30] Agent file cannot be read: {path}:1: has no frontmatter"),
            ("No_Name", "[E31] Agent definition is not valid: {path}:1: name: is missing"),
        ],
    )
    def test_the_error_of_an_invalid_file_with_that_name_is_shown(
        self, kantan_agents: Any, agents: Path, name: str, message: str
    ) -> None:
        broken_folder(agents)
        path = agents / f"{name.lower().replace('_', '-')}.md"
        kantan_agents("agents", "show", name).is_one_error(message.format(path=path))

    def test_prompt_and_json_cannot_be_combined(self, kantan_agents: Any) -> None:
        outcome = kantan_agents("agents", "show", "tester", "--prompt", "--json")
        outcome.is_one_error("[E75] Invalid option --prompt: cannot be combined with --json")


@pytest.mark.usefixtures("agents")
class TestSearch:
    def test_names_come_before_descriptions(self, kantan_agents: Any) -> None:
        outcome = kantan_agents("agents", "search", "REVIEW")
        assert (outcome.code, outcome.stderr) == (0, "")
        assert [line.split("  ")[0] for line in outcome.stdout.splitlines()] == [
            "name",
            "Code Reviewer",
            "planner",
        ]

    def test_all_words_must_match(self, kantan_agents: Any) -> None:
        found = json.loads(kantan_agents("agents", "search", "code", "tests", "--json").stdout)
        assert [agent["name"] for agent in found] == ["tester"]

    def test_nothing_found_is_1(self, kantan_agents: Any) -> None:
        outcome = kantan_agents("agents", "search", "nonsense")
        assert (outcome.code, outcome.stdout) == (1, "No agent found.\n")
        outcome = kantan_agents("agents", "search", "nonsense", "--json")
        assert (outcome.code, outcome.stdout) == (1, "[]\n")
