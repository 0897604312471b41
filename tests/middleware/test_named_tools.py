"""Names of tools in ``Approve`` and ``Budget``: matched as in tool rules, and never without any tool."""

from __future__ import annotations

import copy
from typing import Any

import agents
import pytest
from agents import ComputerTool, FunctionTool, HostedMCPTool, function_tool, tool_namespace
from agents.mcp._compat import MCPError
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent, AgentDefinition, Middleware, ToolRetrieval, rule_parameter, task_tool
from kantan_agents.errors import InvalidOptionError
from kantan_agents.middleware import (
    Approve,
    Approved,
    Budget,
    PendingCall,
    Rejected,
    Retry,
    decide,
    pending,
    to_json,
)
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.tool_rules import ToolRules, decide_call, parse_arguments
from kantan_agents.tools.facts import facts_of
from tests.tools.test_server_names import Server


def bash(command: str) -> str:
    """Run a command."""
    return f"{command}: done"


def read(path: str) -> str:
    """Read a file."""
    return path


def namespaced() -> list[FunctionTool]:
    return tool_namespace(name="fs", description="Files.", tools=[function_tool(read)])


def computer() -> Any:
    class Screen(agents.AsyncComputer):
        environment = "mac"
        dimensions = (1, 1)

        async def screenshot(self) -> str:
            return ""

        async def click(self, x: int, y: int, button: Any) -> None: ...
        async def double_click(self, x: int, y: int) -> None: ...
        async def scroll(self, x: int, y: int, scroll_x: int, scroll_y: int) -> None: ...
        async def type(self, text: str) -> None: ...
        async def wait(self) -> None: ...
        async def move(self, x: int, y: int) -> None: ...
        async def keypress(self, keys: list[str]) -> None: ...
        async def drag(self, path: list[tuple[int, int]]) -> None: ...

    return ComputerTool(Screen())


HELPER = AgentDefinition(name="helper", description="Helps.", system_prompt="Help.")


ASK_HELPER = {"description": "d", "prompt": "p", "subagent_type": "helper"}


def model_calling(*calls: tuple[str, Any]) -> ScriptedModel:
    items = [function_call(name, arguments, call_id=f"c{n}") for n, (name, arguments) in enumerate(calls)]
    return ScriptedModel([items, [assistant_message("Done.")]])


@pytest.mark.parametrize(
    "policy", ["mcp__files", "mcp__files__*", "mcp__files__read", "read", "mcp__*__read(notes.txt)"]
)
async def test_approve_matches_every_name_of_a_servers_tool(policy: str) -> None:
    server = Server("files", "read", "look")
    model = model_calling(("read", {"value": "notes.txt"}), ("look", {"value": "x"}))
    agent = Agent("a", "x", model=model, mcp_servers=[server], middleware=[Approve(policy)])
    waiting = [call.tool for call in pending(await agent.run_async("Go"))]
    assert "read" in waiting
    assert "read" not in server.called


@pytest.mark.parametrize(
    ("tools", "policy"),
    [
        (namespaced, "fs.*"),
        (namespaced, "fs.read"),
        (lambda: [task_tool([HELPER])], "Agent"),
        (lambda: [computer()], "computer_use"),
    ],
)
async def test_approve_matches_every_name_that_rules_know(tools: Any, policy: str) -> None:
    approve = Approve(policy)
    (tool,) = tools()
    assert approve.concerns(facts_of(tool))
    agent = Agent("a", "x", model=model_calling(), tools=[tool], middleware=[approve])
    await agent.run_async("Go")


@pytest.mark.parametrize("with_handler", [True, False])
async def test_approve_of_some_calls_asks_for_those_and_for_chains_with_them(
    with_handler: bool,
) -> None:
    asked: list[str] = []

    async def approve_all(call: Any) -> Any:
        from kantan_agents.middleware import Approved

        asked.append(call.values["command"])
        return Approved()

    commands = ["git log", "git push origin", "ls; git push"]
    model = model_calling(*(("bash", {"command": command}) for command in commands))
    approve = Approve("bash(git push:*)", approve_all) if with_handler else Approve("bash(git push:*)")
    agent = Agent("a", "x", model=model, tools=[bash], middleware=[approve])
    context = await agent.run_async("Go")
    waiting = asked if with_handler else [call.values["command"] for call in pending(context)]
    assert sorted(waiting) == ["git push origin", "ls; git push"]


