"""What tools of real servers return reaches the model, the user of a command, the history and the trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from agents.mcp import MCPServerStdio

from kantan_agents import Agent, SlashCommands
from kantan_agents.testing import OfflineServer, ScriptedToolCall
from tests.conftest import TraceDB
from tests.tools.mcp.replies import outputs_in

LONG = ("trigger-long-running-operation", {"duration": 0.05, "steps": 2})


async def run(agent: Agent, text: str, *, streamed: bool) -> dict[str, Any]:
    if not streamed:
        return await agent.run_async(text)
    async with agent.stream(text) as stream:
        async for _ in stream:
            pass
    return stream.context


def is_reference(parts: list[dict[str, Any]]) -> bool:
    return [part["type"] for part in parts] == [
        "input_text"
    ] * 3 and "demo://resource/dynamic/text/1" in parts[1]["text"]


CALLS: list[tuple[str, dict[str, Any], Callable[[list[dict[str, Any]]], bool]]] = [
    ("echo", {"message": "hi"}, lambda parts: parts == [{"type": "input_text", "text": "Echo: hi"}]),
    (
        "get-tiny-image",
        {},
        lambda parts: [part["type"] for part in parts] == ["input_text", "input_image", "input_text"],
    ),
    ("get-resource-reference", {}, is_reference),
    ("get-resource-links", {"count": 1}, lambda parts: '"resource_link"' in parts[1]["text"]),
    (
        "get-structured-content",
        {"location": "New York"},
        lambda parts: '"temperature":33' in parts[0]["text"],
    ),
    (
        "get-annotated-message",
        {"messageType": "error"},
        lambda parts: parts[0]["text"] == "Error: Operation failed",
    ),
    (*LONG, lambda parts: "completed" in parts[0]["text"]),
]


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
async def test_the_model_receives_each_kind_of_content(everything: MCPServerStdio, streamed: bool) -> None:
    steps = [[ScriptedToolCall(name, arguments) for name, arguments, _ in CALLS], "done"]
    with OfflineServer(steps) as server:
        agent = Agent("a", "x", model=server.bundle(), mcp_servers=[everything])
        context = await run(agent, "go", streamed=streamed)
    assert context["result"].final_output == "done"
    outputs = outputs_in(server.requests[1])
    for (name, _, is_right), output in zip(CALLS, outputs, strict=True):
        assert is_right(output), (name, output)


async def test_an_error_of_a_server_is_an_answer_to_the_model(everything: MCPServerStdio) -> None:
    steps = [ScriptedToolCall("get-sum", {"a": "one", "b": 2}), "sorry"]
    with OfflineServer(steps) as server:
        agent = Agent("a", "x", model=server.bundle(), mcp_servers=[everything])
        context = await agent.run_async("go")
    assert context["result"].final_output == "sorry"
    (output,) = outputs_in(server.requests[1])
    assert "invalid" in str(output).lower()


COMMANDS = {
    "/echo hi": "Echo: hi",
    "/get-structured-content location=Chicago": '{"temperature":',
    "/get-tiny-image": "Here's the image you requested:\n[image image/png]\nThe image above is the MCP logo.",
    "/get-resource-reference resourceType=Text resourceId=1": "\nResource 1: This is a plaintext resource",
    "/get-resource-reference resourceType=Blob resourceId=1": "\n[file demo://resource/dynamic/blob/1 ",
    "/get-resource-links 1": "\n[resource demo://resource/dynamic/blob/1 Blob Resource 1]",
    '/gzip-file-as-resource name=a.gz data="data:text/plain,hi" outputType=resource': (
        "[file demo://resource/session/a.gz application/gzip]"
    ),
}


@pytest.mark.parametrize("line", COMMANDS)
async def test_a_command_answers_with_the_text_of_the_content(everything: MCPServerStdio, line: str) -> None:
    agent = Agent("a", "x", mcp_servers=[everything], middleware=[SlashCommands({})])
    context = await agent.run_async(line)
    assert COMMANDS[line] in context["result"].final_output
    assert '"type"' not in context["result"].final_output
    assert context["history"][-1]["text"] == context["result"].final_output


async def test_a_run_that_stops_at_a_tool_of_a_server_keeps_its_text(
    everything: MCPServerStdio, traces: TraceDB
) -> None:
    with OfflineServer([ScriptedToolCall("echo", {"message": "hi"})]) as server:
        agent = Agent(
            "a",
            "x",
            model=server.bundle(),
            mcp_servers=[everything],
            tool_use_behavior="stop_on_first_tool",
        )
        context = await agent.run_async("go")
    assert context["history"][-1] == {"role": "assistant", "text": "Echo: hi"}
    assert "Echo: hi" in str(traces.final_span().output)
