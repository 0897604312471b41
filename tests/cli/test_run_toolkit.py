"""``kantan-agents run --tools``: the tools of the toolkit for the agent of a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.cli.terminal.toolkit_options import OPTIONS_OF_TOOLS, ToolkitOptions
from kantan_agents.testing import OfflineServer, RecordedRequest, ScriptedToolCall
from tests.cli.agent_folder import agent_file
from tests.cli.test_agents import is_one_error


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
    with OfflineServer(reply) as server:
        serve(server)
        return kantan_agents("run", "Go.", "--agent", agent, "--model", "ollama/m", *options)


def test_the_options_name_the_tools_that_they_give(tmp_path: Path) -> None:
    given = ToolkitOptions(tmp_path, write=True, shell=True, network=True).tools()
    assert {tool.name for tool in given} == OPTIONS_OF_TOOLS.keys()
    few = {tool.name for tool in ToolkitOptions(tmp_path).tools()}
    assert few == {name for name, options in OPTIONS_OF_TOOLS.items() if options == "--tools DIR"}


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
    assert result.stderr == "note: a call of Write was not approved; --yes Write approves them\n"
    assert not (code / "b.txt").exists()
    result = run(kantan_agents, serve, reply, *options, "--yes", "Write", "--json")
    assert "did not approve" not in json.loads(result.stdout)["result"]["final_output"]
    assert (code / "b.txt").read_text() == "new\n" and result.stderr == ""


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
    ],
)
def test_a_wrong_option_is_an_error(
    kantan_agents: Any, code: Path, options: tuple[str, ...], message: str
) -> None:
    result = kantan_agents("run", "Go.", "--agent", "reader", *options)
    is_one_error(result, f"[E75] Invalid option {message}")


def test_a_person_runs_a_tool_of_the_toolkit_as_a_command(kantan_agents: Any, code: Path) -> None:
    result = kantan_agents("run", "/Read a.txt", "--tools", "code", "--no-record")
    assert result.code == 0 and "a secret number: 42" in result.stdout