@pytest.mark.parametrize(
    ("entry", "calls", "made"),
    [
        ("mcp__files__*", [("read", "a"), ("look", "b"), ("read", "c")], 1),
        ("bash(git push:*)", [("bash", "git push"), ("bash", "git log"), ("bash", "git push x")], 2),
    ],
)
async def test_a_budget_counts_all_calls_that_an_entry_covers_together(
    entry: str, calls: list[tuple[str, str]], made: int
) -> None:
    done: list[str] = []

    def bash(command: str) -> str:
        """Run a command."""
        done.append(command)
        return "done"

    server = Server("files", "read", "look")
    steps = [(name, {"command": value} if name == "bash" else {"value": value}) for name, value in calls]
    model = model_calling(*steps)
    budget = Budget(per_tool={entry: 1})
    agent = Agent("a", "x", model=model, tools=[bash], mcp_servers=[server], middleware=[budget])
    await agent.run_async("Go")
    assert len(done) + len(server.called) == made
    assert model.last_call is not None
    assert f"like every call of {entry}, may be called 1 times" in str(model.last_call.input)


MISTAKES = [
    (lambda: Approve("bsh"), "the nearest name is 'bash'"),
    (lambda: Approve(["bash", "delete_*"]), "'delete_*' names no tool of agent 'a'"),
    (lambda: Approve("mcp__fils__*"), "names no MCP server of agent 'a'; the nearest name is 'mcp__files'"),
    (lambda: Approve("mcp__fils"), "names no MCP server of agent 'a'; the nearest name is 'mcp__files'"),
    (lambda: Budget(per_tool={"mcp__wiki": 1}), "the servers it can reach: 'files'"),
    (lambda: Approve("bsh(git push:*)"), "the nearest name is 'bash'"),
    (lambda: Budget(per_tool={"raed": 1}), "the nearest name is 'read'"),
]


@pytest.mark.parametrize(("make", "message"), MISTAKES)
async def test_a_name_that_no_tool_has_is_an_error_before_any_tool_is_called(make: Any, message: str) -> None:
    server = Server("files", "read")
    model = model_calling(("read", {"value": "x"}))
    agent = Agent("a", "x", model=model, tools=[bash], mcp_servers=[server], middleware=[make()])
    for _ in range(2):
        with pytest.raises(InvalidOptionError) as caught:
            await agent.run_async("Go")
        assert message in str(caught.value)
    assert (server.called, model.calls) == ([], ())


@pytest.mark.parametrize("entry", ["bash(git", "bash()", " bash", "bash(git*push)"])
def test_an_entry_that_only_looks_like_a_pattern_is_an_error(entry: str) -> None:
    with pytest.raises(InvalidOptionError, match="policy"):
        Approve(entry)
    with pytest.raises(InvalidOptionError, match="per_tool"):
        Budget(per_tool={entry: 1})


async def test_tools_that_are_hidden_disabled_or_not_retrieved_are_no_mistakes() -> None:
    off = function_tool(bash, is_enabled=False)
    many = [function_tool(read, name_override=f"read_{number}") for number in range(20)]
    agent = Agent(
        "a",
        "x",
        model=model_calling(),
        tools=[off, *many],
        tool_retrieval=ToolRetrieval(top_n=2),
        middleware=[Approve(["bash", "read_*", "read_19", "*"]), Budget(per_tool={"read_7": 1})],
    )
    await agent.run_async("Go", {"tool_rules": {"deny": ["read_7"]}})


@pytest.mark.parametrize("kind", ["hand-off", "hand-off object", "agent as tool", "server of a hand-off"])
async def test_tools_of_agents_that_the_run_can_reach_are_no_mistakes(kind: str) -> None:
    tools: list[Any] = [] if kind == "server of a hand-off" else [function_tool(bash)]
    servers: list[Any] = [Server("files", "bash")] if not tools else []
    inner = agents.Agent[Any](name="inner", model=ScriptedModel(), tools=tools, mcp_servers=servers)
    kinds: dict[str, dict[str, Any]] = {
        "hand-off": {"handoffs": [Agent("own", "x", model=ScriptedModel(), tools=[bash])]},
        "hand-off object": {"handoffs": [agents.handoff(inner)]},
        "agent as tool": {"tools": [inner.as_tool("ask", "Ask.")]},
        "server of a hand-off": {"handoffs": [inner]},
    }
    options = kinds[kind]
    await Agent("a", "x", model=model_calling(), middleware=[Approve("bash")], **options).run_async("Go")
    wrong = Agent("a", "x", model=model_calling(), middleware=[Approve("bahs")], **options)
    with pytest.raises(InvalidOptionError, match="the nearest name is 'bash'"):
        await wrong.run_async("Go")


async def test_a_middleware_for_several_agents_may_name_the_tools_of_each() -> None:
    budget, approve = Budget(per_tool={"bash": 5, "read": 5}), Approve(["bash", "read"])
    first = Agent("first", "x", model=model_calling(), tools=[bash], middleware=[budget, approve])
    second = Agent("second", "x", model=model_calling(), tools=[read], middleware=[budget, approve])
    await first.run_async("Go")
    await second.run_async("Go")


