"""``kantan-agents mcp``, and the MCP servers of an agent that ``run --agent`` runs."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kantan_agents.cli.agents.agent_to_run import read_agent
from kantan_agents.cli.agents.instruction_files import InstructionFiles
from kantan_agents.cli.mcp.trust import _shown
from kantan_agents.cli.run.agent_from_file import agent_from_file
from kantan_agents.cli.terminal.approvals import ApprovalAnswer, AskedApprovals, _named_call
from kantan_agents.errors import MCPNotTrustedError
from kantan_agents.testing import OfflineServer, RecordedRequest, ScriptedToolCall
from tests.cli.agent_folder import agent_file
from tests.cli.imports import assert_none_imports_the_sdk
from tests.programs import Preloaded
from tests.tools.mcp.configuration.conftest import Project

SECRET = "hunter2-hunter2"


@pytest.fixture
def configured(
    project: Path, tmp_path: Path, preloaded: Preloaded, monkeypatch: pytest.MonkeyPatch
) -> Project:
    """A project with two servers, and a user without any."""
    monkeypatch.setenv("KANTAN_AGENTS_CONFIG_DIR", str(tmp_path / "config"))
    found = Project(project, preloaded)
    found.add("files", "good")
    found.servers["github"] = {
        "type": "http",
        "url": f"https://user:{SECRET}@mcp.example.com/mcp",
        "headers": {"Authorization": "Bearer ${GITHUB_TOKEN}"},
    }
    found.write()
    return found


def own_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").mkdir(exist_ok=True)
    (tmp_path / "config" / "kantan-agents.toml").write_text(text)


def test_list_shows_the_servers_and_starts_none(kantan_agents: Any, configured: Project) -> None:
    outcome = kantan_agents("mcp", "list", "--json")
    assert outcome.code == 0
    files, github = json.loads(outcome.stdout)["servers"]
    assert (files["name"], files["type"], files["file"]) == ("files", "stdio", str(configured.path))
    assert (files["is_trusted"], files["state"], files["missing"]) == (False, "not trusted", [])
    assert github["missing"] == ["GITHUB_TOKEN may not be read (headers.Authorization)"]
    text = kantan_agents("mcp", "list").stdout
    assert f"kantan-agents mcp trust {configured.path}" in text
    assert SECRET not in text + outcome.stdout
    assert configured.log("good") == []


def test_list_without_a_file_says_how_to_write_one(
    kantan_agents: Any, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KANTAN_AGENTS_CONFIG_DIR", str(tmp_path / "config"))
    outcome = kantan_agents("mcp", "list")
    assert (outcome.code, outcome.stdout.splitlines()[0]) == (
        0,
        "No MCP server is configured. Configure one in .mcp.json of the project:",
    )
    assert json.loads(outcome.stdout.split("\n\n")[1])["mcpServers"]


def test_a_server_that_the_user_configures_too_is_listed_as_not_used(
    kantan_agents: Any, configured: Project, tmp_path: Path
) -> None:
    own_file(tmp_path, '[mcp.servers.files]\ncommand = "mine"\n')
    data = json.loads(kantan_agents("mcp", "list", "--json").stdout)
    assert data["servers"][0]["server"] == "mine"
    assert data["shadowed"] == [{"name": "files", "file": str(configured.path)}]
    assert f"files of {configured.path} is not used" in kantan_agents("mcp", "list").stdout


def test_the_mistakes_of_a_file_are_exit_code_2(kantan_agents: Any, configured: Project) -> None:
    configured.path.write_text('{"mcpServers": [], "mcpServer": {}}')
    for command in ("list", "check"):
        outcome = kantan_agents("mcp", command)
        assert outcome.code == 2
        assert "E181" in outcome.stderr
        assert "mcpServers: must map names of servers to their configuration" in outcome.stderr
    assert kantan_agents("mcp", "trust", str(configured.path)).code == 2
    assert kantan_agents("mcp", "list", "--config", "missing.json").code == 2


def test_a_mistake_in_one_server_leaves_the_others(kantan_agents: Any, configured: Project) -> None:
    mistake = "mcpServers.a b: needs a command, or a url"
    servers = json.loads(configured.path.read_text())["mcpServers"]
    servers = {"a b": {}, **{name: {**one, "autoApprove": ["x"]} for name, one in servers.items()}}
    configured.path.write_text(json.dumps({"mcpServers": servers}))
    trusted = kantan_agents("mcp", "trust", str(configured.path))
    assert (trusted.code, mistake in trusted.stdout) == (0, True)
    outcome = kantan_agents("mcp", "list")
    assert (outcome.code, outcome.stderr) == (2, "")
    assert "has mistakes" in outcome.stdout
    assert mistake in outcome.stdout.replace("\n", " ")
    data = json.loads(kantan_agents("mcp", "list", "--json").stdout)["servers"]
    assert [one["state"] for one in data][:2] == ["has mistakes", "ready"]
    assert data[1]["remarks"][0].startswith("mcpServers.files.autoApprove: has no effect")
    checked = json.loads(kantan_agents("mcp", "check", "--json").stdout)["servers"]
    assert mistake in checked[-1]["error"]
    assert checked[0]["error"] is None
    assert kantan_agents("mcp", "check", "files").code == 0
    refused = kantan_agents("mcp", "check", "a b")
    assert (refused.code, "[E181]" in refused.stderr) == (2, True)


def test_check_starts_nothing_of_a_file_that_is_not_trusted(kantan_agents: Any, configured: Project) -> None:
    outcome = kantan_agents("mcp", "check")
    assert outcome.code == 1
    assert f"kantan-agents mcp trust {configured.path}" in outcome.stdout.replace("\n", " ")
    assert configured.log("good") == []


def test_check_lists_the_tools_with_the_verdicts_of_the_rules(
    kantan_agents: Any, configured: Project, project: Path
) -> None:
    configured.add("broken", "broken", env={"API_TOKEN": SECRET})
    (project / "rules.json").write_text('{"deny": ["mcp__files__die"]}')
    shown = kantan_agents("mcp", "trust", ".mcp.json")
    assert (shown.code, shown.stdout.splitlines()[-1]) == (0, f"trusted: {configured.path}")
    assert f"env: API_TOKEN={SECRET}" in shown.stdout  # the file says it, and it could be a command
    outcome = kantan_agents("mcp", "check", "--rules", "rules.json", "--json")
    assert outcome.code == 1
    files, github, broken = json.loads(outcome.stdout)["servers"]
    verdicts = {tool["name"]: (tool["allowed"], tool["rule"]) for tool in files["tools"]}
    assert verdicts["read"] == (True, "no rule is about it")
    assert verdicts["die"] == (False, "deny: mcp__files__die")
    assert (files["error"], files["prompts"], files["resources"]) == (None, 1, 1)
    assert "GITHUB_TOKEN may not be read" in github["error"]
    assert broken["stderr"][-1] == "cannot start with ***"
    assert SECRET not in outcome.stdout


def test_trust_shows_everything_that_a_file_of_a_project_starts_as_it_is(
    kantan_agents: Any, configured: Project
) -> None:
    configured.servers["long"] = {
        "command": "sh",
        "args": ["-c", f"true {'x' * 2000}; \x1b[2Kevil\u202e\n--end"],
        "env": {"NODE_OPTIONS": "--require evil", "API_TOKEN": SECRET, "KEY": "${GITHUB_TOKEN}"},
        "cwd": "sub",
    }
    configured.write()
    shown = kantan_agents("mcp", "trust", ".mcp.json").stdout
    assert "[U+001B][2Kevil[U+202E]\\n--end'" in shown  # the end of a long argument, on one line
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert f"    env: NODE_OPTIONS='--require evil' API_TOKEN={SECRET} KEY='${{GITHUB_TOKEN}}'\n" in shown
    assert "    cwd: sub\n" in shown
    assert "    reads: GITHUB_TOKEN\n" in shown
    assert f"  github: https://user:{SECRET}@mcp.example.com/mcp\n" in shown
    assert "    headers: Authorization='Bearer ${GITHUB_TOKEN}'\n" in shown


HIDDEN = {
    "docs": {"command": "bash", "args": ["-c", "export DOCS_API_KEY=`{touch,a}`; exec npx -y server"]},
    "docs3": {
        "command": "sh",
        "args": ["-c", 'exec sh -c "$DOCS_TOKEN"'],
        "env": {"DOCS_TOKEN": "touch scratch/PWNED3"},
    },
    "node": {
        "command": "node",
        "args": ["-e", "eval(process.env.APP_SECRET)", "--token", "rm -r ~"],
        "env": {"APP_SECRET": "require('fs')"},
    },
    "web": {"url": "https://evil.example/a1b2c3d4e5f6a7b8?token=x#y", "headers": {"X-Api-Key": "k1"}},
}


def test_no_command_of_a_project_is_masked_because_it_looks_like_a_secret(
    kantan_agents: Any, configured: Project
) -> None:
    configured.servers = HIDDEN
    configured.write()
    shown = kantan_agents("mcp", "trust", ".mcp.json").stdout
    assert "***" not in shown
    hidden = ("`{touch,a}`", "DOCS_TOKEN='touch scratch/PWNED3'", "'rm -r ~'", "?token=x#y", "X-Api-Key=k1")
    assert [text for text in hidden if text not in shown] == []
    assert shlex.quote("require('fs')") in shown


def test_the_secrets_of_the_users_own_file_stay_masked(
    kantan_agents: Any, configured: Project, tmp_path: Path
) -> None:
    own_file(tmp_path, f'[mcp.servers.mine]\ncommand = "x"\nenv = {{API_TOKEN = "{SECRET}"}}\n')
    shown = kantan_agents("mcp", "trust", str(tmp_path / "config" / "kantan-agents.toml")).stdout
    assert "env: API_TOKEN=***" in shown and SECRET not in shown


@pytest.mark.parametrize("character", [*"\u200b\u2063\u00ad\u180e\u3164\ufff9\ufe0f\U000e0041\x1b"])
def test_no_character_of_a_command_is_invisible(character: str) -> None:
    assert _shown(f"a{character}b") == f"a[U+{ord(character):04X}]b"
    assert _shown("a\tb\nc") == "a\\tb\\nc"
    assert _shown("日本 é") == "日本 é"


def test_tools_of_the_same_name_on_two_servers_have_verdicts_of_their_own(
    kantan_agents: Any, configured: Project, project: Path
) -> None:
    del configured.servers["github"]
    configured.add("mail", "noisy")
    (project / "rules.json").write_text('{"allow": ["mcp__mail__read"]}')
    kantan_agents("mcp", "trust", ".mcp.json")
    outcome = kantan_agents("mcp", "check", "--rules", "rules.json", "--json")
    files, mail = json.loads(outcome.stdout)["servers"]
    assert [tool["name"] for tool in files["tools"] if tool["allowed"]] == []
    assert [tool["name"] for tool in mail["tools"] if tool["allowed"]] == ["read"]


def test_check_of_one_server(kantan_agents: Any, configured: Project) -> None:
    kantan_agents("mcp", "trust", ".mcp.json")
    outcome = kantan_agents("mcp", "check", "files")
    assert outcome.code == 0
    lines = outcome.stdout.splitlines()
    assert lines[0] == f"files (stdio, {configured.path}): 7 tools, 1 prompt, 1 resource"
    assert lines[1] == "  read            allowed  Read a file."
    unknown = kantan_agents("mcp", "check", "fils")
    assert unknown.code == 2
    assert "the nearest name is 'files'" in unknown.stderr


def test_a_server_that_does_not_answer_is_reported_after_the_time_limit(
    kantan_agents: Any, configured: Project
) -> None:
    configured.servers.clear()
    configured.add("silent", "silent")
    kantan_agents("mcp", "trust", ".mcp.json")
    outcome = kantan_agents("mcp", "check", "--timeout", "0.5")
    assert outcome.code == 1
    assert "it has not answered within 0.5 seconds" in outcome.stdout


def test_a_changed_file_is_not_trusted_and_trust_can_be_forgotten(
    kantan_agents: Any, configured: Project
) -> None:
    def state() -> str:
        return str(json.loads(kantan_agents("mcp", "list", "--json").stdout)["servers"][0]["state"])

    kantan_agents("mcp", "trust", ".mcp.json")
    assert state() == "ready"
    configured.add("files", "noisy")
    assert state() == "not trusted"
    kantan_agents("mcp", "trust", ".mcp.json")
    assert state() == "ready"
    assert kantan_agents("mcp", "trust", "--forget", ".mcp.json").stdout == (
        f"no longer trusted: {configured.path}\n"
    )
    assert state() == "not trusted"
    assert kantan_agents("mcp", "trust", "--forget", ".mcp.json").stdout.startswith("was not trusted")


def test_list_and_trust_import_no_sdk(configured: Project) -> None:
    assert_none_imports_the_sdk(
        [["mcp", "list"], ["mcp", "list", "--json"], ["mcp", "trust", ".mcp.json"], ["mcp"]],
        cwd=configured.folder,
    )


class Terminal:
    """Standard input of a person who answers a question."""

    def __init__(self, answer: str) -> None:
        self._answer = answer

    def isatty(self) -> bool:
        return True

    def readline(self, size: int = -1) -> str:
        del size
        return self._answer


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_in_a_terminal_the_user_is_asked_once(
    answer: str, code: int, kantan_agents: Any, configured: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    outcome = kantan_agents("mcp", "check", "files", "--json")
    assert outcome.code == code
    asked = outcome.stderr + outcome.stdout
    assert f"{configured.path} is not trusted yet. It starts or connects to:" in asked
    assert (
        f"  github: https://user:{SECRET}@mcp.example.com/mcp" in asked
    )  # all of the file, as the file is trusted
    assert bool(configured.pids("good")) is (code == 0)
    again = kantan_agents("mcp", "check", "files", "--json")
    assert ("It starts or connects to:" in again.stderr + again.stdout) is (code != 0)


def waiting(name: str, server: str | None) -> Any:
    origin = SimpleNamespace(mcp_server_name=server)
    agent = SimpleNamespace(name="lead")
    return SimpleNamespace(name=name, arguments="{}", call_id="1", agent=agent, tool_origin=origin)


@pytest.mark.parametrize("shown", ["read", "mcp_files__read"])
def test_a_waiting_call_of_a_server_has_its_full_names_only(shown: str) -> None:
    call = _named_call(waiting(shown, "files"))
    assert (call.tool, call.names) == (
        "mcp__files__read",
        ("mcp__files__read", "mcp__files", "mcp__files__*"),
    )
    local = _named_call(waiting(shown, None))
    assert (local.tool, local.names) == (shown, (shown,))


@pytest.mark.parametrize(
    ("name", "is_asked"),
    [
        ("mcp__files__read", False),
        ("mcp__files", False),
        ("mcp__files__*", False),
        ("read", True),
        ("mcp__*", True),
        ("mcp__files__die", True),
        ("mcp__mail", True),
        ("mcp_files__read", True),
    ],
)
async def test_only_full_names_approve_calls_of_a_server(name: str, is_asked: bool) -> None:
    asked: list[Any] = []

    async def ask(call: Any) -> ApprovalAnswer:
        asked.append(call)
        return ApprovalAnswer("no")

    item = waiting("read", "files")
    state = SimpleNamespace(
        get_interruptions=lambda: [item], approve=lambda _: None, reject=lambda *_, **__: None
    )
    result = SimpleNamespace(interruptions=[item], to_state=lambda: state)
    await AskedApprovals(ask, lambda: None, [name]).decide(result)
    assert bool(asked) is is_asked


def asked_at_a_terminal(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)


def folder_with_servers(configured: Project) -> Path:
    """Return a subagent file with a server of its own, beside `.mcp.json`; a third file has one as well."""
    configured.servers = {"files": {"command": "serve-files"}}
    configured.write()
    agents = configured.folder / ".claude" / "agents"
    agent_file(agents / "other.md", "other", "x.", 'mcpServers: [{"third": {"command": "serve-third"}}]\n')
    more = 'mcpServers: [files, {"own": {"command": "serve-own"}}]\n'
    return agent_file(agents / "lead.md", "lead", "Leads.", more)


def test_one_question_is_about_all_files_of_a_folder_and_the_answer_is_kept(
    configured: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lead = folder_with_servers(configured)
    asked_at_a_terminal(monkeypatch, "y\n")
    agent_from_file(read_agent("lead"), "ollama/m", asks=True)
    asked = capsys.readouterr().err
    assert asked.count("Trust these 3 files until they change?") == asked.count("[y/N]") == 1
    for path, program in ((lead, "own"), (configured.path, "files"), (lead.with_name("other.md"), "third")):
        assert f"{path} is not trusted yet. It starts or connects to:" in asked
        assert f"serve-{program}" in asked
    for name in ("lead", "other"):
        agent_from_file(read_agent(name), "ollama/m", asks=True)
    assert "Trust" not in capsys.readouterr().err
    assert len(list((tmp_path / "config" / "trusted-mcp").iterdir())) == 3


@pytest.mark.parametrize("answer", ["y", "n"])
async def test_the_same_question_is_about_the_instructions_of_the_project(
    answer: str, configured: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    agent_file(configured.folder / ".claude/agents/lead.md", "lead", "Leads.", "mcpServers: [files]\n")
    (configured.folder / "AGENTS.md").write_text("Use tabs.")
    named = read_agent("lead")
    named.pinned.instruction_files = InstructionFiles(configured.folder)
    asked_at_a_terminal(monkeypatch, f"{answer}\n")
    if answer == "n":
        with pytest.raises(MCPNotTrustedError):
            agent_from_file(named, "ollama/m", asks=True)
    else:
        assert "Use tabs." in await agent_from_file(named, "ollama/m", asks=True).render({})
    asked = capsys.readouterr().err
    assert asked.count("Trust these 2 files until they change?") == asked.count("[y/N]") == 1
    assert "AGENTS.md is not trusted yet. It instructs agents:\n  Use tabs.\n" in asked


def test_what_is_too_long_for_a_question_is_not_asked_about(
    configured: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder_with_servers(configured)
    configured.servers = {"files": {"command": "sh", "args": ["-c", f"true {' ' * 6000}; evil"]}}
    configured.write()
    asked_at_a_terminal(monkeypatch, "y\n")
    with pytest.raises(MCPNotTrustedError):
        agent_from_file(read_agent("lead"), "ollama/m", asks=True)
    asked = capsys.readouterr().err
    assert f"{configured.path} is not trusted yet. It is too long to be shown in a question" in asked
    assert "Trust these 2 files until they change?" in asked


class TestRunAgent:
    @pytest.fixture(autouse=True)
    def lead(self, configured: Project) -> None:
        directory = configured.folder / ".claude" / "agents"
        agent_file(directory / "lead.md", "lead", "Leads.", "mcpServers: [files]\n", "You lead.\n")
        agent_file(directory / "other.md", "other", "x.", "mcpServers: [absent]\n", "You lead.\n")

    @staticmethod
    def reply(request: RecordedRequest) -> Any:
        if "content of a.txt" in json.dumps(request.body):
            return "It says: content of a.txt"
        return ScriptedToolCall("read", {"path": "a.txt"})

    def test_the_servers_of_the_file_are_used_once_it_is_trusted(
        self, kantan_agents: Any, serve: Any, configured: Project
    ) -> None:
        approving = ("--yes", "mcp__files__read")
        with serve(self.reply) as server:
            arguments = ("run", "--agent", "lead", "Read a.txt", "--model", "gpt-6.1-terra", *approving)
            refused = kantan_agents(*arguments)
            assert (refused.code, configured.log("good"), server.requests) == (2, [], [])
            assert f"kantan-agents mcp trust {configured.path}" in refused.stderr
            kantan_agents("mcp", "trust", ".mcp.json")
            outcome = kantan_agents(*arguments)
        assert (outcome.code, outcome.stdout) == (0, "It says: content of a.txt\n")
        assert outcome.stderr == ""
        assert "read a.txt" in configured.log("good")

    @pytest.mark.slow  # starts a server
    @pytest.mark.parametrize("name", [None, "read"])
    def test_a_call_of_a_server_is_made_only_if_it_is_approved_by_its_full_name(
        self, kantan_agents: Any, serve: Any, configured: Project, name: str | None
    ) -> None:
        kantan_agents("mcp", "trust", ".mcp.json")
        approving = () if name is None else ("--yes", name)
        with serve([ScriptedToolCall("read", {"path": "a.txt"}), "I may not."]):
            outcome = kantan_agents(
                "run", "--agent", "lead", "Read a.txt", "--model", "gpt-6.1-terra", *approving
            )
        assert (outcome.code, outcome.stdout) == (0, "I may not.\n")
        assert outcome.stderr == (
            "note: a call of mcp__files__read was not approved; --yes mcp__files__read approves them\n"
        )
        assert "read a.txt" not in configured.log("good")

    def test_a_server_that_nobody_has_configured_is_named_on_stderr(
        self, kantan_agents: Any, serve: Any, configured: Project
    ) -> None:
        with serve(["Hello."]):
            outcome = kantan_agents("run", "--agent", "other", "Hi", "--model", "gpt-6.1-terra")
        assert (outcome.code, outcome.stdout) == (0, "Hello.\n")
        assert outcome.stderr == (
            "warning: mcpServers of agent 'other': no MCP server 'absent' is configured; the agent runs "
            "without it\n"
        )

    @pytest.mark.parametrize(
        ("servers", "warning"),
        [
            (
                "[files, absent]",
                "mcpServers of agent 'sub': the agent that delegates to it has no 'absent', ",
            ),
            ("[7]", "[kantan-agents][E181]"),
        ],
    )
    def test_servers_that_a_subagent_does_not_have_are_named_on_stderr(
        self, kantan_agents: Any, serve: Any, configured: Project, servers: str, warning: str
    ) -> None:
        directory = configured.folder / ".claude" / "agents"
        agent_file(directory / "sub.md", "sub", "Reads.", f"mcpServers: {servers}\n", "You read.\n")
        task = ScriptedToolCall("Task", {"description": "d", "prompt": "p", "subagent_type": "sub"})
        kantan_agents("mcp", "trust", ".mcp.json")
        with serve([task, "I cannot.", "Neither can I."]):
            outcome = kantan_agents("run", "--agent", "lead", "Hi", "--model", "gpt-6.1-terra")
        assert (outcome.code, outcome.stdout) == (0, "Neither can I.\n")
        assert outcome.stderr.startswith(f"warning: {warning}")
        assert outcome.stderr.count("\n") == 1

    def test_a_file_that_configures_a_server_itself_must_be_trusted(
        self, kantan_agents: Any, serve: Any, configured: Project
    ) -> None:
        path = configured.folder / ".claude" / "agents" / "own.md"
        servers = json.dumps([{"own": configured.server("noisy")}])
        agent_file(path, "own", "Has one.", f"mcpServers: {servers}\n", "You lead.\n")
        with serve(self.reply):
            arguments = (
                "run",
                "--agent",
                "own",
                "Read a.txt",
                "--model",
                "gpt-6.1-terra",
                "--yes",
                "mcp__own",
            )
            assert kantan_agents(*arguments).code == 2
            assert configured.log("noisy") == []
            assert kantan_agents("mcp", "trust", str(path)).code == 0
            assert kantan_agents(*arguments).code == 0
        assert "read a.txt" in configured.log("noisy")

    def test_a_process_ends_with_the_command(
        self, process: Any, kantan_agents: Any, configured: Project
    ) -> None:
        import anyio

        kantan_agents("mcp", "trust", ".mcp.json")
        with OfflineServer(self.reply) as server:
            outcome = process(
                *("run", "--agent", "lead", "Read a.txt", "--model", "gpt-6.1-terra", "--yes", "mcp__files"),
                env=server.environment(),
            )
        assert (outcome.code, outcome.stdout, outcome.stderr) == (0, "It says: content of a.txt\n", "")
        anyio.run(configured.all_ended)

    def test_trusting_a_file_without_servers_of_its_own_is_a_mistake(
        self, kantan_agents: Any, configured: Project
    ) -> None:
        outcome = kantan_agents("mcp", "trust", str(configured.folder / ".claude" / "agents" / "lead.md"))
        assert outcome.code == 2
        assert "configures no MCP server itself" in outcome.stderr
