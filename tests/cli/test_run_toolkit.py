"""``kantan-agents run --tools``: the tools of the toolkit for the agent of a file."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kantan_agents.cli.chat.ask_approval import AskAtTerminal
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.terminal.agent_options import OPTIONS_OF_TOOLS, AgentRunOptions
from kantan_agents.cli.terminal.approvals import AskedCall
from kantan_agents.middleware import PendingCall
from kantan_agents.testing import RecordedRequest, ScriptedToolCall
from kantan_agents.toolkit.shell import shell, shell_tools
from tests.cli.agent_folder import agent_file

OFF = "it is switched off"


@pytest.fixture
def code(project: Path) -> Path:
    """A folder with a file, and agents for it."""
    agents = project / ".claude" / "agents"
    agent_file(agents / "reader.md", "reader", "Reads.", "tools: Read, Grep\nmodel: m\n", "You read.\n")
    agent_file(
        agents / "writer.md", "writer", "Writes.", "tools: Read, Write, Bash\nmodel: m\n", "You write.\n"
    )
    agent_file(agents / "lead.md", "lead", "Leads.", "model: m\n", "You lead.\n")
    folder = project / "code"
    folder.mkdir()
    (folder / "a.txt").write_text("a secret number: 42\n")
    return folder


def calling(tool: str, **arguments: Any) -> Any:
    """Return the replies of a model that calls a tool once, then repeats what it got."""

    def reply(request: RecordedRequest) -> Any:
        results = [item for item in request.body["messages"] if item["role"] == "tool"]
        return f"I got: {results[-1]['content']}" if results else ScriptedToolCall(tool, arguments)

    return reply


def run(kantan_agents: Any, serve: Any, reply: Any, agent: str, *options: str) -> Any:
    with serve(reply):
        return kantan_agents("run", "Go.", "--agent", agent, "--model", "ollama/m", *options)


def test_the_options_name_the_tools_that_they_give(tmp_path: Path) -> None:
    given = AgentRunOptions(root=tmp_path, write=True, shell=True, network=True).tools()
    assert {tool.name for tool in given} == OPTIONS_OF_TOOLS.keys()
    few = {tool.name for tool in AgentRunOptions(root=tmp_path).tools()}
    assert few == {name for name, options in OPTIONS_OF_TOOLS.items() if options == "--tools DIR"}


@pytest.mark.parametrize(
    ("agent", "options", "expected"),
    [("reader", [], 0), ("short", [], 1), ("reader", ["--max-turns", "3"], 1)],
)
def test_work_takes_more_turns_than_the_ten_of_the_sdk(
    kantan_agents: Any, serve: Any, code: Path, agent: str, options: list[str], expected: int
) -> None:
    of_file = "tools: Read\nmodel: m\nmaxTurns: 3\n"
    agent_file(code.parent / ".claude" / "agents" / "short.md", "short", "Reads.", of_file, "You read.\n")

    def read_often(request: RecordedRequest) -> Any:
        count = sum(item["role"] == "tool" for item in request.body["messages"])
        return ScriptedToolCall("Read", {"file_path": "a.txt"}) if count < 12 else "Read."

    result = run(kantan_agents, serve, read_often, agent, "--tools", "code", *options)
    assert result.code == expected
    assert ("MaxTurnsExceeded" in result.stderr) == (expected == 1)


def test_an_agent_reads_files_below_the_folder(kantan_agents: Any, serve: Any, code: Path) -> None:
    result = run(kantan_agents, serve, calling("Read", file_path="a.txt"), "reader", "--tools", "code")
    assert result.code == 0 and "a secret number: 42" in result.stdout
    assert result.stderr == ""
    (code.parent / "outside.txt").write_text("other")
    result = run(
        kantan_agents, serve, calling("Read", file_path="../outside.txt"), "reader", "--tools", "code"
    )
    assert result.code == 0 and "[E160]" in result.stdout and "other" not in result.stdout


def test_the_file_of_the_agent_limits_the_tools(kantan_agents: Any, serve: Any, code: Path) -> None:
    asked: list[RecordedRequest] = []

    def reply(request: RecordedRequest) -> str:
        asked.append(request)
        return "Done."

    run(kantan_agents, serve, reply, "reader", "--tools", "code", "--write", "--shell")
    names = {tool["function"]["name"] for tool in asked[0].body["tools"]}
    assert names == {"Read", "Grep"}


def test_without_the_options_a_warning_names_them(kantan_agents: Any, serve: Any, code: Path) -> None:
    result = run(kantan_agents, serve, lambda _: "Done.", "reader")
    assert result.stdout == "Done.\n"
    assert "'Read', 'Grep'; the agent runs without them; --tools DIR gives Read, Grep" in result.stderr


def test_a_call_that_needs_an_approval_is_refused_unless_it_is_given(
    kantan_agents: Any, serve: Any, code: Path
) -> None:
    reply = calling("Write", file_path="b.txt", content="new\n")
    options = ("writer", "--tools", "code", "--write", "--shell")
    result = run(kantan_agents, serve, reply, *options)
    assert result.code == 0 and "did not approve" in result.stdout
    assert result.stderr.splitlines()[-1] == (
        "note: a call of Write was not approved; --yes Write approves them"
    )
    assert not (code / "b.txt").exists()
    result = run(kantan_agents, serve, reply, *options, "--yes", "Write", "--json")
    assert "did not approve" not in json.loads(result.stdout)["result"]["final_output"]
    assert (code / "b.txt").read_text() == "new\n" and "not approved" not in result.stderr


def test_a_call_of_a_subagent_is_refused_in_the_same_way(kantan_agents: Any, serve: Any, code: Path) -> None:
    def reply(request: RecordedRequest) -> Any:
        messages = request.body["messages"]
        results = [item["content"] for item in messages if item["role"] == "tool"]
        if results:
            return f"I got: {results[-1]}"
        if "You write." in str(messages[0]["content"]):
            return ScriptedToolCall("Write", {"file_path": "b.txt", "content": "new\n"})
        task = {"description": "write", "prompt": "Write it.", "subagent_type": "writer"}
        return ScriptedToolCall("Task", task)

    options = ("lead", "--tools", "code", "--write", "--shell")
    result = run(kantan_agents, serve, reply, *options)
    assert result.code == 0 and "did not approve" in result.stdout
    assert not (code / "b.txt").exists()
    run(kantan_agents, serve, reply, *options, "--yes", "Write")
    assert (code / "b.txt").read_text() == "new\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--write",), "--write: needs --tools DIR"),
        (("--tools", "missing"), "--tools: must be a folder that exists, not missing"),
        (("--sandbox", "on"), "--sandbox: must be auto, required or off, not 'on'"),
    ],
)
def test_a_wrong_option_is_an_error(
    kantan_agents: Any, code: Path, options: tuple[str, ...], message: str
) -> None:
    result = kantan_agents("run", "Go.", "--agent", "reader", *options)
    result.is_one_error(f"[E75] Invalid option {message}")


def test_a_call_of_a_tool_that_is_to_be_asked_about_needs_an_approval(
    kantan_agents: Any, serve: Any, code: Path
) -> None:
    (code / "b.txt").write_text("public\n")
    options = ("reader", "--tools", "code", "--ask", "Read(a*)")
    secret = run(kantan_agents, serve, calling("Read", file_path="a.txt"), *options)
    assert secret.code == 0 and "did not approve" in secret.stdout and "42" not in secret.stdout
    assert secret.stderr == "note: a call of Read was not approved; --yes Read approves them\n"
    public = run(kantan_agents, serve, calling("Read", file_path="b.txt"), *options)
    assert public.code == 0 and "public" in public.stdout and public.stderr == ""
    unknown = run(kantan_agents, serve, lambda _: "Done.", "reader", "--tools", "code", "--ask", "Raed")
    unknown.is_one_error("[E75] Invalid option policy")


def test_an_agent_of_a_module_decides_itself_what_needs_an_approval(kantan_agents: Any, code: Path) -> None:
    result = kantan_agents("chat", "--agent", "shop:agent", "--ask", "Read")
    result.is_one_error("[E75] Invalid option --ask: cannot be combined with an agent of a module")


@pytest.fixture
def no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell, "find_sandbox", lambda *_, **__: "bwrap is not installed")


WITHOUT = (
    " commands without a sandbox, which reach all that you may: bwrap is not installed; --sandbox required "
    "refuses them"
)


@pytest.mark.usefixtures("no_sandbox")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--shell",), [f"warning: Bash runs{WITHOUT}"]),
        (("--shell", "--yes", "Bash"), [f"warning: --yes Bash approves{WITHOUT}"]),
        (
            ("--shell", "--sandbox", "off"),
            ["warning: Bash runs" + WITHOUT.replace("bwrap is not installed", OFF)],
        ),
        (("--write",), []),
    ],
)
def test_without_a_sandbox_this_is_said_on_stderr(
    kantan_agents: Any, serve: Any, code: Path, options: tuple[str, ...], said: list[str]
) -> None:
    result = run(kantan_agents, serve, lambda _: "Done.", "lead", "--tools", "code", *options)
    assert (result.code, result.stdout) == (0, "Done.\n")
    assert result.stderr.splitlines() == said


@pytest.mark.slow  # starts bubblewrap
def test_with_a_sandbox_this_is_said_on_stderr(kantan_agents: Any, serve: Any, code: Path) -> None:
    found = shell.shell_of(shell_tools(code))
    if found is None or isinstance(found.place_now(), str):
        pytest.skip("bubblewrap is not installed here, or does not work")
    options = ("--tools", "code", "--shell", "--sandbox", "required")
    result = run(kantan_agents, serve, lambda _: "Done.", "lead", *options)
    assert (result.code, result.stdout) == (0, "Done.\n")
    assert result.stderr == "note: Bash runs its commands in a sandbox. Sandbox: bubblewrap, no network.\n"


@pytest.mark.usefixtures("no_sandbox")
@pytest.mark.parametrize("command", [("run", "Go."), ("chat",)])
def test_a_required_sandbox_that_is_missing_ends_the_command_before_the_model_is_asked(
    kantan_agents: Any, serve: Any, code: Path, command: tuple[str, ...]
) -> None:
    options = ("--model", "ollama/m", "--tools", "code", "--shell", "--sandbox", "required")
    with serve([]) as server:
        result = kantan_agents(*command, *options)
        assert server.requests == []
    result.is_one_error("[E168] The shell needs a sandbox, and there is none: bwrap is not installed")


@pytest.mark.usefixtures("no_sandbox")
def test_a_required_sandbox_holds_for_an_agent_of_a_module_too(
    kantan_agents: Any, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code.parent / "sandboxed_shop.py").write_text(
        "from kantan_agents import Agent\nfrom kantan_agents.toolkit.shell import shell_tools\n"
        "agent = Agent('shop', 'x', tools=shell_tools('.'))\n"
    )
    monkeypatch.setattr(sys, "path", [*sys.path])
    result = kantan_agents("chat", "--agent", "sandboxed_shop:agent", "--sandbox", "required")
    result.is_one_error("[E168] The shell needs a sandbox")


@pytest.mark.parametrize(("tool", "asked"), [("Bash", "Bash (no sandbox):"), ("Write", "Write:")])
async def test_the_question_about_a_command_says_whether_there_is_a_sandbox(tool: str, asked: str) -> None:
    class Person:
        async def ask(self, _: str) -> str:
            return "y"

    written = io.StringIO()
    ask = AskAtTerminal(Person(), Screen(Console(file=written, width=100)), "no sandbox")  # type: ignore[arg-type]
    answer = await ask(AskedCall(PendingCall("1", tool, "{}", "lead")))
    assert answer is not None and answer.decision == "yes"
    assert written.getvalue().splitlines()[0] == f"lead asks for an approval of {asked}"


def test_a_person_runs_a_tool_of_the_toolkit_as_a_command(kantan_agents: Any, code: Path) -> None:
    result = kantan_agents("run", "/Read a.txt", "--tools", "code", "--no-record")
    assert result.code == 0 and "a secret number: 42" in result.stdout