async def test_a_delegated_agent_inherits_middleware_that_names_tools_above_it() -> None:
    model = ScriptedModel(
        [
            [function_call("transfer_to_other", {}, call_id="h")],
            [
                function_call(
                    "Task", {"description": "d", "prompt": "p", "subagent_type": "helper"}, call_id="t"
                )
            ],
            [assistant_message("Helped.")],
            [assistant_message("Done.")],
        ]
    )
    other = Agent("other", "x", model=model, tools=[task_tool([HELPER])])
    middleware = [Budget(per_tool={"bash": 1, "Task": 1})]
    agent = Agent("a", "x", model=model, tools=[bash], handoffs=[other], middleware=middleware)
    context = await agent.run_async("Go")
    assert context["result"].final_output == "Done."


async def test_a_budget_inside_another_middleware_reports_a_wrong_name_before_the_tool_runs() -> None:
    class Tenant(Middleware):
        def __init__(self) -> None:
            self.budget = Budget(per_tool={"bsh": 1})

        async def tool_call(self, call: Any, call_next: Any) -> Any:
            return await self.budget.tool_call(call, call_next)

    done: list[str] = []

    def bash(command: str) -> str:
        """Run a command."""
        done.append(command)
        return "done"

    model = model_calling(("bash", {"command": "ls"}))
    agent = Agent("a", "x", model=model, tools=[bash], middleware=[Tenant()])
    with pytest.raises(InvalidOptionError, match="the nearest name is 'bash'"):
        await agent.run_async("Go")
    assert done == []


async def test_a_tool_that_a_filter_function_hides_in_this_run_is_no_mistake() -> None:
    server: Any = Server("files", "read")
    server.tool_filter = lambda _context, tool: tool.name != "delete"
    model = ScriptedModel([[assistant_message("Done.")]] * 2)
    agent = Agent("a", "x", model=model, mcp_servers=[server], middleware=[Approve("mcp__files__delete")])
    assert (await agent.run_async("Go"))["result"].final_output == "Done."
    strict = Agent("a", "x", model=model, mcp_servers=[server], strict=True)
    context = await strict.run_async("Go", {"tool_rules": {"deny": ["mcp__files__delete"]}})
    assert context["result"].final_output == "Done."


async def test_names_that_cannot_be_checked_list_the_servers_of_other_agents_once_in_a_run() -> None:
    class Unconnected(Server):
        listed = 0

        async def list_tools(self, run_context: Any = None, agent: Any = None) -> Any:
            self.listed += 1
            raise ConnectionError("not connected")

    server = Unconnected("files")
    calls = [[function_call("bash", {"command": str(n)}, call_id=f"c{n}")] for n in range(4)]
    model = ScriptedModel([*calls, [assistant_message("Done.")]])
    other = Agent("other", "x", model=model, mcp_servers=[server])
    middleware = [Budget(per_tool={"mcp__files__read": 1})]
    agent = Agent("a", "x", model=model, tools=[bash], handoffs=[other], middleware=middleware)
    assert (await agent.run_async("Go"))["result"].final_output == "Done."
    assert server.listed == 1


def hosted(**config: Any) -> HostedMCPTool:
    given: Any = {"type": "mcp", "server_label": "wiki", "server_url": "http://127.0.0.1:9/", **config}
    return HostedMCPTool(tool_config=given)


@pytest.mark.parametrize(
    "policy", ["mcp__wiki__*", "mcp__wiki__delete", "mcp__*__delete", "mcp__wiki", "page"]
)
async def test_a_hosted_server_that_lists_no_tools_and_asks_nobody_ends_a_run_that_needs_approval(
    policy: str,
) -> None:
    model = model_calling()
    tools = [hosted(require_approval="never")]
    agent = Agent("a", "x", model=model, tools=tools, middleware=[Approve(policy)])
    with pytest.raises(InvalidOptionError, match="no approval can be requested"):
        await agent.run_async("Go")
    assert model.calls == ()
    asks = [hosted(require_approval="always")]
    await Agent("a", "x", model=model_calling(), tools=asks, middleware=[Approve(policy)]).run_async("Go")


@rule_parameter("command")
def shell(directory: str, command: str) -> str:
    """Run a command."""
    return f"{directory}{command}"


