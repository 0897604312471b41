"""A real server for files under tool rules, and with tool retrieval."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents.mcp import MCPServerStdio

from kantan_agents import Agent, ToolRetrieval
from kantan_agents.testing import OfflineServer, ScriptedToolCall
from tests.tools.mcp.replies import outputs_in


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
async def test_rules_limit_paths_and_tools(files: MCPServerStdio, folder: Path, streamed: bool) -> None:
    (folder / "notes.txt").write_text("milk", encoding="utf-8")
    (folder / "keys.pem").write_text("secret", encoding="utf-8")
    rules: dict[str, Any] = {
        "deny": ["mcp__files__write_file", "mcp__files__move_*"],
        "params": {"mcp__files__read_*": {"path": {"pattern": "[.]txt$"}}},
    }
    calls = [
        ScriptedToolCall("read_text_file", {"path": str(folder / "notes.txt")}),
        ScriptedToolCall("read_text_file", {"path": str(folder / "keys.pem")}),
        ScriptedToolCall("write_file", {"path": str(folder / "new.txt"), "content": "x"}),
        ScriptedToolCall("read_text_file", {"path": str(folder.parent / "other.txt")}),
    ]
    with OfflineServer([calls, "done"]) as offline:
        agent = Agent("a", "x", model=offline.bundle(), mcp_servers=[files])
        if streamed:
            async with agent.stream("go", {"tool_rules": rules}) as stream:
                async for _ in stream:
                    pass
        else:
            await agent.run_async("go", {"tool_rules": rules})
    outputs = list(map(str, outputs_in(offline.requests[1])))
    for expected in (
        "milk",
        "[E15] Tool parameter pattern mismatch",
        "[E8] Tool is not allowed",
        "Access denied",
    ):
        assert len([output for output in outputs if expected in output]) == 1
    assert "secret" not in str(offline.requests[1].input)
    assert not (folder / "new.txt").exists()
    shown = [tool["name"] for tool in offline.requests[0].body["tools"]]
    assert not {"write_file", "move_file"} & set(shown)
    assert "list_directory" in shown


async def test_retrieval_shows_the_tools_of_servers_that_fit(
    files: MCPServerStdio, everything: MCPServerStdio, folder: Path
) -> None:
    (folder / "sub").mkdir(exist_ok=True)
    calls = [
        ScriptedToolCall("find_tools", {"query": "echo a message"}),
        ScriptedToolCall("echo", {"message": "hi"}),
    ]
    with OfflineServer([*calls, "done"]) as offline:
        agent = Agent(
            "a",
            "x",
            model=offline.bundle(),
            mcp_servers=[files, everything],
            tool_retrieval=ToolRetrieval(3, always=["mcp__files__list_allowed_directories"]),
        )
        await agent.run_async("Create a directory", {"tool_rules": {"deny": ["mcp__everything__get-env"]}})
    shown = [[tool["name"] for tool in request.body["tools"]] for request in offline.requests]
    assert shown[0][:2] == ["find_tools", "list_allowed_directories"]
    assert "create_directory" in shown[0]
    assert "echo" not in shown[0]
    assert shown[1][: len(shown[0])] == shown[0]
    assert "echo" in shown[1]
    assert "Echo: hi" in str(outputs_in(offline.requests[2]))
    assert not any("get-env" in str(request.body) for request in offline.requests)
