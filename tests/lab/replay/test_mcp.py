"""Tools of MCP servers: the servers are neither started nor asked in a replay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents.mcp import MCPServer, MCPServerStdio
from mcp.types import GetPromptResult, ListPromptsResult, Prompt, PromptMessage, TextContent

from kantan_agents import Agent, SlashCommands, replay_async
from kantan_agents.errors import ReplayDifferenceError
from kantan_agents.testing import ScriptedToolCall as Call
from tests.lab.replay.kinds_of_runs import scripted, tool
from tests.lab.replay.taping import Case, Tapes
from tests.programs import Preloaded
from tests.tools.mcp.offering import Offering

SERVER = Path(__file__).with_name("file_server.py")


def reading(server: MCPServer, live: bool) -> Agent[Any]:
    return Agent("a", "Hi", model=scripted(live, Call("read", {"path": "x"}), "ok"), mcp_servers=[server])


def absent() -> MCPServer:
    """Return a server whose process could not even start."""
    return MCPServerStdio({"command": "/nowhere/at/all"}, name="files")


async def test_a_server_process_is_not_contacted(tapes: Tapes, tmp_path: Path, preloaded: Preloaded) -> None:
    log = tmp_path / "log"
    command, *arguments = preloaded.command(SERVER, log)
    parameters: Any = {"command": command, "args": arguments}
    async with MCPServerStdio(parameters, name="files", client_session_timeout_seconds=60) as server:
        plain = await tapes.record(Case(reading(server, live=True)))
        streamed = await tapes.record(Case(reading(server, live=True)), streamed=True)
    assert log.read_text() == "x\nx\n"
    for taped in (plain, streamed):
        assert taped.recording.root.tool_calls[0].tool.server == "files"
        assert (await tapes.replays(taped, reading(absent(), live=False))).output == "ok"
    assert log.read_text() == "x\nx\n"


async def test_a_server_is_not_asked_for_its_prompts(tapes: Tapes) -> None:
    asked: list[str] = []

    class Noting(Offering):
        async def list_prompts(self) -> Any:
            asked.append("prompts")
            return ListPromptsResult(prompts=[Prompt(name="greet")])

        async def get_prompt(self, name: str, arguments: Any = None) -> Any:
            asked.append(name)
            said = PromptMessage(role="user", content=TextContent(type="text", text="Say hello."))
            return GetPromptResult(messages=[said])

    def agent(live: bool) -> Agent[Any]:
        commands = SlashCommands({"allow": ["*"]})
        model, server = scripted(live, "ok"), Noting("files", "read")
        return Agent("a", "Hi", model=model, tools=[tool("t1")], mcp_servers=[server], middleware=[commands])

    for given in ("/mcp__files__greet", "/mcp__files__nothing"):
        taped = await tapes.record(Case(agent(live=True), given))
        assert "prompts" in asked
        asked.clear()
        await replay_async(taped.recording, agent(live=False))
        assert not asked


@pytest.mark.parametrize("on_failure", ["continue", "raise"])
async def test_a_server_that_has_failed_fails_again(tapes: Tapes, on_failure: Any) -> None:
    server = Offering("files", "read")
    server.fails = True

    def agent(server: MCPServer, live: bool) -> Agent[Any]:
        return Agent("a", "Hi", model=scripted(live, "ok"), mcp_servers=[server], on_mcp_failure=on_failure)

    taped = await tapes.record(Case(agent(server, live=True)))
    assert (taped.context is None) == (on_failure == "raise")
    await tapes.replays(taped, agent(absent(), live=False))


async def test_a_server_that_the_recorded_run_did_not_have(tapes: Tapes) -> None:
    taped = await tapes.record(Case(reading(Offering("files", "read"), live=True)))
    with pytest.raises(ReplayDifferenceError, match=r"the MCP server 'other': tools added"):
        await replay_async(taped.recording, reading(Offering("other", "read"), live=False))