@given(
    entry=st.sampled_from(
        ["shell", "sh*", "*", "shell(git push:*)", "shell(git push)", "shell(*)", "?hell(ls)"]
    ),
    command=st.sampled_from(["git push", "git push x", "git log", "ls", "ls; git push", "sudo git push", ""]),
)
def test_approve_and_budget_cover_exactly_the_calls_that_deny_covers(entry: str, command: str) -> None:
    import asyncio
    import json

    facts = facts_of(function_tool(shell))
    arguments = json.dumps({"directory": "/", "command": command})
    denied = not decide_call(
        ToolRules.parse({"deny": [entry]}), facts, parse_arguments("shell", arguments)
    ).allowed

    async def check() -> None:
        assert await Approve(entry).needs_approval("a", facts, arguments, "1") == denied
        named = Budget(per_tool={entry: 0}).named_tools
        assert named is not None
        assert any(True for _ in named.entries_about(facts)) >= denied

    asyncio.run(check())


async def test_a_deep_copy_of_an_agent_keeps_its_approvals() -> None:
    model = model_calling(("bash", {"command": "ls"}))
    agent = Agent("a", "x", model=model, tools=[bash], middleware=[Approve("bash")])
    assert [call.tool for call in pending(await copy.deepcopy(agent).run_async("Go"))] == ["bash"]


PREFIXED: dict[str, Any] = {"mcp_config": {"include_server_in_tool_names": True}}


async def run_with(agent: Agent, input: Any, *, streamed: bool) -> Any:
    if not streamed:
        return await agent.run_async(input)
    async with agent.stream(input) as run:
        async for _ in run:
            pass
    return run.context


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", ["delete", "mcp_files__delete"])
@pytest.mark.parametrize("with_handler", [False, True])
async def test_a_policy_function_is_asked_for_each_name_of_a_servers_tool(
    name: str, streamed: bool, with_handler: bool
) -> None:
    server = Server("files", "delete")
    asked: list[PendingCall] = []

    async def reject(call: PendingCall) -> Rejected:
        asked.append(call)
        return Rejected("no")

    def made() -> Agent:
        approve = Approve(lambda call: call.tool == name, reject if with_handler else None)
        return Agent("a", "x", model=model, mcp_servers=[server], middleware=[approve], **PREFIXED)

    model = model_calling(("mcp_files__delete", {"value": "x"}))
    context = await run_with(made(), "Go", streamed=streamed)
    assert server.called == []
    if with_handler:
        assert [call.tool for call in asked] == ["mcp_files__delete"]
        assert {"delete", "mcp__files__delete", "mcp__files"} <= set(asked[0].names)
        return
    key = "k" * 32
    waiting = [call.tool for call in pending(context)]
    stored = to_json(context, key=key)
    undecided = await run_with(made(), await decide(made(), stored, {}, key=key), streamed=streamed)
    assert [call.tool for call in pending(undecided)] == waiting == ["mcp_files__delete"]
    assert server.called == []
    state = await decide(made(), stored, {"c0": Approved()}, key=key)
    done = await run_with(made(), state, streamed=streamed)
    assert (pending(done), server.called) == ([], ["delete"])


async def test_a_policy_function_may_use_all_names_and_is_asked_once_for_a_tool_with_one_name() -> None:
    asked: list[PendingCall] = []

    def policy(call: PendingCall) -> bool:
        asked.append(call)
        return "mcp__files" in call.names

    server = Server("files", "delete")
    model = model_calling(("delete", {"value": "x"}), ("bash", {"command": "ls"}))
    agent = Agent("a", "x", model=model, tools=[bash], mcp_servers=[server], middleware=[Approve(policy)])
    context = await agent.run_async("Go")
    assert [call.tool for call in pending(context)] == ["delete"]
    assert [call.names for call in asked if call.tool == "bash"] == [("bash",)]
    assert server.called == []


@pytest.mark.parametrize(
    ("tools", "attempts"),
    [
        (["mcp__my server"], 2),
        (["mcp__my_server__*"], 2),
        (["mcp__my server__look"], 2),
        (["mcp_my_server__look"], 2),
        (["look"], 2),
        (["look(x)"], 2),
        (["look(y)"], 1),
        (["l*"], 1),
        (["mcp__other"], 1),
    ],
)
@pytest.mark.parametrize("options", [{}, PREFIXED])
async def test_retry_names_tools_as_allow_does(
    tools: list[str], attempts: int, options: dict[str, Any]
) -> None:
    class Failing(Server):
        async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> Any:
            self.called.append(tool_name)
            raise MCPError(-1, "the server is busy")

    server = Failing("my server", "look")
    model = model_calling(("mcp_my_server__look" if options else "look", {"value": "x"}))
    retry = Retry(2, tools=tools, initial_delay=0)
    agent = Agent("a", "x", model=model, mcp_servers=[server], middleware=[retry], **options)
    await agent.run_async("Go")
    assert len(server.called) == attempts


def test_an_entry_of_retry_that_only_looks_like_a_pattern_is_an_error() -> None:
    with pytest.raises(InvalidOptionError, match="tools"):
        Retry(tools=["bash(git"])
