"""``explain_tool`` about MCP servers: what a server has listed is known, anything else is not guessed."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from agents import HostedMCPTool, RunContextWrapper
from agents.mcp import MCPServerStdio, create_static_tool_filter
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent, explain
from kantan_agents.testing import ScriptedModel, assistant_message
from kantan_agents.tools.facts import facts_of_listed
from tests.programs import Preloaded
from tests.tools.test_names_of_servers import PREFIXED, PROGRAM
from tests.tools.test_server_names import Server, local

DENIED = {"tool_rules": {"deny": ["mcp__files__delete"]}}


def real_server(preloaded: Preloaded, tmp_path: Path, **options: Any) -> MCPServerStdio:
    command, *arguments = preloaded.command(PROGRAM, "stdio")
    params: Any = {"command": command, "args": arguments, "env": {"CALLS": str(tmp_path / "calls.txt")}}
    return MCPServerStdio(params, name="files", client_session_timeout_seconds=30, **options)


def agent_with(*servers: Any, **options: Any) -> Agent:
    model = ScriptedModel([[assistant_message("Done.")]] * 3)
    return Agent("a", "x", model=model, mcp_servers=servers, tool_providers=None, **options)


NAMES = ["delete", "mcp__files__delete", "mcp_files__delete"]


@pytest.mark.parametrize("options", [{}, PREFIXED], ids=["own names", "prefixed names"])
async def test_the_tools_of_a_real_server_are_known_once_it_has_listed_them(
    options: dict[str, Any], tmp_path: Path, preloaded: Preloaded
) -> None:
    async with real_server(preloaded, tmp_path) as server:
        agent = agent_with(server, **options)
        for name in NAMES:
            before = agent.explain_tool(name, context=DENIED)
            assert (before.allowed, before.rule) == (False, "deny: mcp__files__delete")
            assert before.unknown is not None
        await agent.run_async("Go")
        shown = [*NAMES, *(tool.name for tool in await agent.sdk_agent.get_mcp_tools(RunContextWrapper({})))]
        for name in shown:
            known = agent.explain_tool(name, context=DENIED)
            assert (known.allowed, known.unknown) == ("read" in name, None)
        limits = {"tool_rules": {"params": {"mcp__files": {"limit": {"maximum": 5}}}}}
        assert not agent.explain_tool("mcp__files__read", {"path": "x"}, limits).allowed  # the default is 10
        assert agent.explain_tool("mcp__files__read", {"path": "x", "limit": 2}, limits).allowed
        # Another agent knows them from the server's own memory.
        assert agent_with(server).explain_tool("delete", context=DENIED).unknown is None


async def test_the_async_variant_asks_the_server_first(
    tmp_path: Path, preloaded: Preloaded, caplog: pytest.LogCaptureFixture
) -> None:
    server = real_server(preloaded, tmp_path)
    agent = agent_with(server, Server("wiki", "page"))
    early = await agent.explain_tool_async("mcp__files__read")
    assert early.allowed
    assert "MCP server 'files' has listed no tools so far" in str(early.unknown)
    assert "tools of an MCP server cannot be listed" in caplog.text
    assert (await agent.explain_tool_async("mcp__wiki__page")).unknown is None  # the other one is known
    async with server:
        known = await agent.explain_tool_async("mcp__files__delete", context=DENIED)
        assert (known.tool, known.allowed, known.unknown) == ("delete", False, None)


async def test_a_server_that_is_named_as_a_whole_is_allowed_only_if_all_its_tools_are() -> None:
    agent = agent_with(Server("files", "read", "delete"))
    for name in ("mcp__files", "mcp__files__*"):
        before = agent.explain_tool(name, context=DENIED)
        assert (before.allowed, before.rule, before.tools) == (False, "deny: mcp__files__delete", ())
        assert str(before.unknown).endswith("the rule may refuse one of its tools")
        assert agent.explain_tool(name).allowed
        assert agent.explain_tool(name, context={"tool_rules": {"deny": ["mcp__other"]}}).allowed
        assert not agent.explain_tool(name, context={"tool_rules": {"deny": ["delete"]}}).allowed
        assert not agent.explain_tool(name, context={"tool_rules": {"allow": ["mcp__files__read"]}}).allowed
        assert agent.explain_tool(name, context={"tool_rules": {"allow": [name]}}).allowed
    await agent.run_async("Go")
    whole = agent.explain_tool("mcp__files", context=DENIED)
    assert (whole.tool, whole.allowed, whole.unknown) == ("mcp__files", False, None)
    assert [(one.tool, one.allowed) for one in whole.tools] == [("read", True), ("delete", False)]
    assert "  tool delete: denied\n" in str(whole)
    assert agent.explain_tool("mcp__files", context={"tool_rules": {"allow": ["mcp__files"]}}).allowed


async def test_a_name_that_two_servers_use_is_allowed_only_if_both_may_be_called() -> None:
    agent = agent_with(Server("files", "delete"), Server("wiki", "delete"), **PREFIXED)
    await agent.run_async("Go")
    both = agent.explain_tool("delete", context=DENIED)
    assert not both.allowed
    assert [one.allowed for one in both.tools] == [False, True]
    assert agent.explain_tool("mcp_wiki__delete", context=DENIED).allowed


async def test_a_local_tool_of_the_name_is_meant_before_a_servers() -> None:
    agent = agent_with(Server("files", "delete"), tools=[local("delete")])
    context = {"tool_rules": {"deny": ["mcp__files"]}}
    answer = agent.explain_tool("delete", context=context)
    assert (answer.allowed, answer.unknown) == (True, None)


async def test_a_name_that_nothing_has_says_so() -> None:
    agent = agent_with(Server("files", "delete"), tools=[local("bash")])
    await agent.run_async("Go")
    for name, missing in (("delte", "tool with"), ("mcp__fils__delete", "MCP server for")):
        answer = agent.explain_tool(name, context=DENIED)
        assert answer.unknown == f"the agent itself has no {missing} the name {name!r}"


async def test_tools_that_a_fixed_filter_hides_are_not_among_the_known(
    tmp_path: Path, preloaded: Preloaded
) -> None:
    only = create_static_tool_filter(blocked_tool_names=["delete"])
    async with real_server(preloaded, tmp_path, tool_filter=only) as server:
        await server.list_tools()
        agent = agent_with(server)
        assert agent.explain_tool("mcp__files", context=DENIED).allowed
        assert agent.explain_tool("delete").unknown is not None


def hosted(**config: Any) -> Any:
    given: Any = {"type": "mcp", "server_label": "wiki", "server_url": "http://127.0.0.1:9/", **config}
    return HostedMCPTool(tool_config=given)


def test_tools_of_hosted_servers_are_known_if_the_agent_names_them() -> None:
    agent = agent_with(tools=[hosted(allowed_tools=["read", "delete"])])
    rules = {"tool_rules": {"deny": ["mcp__wiki__delete"]}}
    for name, allowed in (("delete", False), ("mcp__wiki__read", True), ("mcp__wiki", False)):
        answer = agent.explain_tool(name, context=rules)
        assert (answer.allowed, answer.unknown) == (allowed, None)
    unnamed = agent_with(tools=[hosted()])
    for name, allowed in (("delete", False), ("mcp__wiki__read", True), ("mcp__wiki", False)):
        answer = unnamed.explain_tool(name, context=rules)
        assert answer.allowed is allowed
        assert "hosted MCP server 'wiki' has no allowed_tools" in str(answer.unknown)


async def test_a_converted_tool_is_explained_among_the_tools_of_the_agent() -> None:
    from agents.mcp import MCPUtil

    server = Server("files", "find")
    (listed,) = await server.list_tools()
    tool = MCPUtil.to_function_tool(listed, server, convert_schemas_to_strict=False)
    agent = agent_with(server, tools=[local("find")], **PREFIXED)
    allowed = {"tool_rules": {"allow": ["find"]}}
    assert not agent.explain_tool(tool, context=allowed).allowed  # the entry means the local tool
    assert agent.explain_tool("find", context=allowed).allowed


async def test_an_agent_that_has_listed_its_servers_can_be_copied() -> None:
    agent = agent_with(Server("files", "delete"))
    await agent.run_async("Go")
    assert not copy.deepcopy(agent).explain_tool("delete", context=DENIED).allowed


@pytest.mark.parametrize(
    ("name", "rules", "allowed", "rule"),
    [
        ("mcp__github__push", {"deny": ["mcp__github"]}, False, "deny: mcp__github"),
        ("mcp__github__push", {"deny": ["push"]}, False, "deny: push"),
        ("mcp__a__b__c", {"deny": ["mcp__a__b"]}, False, "deny: mcp__a__b"),
        ("mcp__github__push", {"allow": ["mcp__github"]}, True, "allow: mcp__github"),
        ("mcp__github__push", {"allow": ["mcp__github__*"]}, True, "allow: mcp__github__*"),
        ("mcp__github__push", {"allow": ["push"]}, True, "allow: push"),
        ("mcp__github__push", {"allow": ["mcp__gitlab"]}, False, "allow has no entry for it"),
        ("mcp__github", {"allow": ["mcp__github__push"]}, False, "allow has no entry for it"),
        ("mcp__github", {"deny": ["mcp__github__*"]}, False, "deny: mcp__github__*"),
    ],
)
def test_a_name_alone_is_read_as_that_of_a_server(
    name: str, rules: dict[str, Any], allowed: bool, rule: str
) -> None:
    answer = explain(name, tool_rules=rules, tool_providers=None)
    assert (answer.tool, answer.allowed, answer.rule) == (name, allowed, rule)


def test_a_name_alone_that_may_be_a_denied_tool_of_a_server_says_so() -> None:
    for denied in ("mcp__files__delete", "mcp__*__delete", "mcp__files", "mcp__files__d*(x)"):
        answer = explain("delete", tool_rules={"deny": [denied]}, tool_providers=None)
        assert answer.allowed
        assert answer.unknown == f"if 'delete' is a tool of an MCP server, deny: {denied} denies it"
    assert explain("read", tool_rules={"deny": ["mcp__files__delete"]}, tool_providers=None).unknown is None


entries = st.sampled_from(
    [
        *("delete", "d*", "*", "mcp__files", "mcp__files__*", "mcp__files__delete", "mcp__*__delete"),
        *("mcp__wiki", "mcp_files__delete", "mcp__fi*", "read", "mcp__files__re?d", "mcp__files_x", "*e*"),
    ]
)


@given(
    allow=st.none() | st.lists(entries, max_size=2),
    deny=st.lists(entries, max_size=2),
    name=st.sampled_from([*NAMES, "read", "mcp__files__read"]),
    prefixed=st.booleans(),
)
def test_an_unlisted_tool_is_explained_as_it_is_decided_once_it_is_listed(
    allow: list[str] | None, deny: list[str], name: str, prefixed: bool
) -> None:
    import asyncio

    context = {"tool_rules": {"allow": allow, "deny": deny}}
    agent = agent_with(Server("files", "read", "delete"), **(PREFIXED if prefixed else {}))
    guessed = agent.explain_tool(name, context=context)
    whole = agent.explain_tool("mcp__files", context=context)
    tools = asyncio.run(agent.sdk_agent.get_mcp_tools(RunContextWrapper({})))
    known = agent.explain_tool(name, context=context)
    assert guessed.allowed == known.allowed
    assert known.unknown is None
    (tool,) = [tool for tool in tools if name in facts_of_listed(tool).names]
    assert agent.explain_tool(tool, context=context).allowed == known.allowed
    assert known.allowed or not whole.allowed, "no server is said to be allowed that has a refused tool"
