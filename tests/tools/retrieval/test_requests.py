"""Requests to a provider: tool definitions that do not change by a byte, and OpenAI's own search."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from kantan_agents import Agent, ToolRetrieval
from kantan_agents.errors import UnknownRetrievedToolError
from kantan_agents.testing import OfflineServer, ScriptedToolCall
from tests.tools.retrieval.conftest import fruit_agent, fruit_tools


def definitions(server: OfflineServer) -> list[list[str]]:
    """Return the tools of each request, each as the text it was sent as."""
    return [[json.dumps(tool) for tool in request.body["tools"]] for request in server.requests]


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_tools_are_only_appended_and_earlier_bytes_do_not_change(api: str) -> None:
    script: list[Any] = [
        [ScriptedToolCall("find_tools", {"query": "lemon"})],
        [ScriptedToolCall("lemon", {})],
        [ScriptedToolCall("find_tools", {"query": "fig"}), ScriptedToolCall("apple", {})],
        "done",
    ]
    with OfflineServer(script) as server:
        await fruit_agent(server.bundle(api=api), always=["pear"]).run_async("an apple")
        sent = definitions(server)
    assert [len(tools) for tools in sent] == [3, 4, 4, 5]
    for before, after in pairwise(sent):
        assert after[: len(before)] == before


async def test_the_same_choice_gives_the_same_bytes_in_another_run() -> None:
    with OfflineServer(["x", "x"]) as server:
        agent = fruit_agent(server.bundle())
        await agent.run_async("an apple and a melon")
        await agent.run_async("a melon, or rather an apple")
        first, second = definitions(server)
    assert first == second


async def test_the_search_can_be_left_to_openai() -> None:
    with OfflineServer(["x"]) as server:
        agent = Agent(
            "a",
            "x",
            tools=fruit_tools(),
            model=server.bundle("gpt-5.4"),
            tool_retrieval=ToolRetrieval(always=["fig"], provider_search=True),
        )
        await agent.run_async("an apple", {"tool_rules": {"deny": ["melon"]}})
        tools = server.requests[0].body["tools"]
    deferred = {tool.get("name"): tool.get("defer_loading") for tool in tools}
    assert deferred.pop("fig") in (None, False)
    assert deferred.pop(None) is None
    assert {"type": "tool_search"} in tools
    assert set(deferred) == {"apple", "pear", "plum", "cherry", "lemon", "quince"}
    assert set(deferred.values()) == {True}


def test_unknown_names_are_errors_with_openais_search_too() -> None:
    with pytest.raises(UnknownRetrievedToolError):
        retrieval = ToolRetrieval(always=["figg"], provider_search=True)
        Agent("a", "x", tools=fruit_tools(), tool_retrieval=retrieval)
