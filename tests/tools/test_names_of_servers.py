"""One naming scheme for MCP servers and their tools: each spelling counts, wherever a rule may be written."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import HostedMCPTool, RunContextWrapper
from agents.mcp import MCPServerStdio, MCPUtil
from hypothesis import example, given
from hypothesis import strategies as st
from openai.types.responses.response_output_item import McpApprovalRequest

from kantan_agents import Agent, AgentDefinition, task_tool
from kantan_agents.errors import InvalidToolRulesError
from kantan_agents.middleware import Approve, Budget, pending
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.tool_rules import ToolRules, decide_tool
from kantan_agents.tool_rules.calls import is_call_pattern
from kantan_agents.tools.facts import facts_of_listed
from kantan_agents.tools.server_names import Surroundings, hosted_mcp_facts, safe
from tests.tools.test_server_names import Server, local

PROGRAM = Path(__file__).with_name("mcp_server.py")
PREFIXED: dict[str, Any] = {"mcp_config": {"include_server_in_tool_names": True}}
SPELLINGS = [
    "delete",
    "mcp__my server",
    "mcp__my_server",
    "mcp__my server__*",
    "mcp__my_server__*",
    "mcp__my server__delete",
    "mcp__my_server__delete",
    "mcp_my_server__delete",
]


def real_server(calls: Path) -> MCPServerStdio:
    params: Any = {"command": sys.executable, "args": [str(PROGRAM), "stdio"], "env": {"CALLS": str(calls)}}
    return MCPServerStdio(params, name="my server", cache_tools_list=True, client_session_timeout_seconds=30)


def deleting(shown: str = "delete") -> ScriptedModel:
    call = function_call(shown, {"path": "x"}, call_id="c1")
    return ScriptedModel([[call], [assistant_message("Done.")]])


async def context_of(agent: Agent, context: dict[str, Any], *, streamed: bool) -> Any:
    if not streamed:
        return await agent.run_async("Go", context)
    async with agent.stream("Go", context) as run:
        async for _ in run:
            pass
    return run.context


@pytest.mark.parametrize("options", [{}, PREFIXED], ids=["own names", "prefixed names"])
async def test_each_spelling_names_the_tool_of_a_real_server_wherever_a_rule_is_written(
    options: dict[str, Any], tmp_path: Path
) -> None:
    calls = tmp_path / "calls.txt"
    calls.touch()
    shown = "mcp_my_server__delete" if options else "delete"
    async with real_server(calls) as server:

        def agent(**more: Any) -> Agent:
            given = {"mcp_servers": [server], "tool_providers": None, **options, **more}
            return Agent("a", "x", model=deleting(shown), **given)

        for spelling in SPELLINGS:
            refusing: list[dict[str, Any]] = [
                {"deny": [spelling]},
                {"params": {spelling: {"path": {"maxLength": 0}}}},
                {"deny": [f"{spelling}(x)"]},
            ]
            for rules in refusing:
                await agent().run_async("Go", {"tool_rules": rules})
            await agent(middleware=[Budget(per_tool={spelling: 0})]).run_async("Go")
            for streamed in (False, True):
                waiting = await context_of(agent(middleware=[Approve(spelling)]), {}, streamed=streamed)
                assert [call.tool for call in pending(waiting)] == [shown], spelling
            assert calls.read_text() == "", spelling
            await agent().run_async("Go", {"tool_rules": {"allow": [spelling]}})
            assert calls.read_text() == "delete x\n", spelling
            calls.write_text("")
            for key, allowed in (("deny", False), ("allow", True)):
                context = {"tool_rules": {key: [spelling]}}
                assert agent().explain_tool("delete", context=context).allowed is allowed
                assert agent().explain_tool("mcp__my_server__delete", context=context).allowed is allowed


@pytest.mark.parametrize("entry", ["mcp__my_server", "mcp__my_server__delete"])
async def test_an_agent_file_names_a_server_and_its_tool_in_the_same_way(entry: str) -> None:
    for tools, denied, made in (((entry,), (), ["delete"]), ("*", (entry,), [])):
        server = Server("my server", "delete")
        definition = AgentDefinition(
            name="a", description="b", system_prompt="x", tools=tools, disallowed_tools=denied
        )
        agent = Agent.from_definition(
            definition, model=deleting(), mcp_servers=[server], tool_providers=None, strict=True
        )
        await agent.run_async("Go")
        assert server.called == made


@pytest.mark.parametrize(
    "rules", [{"deny": ["mcp__*"]}, {"deny": ["mcp_server__*"]}, {"deny": ["mcp__server"]}, {"allow": ["d*"]}]
)
async def test_the_tools_of_a_server_without_a_name_do_not_pass_for_local_ones(rules: dict[str, Any]) -> None:
    server = Server("", "delete")
    agent = Agent("a", "x", model=deleting(), mcp_servers=[server], tool_providers=None)
    await agent.run_async("Go", {"tool_rules": rules})
    assert server.called == []


characters = st.sampled_from([*"aB0_- .:/()[]*?!é", "mcp", "__", "git", "hub", "delete"])
server_names = st.lists(characters, min_size=1, max_size=6).map("".join).filter(str.strip)
tool_names = st.lists(characters, min_size=1, max_size=6).map("".join)


def facts(server: str, tool: str, *, hosted: bool, prefixed: bool, around: Surroundings) -> Any:
    if hosted:
        return hosted_mcp_facts(server, tool, around)
    agent = Agent(
        "a",
        "x",
        tools=[local(name) for name in sorted(around.local)],
        mcp_servers=[
            Server(server, tool),
            *(Server(other, f"own{number}") for number, other in enumerate(sorted(around.servers))),
        ],
        tool_providers=None,
        **(PREFIXED if prefixed else {}),
    )
    tools = asyncio.run(agent.sdk_agent.get_mcp_tools(RunContextWrapper({})))
    return facts_of_listed(tools[0])


def readable(entry: str) -> bool:
    """Whether tool rules take an entry as the name of a tool; an error reports any other."""
    try:
        ToolRules.parse({"deny": [entry]})
    except InvalidToolRulesError:
        return False
    return True


@given(server=server_names, tool=tool_names, hosted=st.booleans(), prefixed=st.booleans())
@example(server="my server", tool="read file", hosted=False, prefixed=True)
@example(server="files (old)", tool="read", hosted=False, prefixed=False)
@example(server="[team] files", tool="read", hosted=True, prefixed=False)
@example(server="https://u:p@host/mcp?key=1", tool="read", hosted=False, prefixed=True)
def test_each_spelling_of_any_server_and_tool_denies_the_tool(
    server: str, tool: str, hosted: bool, prefixed: bool
) -> None:
    known = facts(server, tool, hosted=hosted, prefixed=prefixed, around=Surroundings())
    assert known.name == tool or not hosted
    for name in (server, safe(server)):
        for entry in (
            f"mcp__{name}",
            f"mcp__{name}__*",
            f"mcp__{name}__{tool}",
            f"mcp__{name}__{safe(tool)}",
            tool,
            known.name,
        ):
            if readable(entry) and (entry.startswith("mcp__") or not is_call_pattern(entry)):
                assert not decide_tool(ToolRules.parse({"deny": [entry]}), known).allowed, entry
    assert readable(f"mcp__{safe(server)}__*"), "at least the safe spelling can always be written"


few_servers = st.lists(
    st.sampled_from(["a", "b", "a__b", "a b", "a_b", "a.b", "a__b__c", "git hub", "git_hub", "_a", "a_"]),
    min_size=2,
    max_size=4,
    unique=True,
)
few_tools = st.sampled_from(["b", "c", "b__c", "mcp__b__c", "mcp_b__c", "read", "c d", "c_d", "*", "__c"])


@given(
    servers=few_servers,
    tool=few_tools,
    written_for=st.integers(0, 3),
    entry=st.sampled_from(["{}", "{}__*", "{}__c", "{}__read", "{}__c_d"]),
    is_safe=st.booleans(),
    hosted=st.booleans(),
)
@example(servers=["a", "a__b"], tool="b", written_for=1, entry="{}", is_safe=False, hosted=False)
@example(servers=["a", "a__b"], tool="b__c", written_for=1, entry="{}__*", is_safe=False, hosted=False)
@example(servers=["git hub", "git_hub"], tool="c", written_for=1, entry="{}", is_safe=False, hosted=True)
def test_no_name_that_a_server_chooses_widens_what_another_server_is_allowed(
    servers: list[str], tool: str, written_for: int, entry: str, is_safe: bool, hosted: bool
) -> None:
    trusted, claimant = servers[written_for % len(servers)], servers[0]
    if trusted == claimant:
        return
    if is_safe and safe(trusted) in map(safe, (server for server in servers if server != trusted)):
        return  # the operator has written a name that several servers share
    allow = entry.format(f"mcp__{safe(trusted) if is_safe else trusted}")
    around = Surroundings(servers=frozenset(servers[1:]) if not hosted else frozenset(servers))
    known = facts(claimant, tool, hosted=hosted, prefixed=False, around=around)
    assert not decide_tool(ToolRules.parse({"allow": [allow]}), known).allowed, known.origin


@contextmanager
def warnings_of(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    found: list[str] = []
    with caplog.at_level(logging.WARNING, "kantan_agents"):
        yield found
    for record in caplog.records:
        found += getattr(record, "problems", [])


ANSWER = [[assistant_message("Done.")]] * 4


@pytest.mark.parametrize("entry", ["mcp__fils", "mcp__fils__*", "mcp__fils__delete", "mcp__fils(x)"])
@pytest.mark.parametrize("key", ["deny", "allow", "params"])
async def test_an_entry_for_a_server_that_is_nearly_one_of_the_agents_says_so_and_is_an_error_if_strict(
    entry: str, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    if key == "params" and is_call_pattern(entry):
        entry = "mcp__fils__d*"
    rules = {key: {entry: {"path": {"maxLength": 1}}} if key == "params" else [entry]}
    options: dict[str, Any] = {"mcp_servers": [Server("files", "delete")], "tool_providers": None}
    with warnings_of(caplog) as problems:
        await Agent("a", "x", model=ScriptedModel(ANSWER), **options).run_async("Go", {"tool_rules": rules})
    message = f"{key}: {entry!r} names no MCP server of agent 'a'; the nearest name is 'mcp__files'"
    assert problems == [message]
    strict = Agent("a", "x", model=ScriptedModel(ANSWER), strict=True, **options)
    with pytest.raises(InvalidToolRulesError) as caught:
        await strict.run_async("Go", {"tool_rules": rules})
    assert message in str(caught.value)


async def test_a_wrong_server_is_reported_while_the_tools_of_another_are_unknown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hosted = HostedMCPTool(
        tool_config={"type": "mcp", "server_label": "wiki", "server_url": "http://127.0.0.1:9/"}
    )
    empty = Server("files")  # it lists nothing so far
    options: dict[str, Any] = {"tools": [hosted], "mcp_servers": [empty], "tool_providers": None}
    rules = {"deny": ["mcp__fils__delete", "mcp__files", "mcp__files__delete", "mcp__wiki__*", "delete"]}
    with warnings_of(caplog) as problems:
        await Agent("a", "x", model=ScriptedModel(ANSWER), **options).run_async("Go", {"tool_rules": rules})
    assert [problem.partition(" names")[0] for problem in problems] == ["deny: 'mcp__fils__delete'"]


async def test_an_unknown_server_with_another_name_stays_a_warning_for_a_strict_agent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    agent = Agent(
        "a",
        "x",
        model=ScriptedModel(ANSWER),
        mcp_servers=[Server("files", "read")],
        tool_providers=None,
        strict=True,
    )
    with warnings_of(caplog) as problems:
        await agent.run_async("Go", {"tool_rules": {"deny": ["mcp__github"]}})
    assert problems == [
        "deny: 'mcp__github' names no MCP server of agent 'a'; the servers it can reach: 'files'"
    ]


@pytest.mark.parametrize("denied", ["mcp__fils", "Baash", "mcp__fils__delete(x)"])
async def test_a_file_that_nearly_denies_a_tool_says_so_and_is_an_error_if_strict(
    denied: str, caplog: pytest.LogCaptureFixture
) -> None:
    definition = AgentDefinition(
        name="a", description="b", system_prompt="x", disallowed_tools=[denied, "WebFetch", "Task"]
    )
    options: dict[str, Any] = {
        "tools": [local("bash")],
        "mcp_servers": [Server("files", "delete")],
        "tool_providers": None,
        "model": ScriptedModel(ANSWER),
    }
    with warnings_of(caplog) as problems:
        agent = Agent.from_definition(definition, **options)
        for _ in range(2):
            await agent.run_async("Go")
    assert len(problems) == 1
    assert problems[0].startswith(f"disallowedTools: {denied!r} names no ")
    assert "the nearest name is '" in problems[0]
    with pytest.raises(InvalidToolRulesError, match="disallowedTools"):
        await Agent.from_definition(definition, **options, strict=True).run_async("Go")


async def test_a_file_that_denies_tools_in_another_spelling_is_no_mistake(
    caplog: pytest.LogCaptureFixture,
) -> None:
    definition = AgentDefinition(
        name="a", description="b", system_prompt="x", disallowed_tools=["Bash(rm:*)", "MCP__Files__Delete"]
    )
    with warnings_of(caplog) as problems:
        agent = Agent.from_definition(
            definition,
            tools=[local("bash")],
            mcp_servers=[Server("files", "delete")],
            tool_providers=None,
            model=ScriptedModel(ANSWER),
        )
        await agent.run_async("Go")
    assert problems == []


async def test_an_entry_for_a_local_tool_allows_no_tool_of_a_hosted_server() -> None:
    hosted = HostedMCPTool(
        tool_config={
            "type": "mcp",
            "server_label": "wiki",
            "server_url": "http://127.0.0.1:9/",
            "allowed_tools": ["page"],
            "require_approval": "never",
        }
    )
    request = McpApprovalRequest(
        id="ask", arguments="{}", name="page", server_label="wiki", type="mcp_approval_request"
    )
    model = ScriptedModel([[request], *ANSWER])
    tools: list[Any] = [local("mcp__wiki__page"), hosted]
    agent = Agent("a", "x", model=model, tools=tools, tool_providers=None)
    await agent.run_async("Go", {"tool_rules": {"allow": ["mcp__wiki__page"]}})
    assert model.last_call is not None
    answers = [item for item in model.last_call.input if item.get("type") == "mcp_approval_response"]
    assert [answer["approve"] for answer in answers] == [False]


async def test_a_delegated_agent_whose_file_nearly_denies_a_tool_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    helper = AgentDefinition(
        name="helper", description="Helps.", system_prompt="x", disallowed_tools=["mcp__fils", "bash"]
    )
    arguments = {"description": "d", "prompt": "p", "subagent_type": "helper"}
    model = ScriptedModel([[function_call("Task", arguments, call_id="t")], *ANSWER])
    agent = Agent(
        "a",
        "x",
        model=model,
        tools=[task_tool([helper]), local("bash")],
        mcp_servers=[Server("files", "delete")],
        tool_providers=None,
    )
    with warnings_of(caplog) as problems:
        await agent.run_async("Go", {"tool_rules": {"deny": ["mcp__wrong"]}})
    assert [problem.partition(" names")[0] for problem in problems] == [
        "deny: 'mcp__wrong'",
        "disallowedTools: 'mcp__fils'",
    ]


async def test_rules_for_an_agents_servers_hold_for_a_hand_off_whose_servers_have_similar_names() -> None:
    model = deleting("c")
    target_server = Server("a__b", "c")
    target = agents.Agent[Any](name="target", model=model, mcp_servers=[target_server])
    hand_off = function_call("transfer_to_target", {}, call_id="h")
    start = Agent(
        "start",
        "x",
        model=ScriptedModel([[hand_off]]),
        mcp_servers=[Server("a", "b")],
        handoffs=[target],
        tool_providers=None,
    )
    await start.run_async("Go", {"tool_rules": {"allow": ["mcp__a__b"]}})
    assert target_server.called == []


async def test_a_tool_that_was_converted_by_hand_has_the_same_names() -> None:
    server = Server("my server", "delete")
    (listed,) = await server.list_tools()
    tool = MCPUtil.to_function_tool(listed, server, convert_schemas_to_strict=False)
    agent = Agent("a", "x", model=deleting(), tools=[tool], tool_providers=None)
    for entry in SPELLINGS:
        assert not agent.explain_tool(tool, context={"tool_rules": {"deny": [entry]}}).allowed
        assert not agent.explain_tool("delete", context={"tool_rules": {"deny": [entry]}}).allowed
