"""Tools of MCP servers are chosen from like local ones."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest
from agents import RunContextWrapper, ToolSearchTool

from kantan_agents import Agent, ToolRetrieval
from kantan_agents.testing import OfflineServer, ScriptedToolCall
from kantan_agents.tools.retrieval import ToolDocument
from tests.tools.retrieval.conftest import (
    FRUIT,
    Saying,
    calling,
    finding,
    fruit_agent,
    fruit_tools,
    outputs,
    shown,
    tool,
)
from tests.tools.retrieval.servers import Server


def garden(name: str = "garden", **options: Any) -> Server:
    """Return a server with a tool for each kind of fruit."""
    return Server(name, {fruit: f"Peels a {fruit}." for fruit in FRUIT}, **options)


def served_agent(model: Any, *servers: Server, tools: Any = (), **options: Any) -> Agent:
    return fruit_agent(model, tools=tools, mcp_servers=list(servers or [garden()]), **options)


async def test_the_tools_of_a_server_that_fit_the_input_are_shown() -> None:
    model = calling("apple")
    server = garden()
    await served_agent(model, server).run_async("an apple")
    assert shown(model)[0] == ["find_tools", "apple"]
    assert server.calls == ["apple"]
    assert "garden did apple" in str(outputs(model))


async def test_local_tools_and_those_of_servers_are_found_together() -> None:
    model = calling(finding("melon"), "melon")
    server = garden()
    server.tools.pop("apple")
    await served_agent(model, server, tools=[tool("apple", "Peels an apple.")]).run_async("an apple")
    assert shown(model) == [["find_tools", "apple"], *[["find_tools", "apple", "melon"]] * 2]
    assert server.calls == ["melon"]


async def test_all_tools_are_shown_if_they_are_few() -> None:
    model = calling()
    await served_agent(model, Server("garden", ["fig", "plum"])).run_async("an apple")
    assert shown(model) == [["fig", "plum"]]


async def test_an_unshown_tool_of_a_server_is_not_run_but_shown_from_then_on() -> None:
    model = calling("melon", "melon")
    server = garden()
    await served_agent(model, server).run_async("an apple")
    assert "parameters were not shown to you" in outputs(model)[0]
    assert server.calls == ["melon"]
    assert shown(model)[1] == ["find_tools", "apple", "melon"]


async def test_a_denied_tool_of_a_server_is_neither_found_nor_named() -> None:
    model = calling(finding("melon"), "melon", "stone")
    server = garden()
    await served_agent(model, server).run_async("an apple", {"tool_rules": {"deny": ["mcp__garden__melon"]}})
    assert outputs(model)[0].startswith("No tool matches")
    assert outputs(model)[1].startswith("[kantan-agents][E8] Tool is not allowed: melon")
    assert "melon" not in outputs(model)[2]
    assert server.calls == []


@pytest.mark.parametrize("entry", ["melon", "mcp__garden__melon", "mcp__garden__me*"])
async def test_always_names_tools_of_servers_as_rules_do(entry: str) -> None:
    model = calling()
    await served_agent(model, always=[entry]).run_async("an apple")
    assert shown(model) == [["find_tools", "melon", "apple"]]


async def test_an_entry_of_always_that_no_server_offers_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    agent = served_agent(calling(), always=["stone"])
    for _ in range(2):
        with caplog.at_level(logging.WARNING, "kantan_agents.retrieval"):
            agent.sdk_agent.model = calling()
            await agent.run_async("an apple")
    assert [record.getMessage() for record in caplog.records].count("always_names_no_tool") == 1


async def test_the_index_is_made_again_only_when_the_servers_list_other_tools() -> None:
    made: list[list[str]] = []

    class Counting(Saying):
        def index(self, documents: Sequence[ToolDocument]) -> Counting:
            made.append([document.name for document in documents])
            super().index(documents)
            return self

    server = garden()
    agent = served_agent(calling("apple"), server, retriever=Counting(["apple", "kiwi"]))
    await agent.run_async("an apple")
    server.tools["kiwi"] = "Peels a kiwi."
    agent.sdk_agent.model = model = calling()
    await agent.run_async("a kiwi")
    assert made == [list(FRUIT), [*FRUIT, "kiwi"]]
    assert shown(model) == [["find_tools", "apple", "kiwi"]]


async def test_a_tool_that_a_server_withdraws_is_no_longer_shown() -> None:
    server = garden()
    model = calling("apple", "pear")
    server.withdraws_called = True
    await served_agent(model, server).run_async("an apple or a pear")
    assert [set(names) - {"find_tools"} for names in shown(model)] == [{"apple", "pear"}, {"pear"}, set()]


async def test_two_runs_with_the_same_choice_send_the_same_tools() -> None:
    bodies = []
    with OfflineServer(["done"] * 2) as offline:
        agent = served_agent(offline.bundle(), garden(), tools=fruit_tools()[:2])
        for _ in range(2):
            await agent.run_async("a melon")
        bodies = [request.body["tools"] for request in offline.requests]
    assert bodies[0] == bodies[1]
    assert [one["name"] for one in bodies[0]] == ["find_tools", "melon"]


async def test_prefixed_names_are_chosen_from() -> None:
    model = calling("mcp_garden__apple")
    server = garden()
    tools = [*fruit_tools(), tool("mcp_garden__fig", "A local namesake.")]
    agent = served_agent(model, server, tools=tools, mcp_config={"include_server_in_tool_names": True})
    await agent.run_async("an apple, of the garden")
    assert "mcp_garden__apple" in shown(model)[0]
    assert server.calls == ["apple"]
    names = [one.name for one in await agent.sdk_agent.get_mcp_tools(RunContextWrapper({}))]
    assert len(names) == len(FRUIT)
    assert "mcp_garden__fig" not in names  # the SDK gives it another name


async def test_select_tools_lists_the_servers() -> None:
    agent = served_agent(calling())
    assert (await agent.select_tools("an apple")).shown == ["apple"]
    denied = {"tool_rules": {"deny": ["mcp__garden__*"]}}
    assert (await agent.select_tools("an apple", denied)).shown == []


async def test_openai_searches_the_tools_of_servers_too() -> None:
    with OfflineServer([ScriptedToolCall("apple"), "done"]) as offline:
        server = garden()
        agent = Agent(
            "a",
            "x",
            model=offline.bundle("gpt-5.4"),
            mcp_servers=[server],
            tool_retrieval=ToolRetrieval(always=["mcp__garden__apple"], provider_search=True),
        )
        await agent.run_async("an apple")
    sent = offline.requests[0].body["tools"]
    assert [one["name"] for one in sent if one.get("defer_loading")] == list(FRUIT[1:])
    assert [one["type"] for one in sent if one["type"] != "function"] == ["tool_search"]
    assert server.calls == ["apple"]
    assert not any(isinstance(one, ToolSearchTool) for one in agent.sdk_agent.tools)
