"""The rules apply to everything a run reaches: hand-offs of every kind, agents as tools, MCP servers."""

from __future__ import annotations

import copy
import json
import pickle
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import Handoff, HostedMCPTool, RunContextWrapper, Runner, RunState
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from openai.types.responses.response_output_item import McpApprovalRequest, McpCall

from kantan_agents import Agent, KantanAgentsError
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from tests.ports import reserved_port
from tests.programs import Preloaded
from tests.tools.conftest import Executed, calls, outputs, shown

DENIED = "[kantan-agents][E8] Tool is not allowed: "
SERVER = Path(__file__).with_name("mcp_server.py")


def handing_over(to: str) -> ScriptedModel:
    return ScriptedModel([[function_call(f"transfer_to_{to}", {}, call_id=f"to-{to}")]])


def dynamic(target: Any) -> Handoff[Any, Any]:
    """Return a hand-off whose target is known only when it is invoked."""

    async def invoke(context: Any, arguments: str) -> Any:
        return target

    return Handoff(
        tool_name="transfer_to_target",
        tool_description="d",
        input_json_schema={},
        on_invoke_handoff=invoke,
        agent_name="target",
    )


WAYS: dict[str, Any] = {
    "ours": lambda target: target,
    "sdk agent": lambda target: target,
    "handoff object": agents.handoff,
    "handoff that tells its target late": dynamic,
}


@pytest.mark.parametrize("way", WAYS)
async def test_tools_of_a_handoff_target_obey_the_rules_of_the_run(executed: Executed, way: str) -> None:
    model = calls(("delete", {"value": "x"}), ("read", {"value": "secret"}), ("read", {"value": "ok"}))
    tools: list[Any] = [executed.tool("delete"), executed.tool("read")]
    target: Any
    if way == "ours":
        target = Agent("target", "x", tools=tools, model=model)
    else:
        target = agents.Agent(name="target", tools=tools, model=model)
    start = Agent("start", "x", handoffs=[WAYS[way](target)], model=handing_over("target"))
    rules = {"deny": ["delete"], "params": {"read": {"value": {"maxLength": 3}}}}
    context = await start.run_async("hi", {"tool_rules": rules})
    assert executed == [("read", "ok")]
    assert shown(model) == ["read"]
    assert outputs(model)[-3].startswith(
        f"{DENIED}delete\nThe rule is deny: delete.\nTools you may use: read."
    )
    assert "E14" in outputs(model)[-2]
    last = context["result"].last_agent
    assert last is (target.sdk_agent if way == "ours" else target)


async def test_a_guarded_subclass_of_the_sdks_agent_keeps_its_behaviour(executed: Executed) -> None:
    class Mine(agents.Agent[Any]):
        owner = "me"

        async def get_all_tools(self, run_context: Any) -> list[Any]:
            return [executed.tool("more"), *await super().get_all_tools(run_context)]

    model = calls(("more", {}), ("own", {}))
    target = Mine(name="target", tools=[executed.tool("own")], model=model)
    start = Agent("start", "x", handoffs=[target], model=handing_over("target"))
    await start.run_async("hi", {"tool_rules": {"allow": ["own"]}})
    assert executed == [("own", "")]
    assert isinstance(target, Mine)
    assert type(target).__qualname__ == Mine.__qualname__
    assert repr(target).startswith(f"{Mine.__qualname__}(name='target'")


async def test_cycles_and_hand_offs_of_hand_off_targets_are_guarded(executed: Executed) -> None:
    third_model = calls(("delete", {}))
    third = agents.Agent[Any](name="third", tools=[executed.tool("delete")], model=third_model)
    second = agents.Agent[Any](name="second", model=handing_over("third"))
    first = agents.Agent[Any](name="first", handoffs=[second], model=handing_over("second"))
    second.handoffs = [agents.handoff(third), first]
    third.handoffs = [first]
    start = Agent("start", "x", handoffs=[first], model=handing_over("first"))
    await start.run_async("hi", {"tool_rules": {"deny": ["delete"]}})
    assert executed == []
    assert shown(third_model) == []


async def test_a_target_added_during_the_run_is_guarded(executed: Executed) -> None:
    late_model = calls(("delete", {}))
    late = agents.Agent[Any](name="late", tools=[executed.tool("delete")], model=late_model)
    script = [[function_call("add", {}, call_id="a")], [function_call("transfer_to_late", {}, call_id="b")]]
    target = agents.Agent[Any](name="target", model=ScriptedModel(script))

    @agents.function_tool
    def add() -> str:
        """Add a target."""
        target.handoffs.append(late)
        return "added"

    target.tools.append(add)
    start = Agent("start", "x", handoffs=[target], model=handing_over("target"))
    await start.run_async("hi", {"tool_rules": {"deny": ["delete"]}})
    assert executed == []
    assert outputs(late_model)[-1].startswith(f"{DENIED}delete")


async def test_a_guarded_agent_is_unchanged_in_plain_sdk_runs(executed: Executed) -> None:
    target = agents.Agent[Any](name="target", tools=[executed.tool("delete")], model=calls(("delete", {})))
    assert Agent("start", "x", handoffs=[target]).sdk_agent.handoffs == [target]
    await Runner.run(target, "hi", context={"mine": 1})
    assert executed == [("delete", "")]
    assert target.clone(name="other").tools == target.tools
    assert await target.get_all_tools(RunContextWrapper({})) == target.tools


@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))]
)
async def test_a_guarded_agent_can_be_copied_and_pickled(duplicate: Any) -> None:
    target = agents.Agent[Any](name="target", instructions="Help.")
    assert Agent("start", "x", handoffs=[target]).sdk_agent.handoffs == [target]
    other = duplicate(target)
    assert other is not target
    assert other == target
    assert (other.name, other.instructions) == ("target", "Help.")
    assert type(other) is type(target)


@pytest.mark.parametrize("streamed", [True, False])
async def test_the_sdks_own_runner_applies_the_rules_to_handoff_targets(
    executed: Executed, streamed: bool
) -> None:
    model = calls(("read", {"value": "secret"}), ("read", {"value": "ok"}))
    target = agents.Agent[Any](name="target", tools=[executed.tool("read")], model=model)
    start = Agent("start", "x", handoffs=[target], model=handing_over("target"))
    context = {"tool_rules": {"params": {"read": {"value": {"maxLength": 3}}}}}
    if streamed:
        running = Runner.run_streamed(start.sdk_agent, "hi", context=context)
        async for _ in running.stream_events():
            pass
    else:
        await Runner.run(start.sdk_agent, "hi", context=context)
    assert executed == [("read", "ok")]


@pytest.mark.parametrize("tools", [[], [len]], ids=["no tools", "a tool"])
@pytest.mark.parametrize(("rules", "code"), [({"deny": ["delete"], "alow": []}, "E20"), (["delete"], "E18")])
async def test_invalid_rules_are_refused_before_a_handoff(
    executed: Executed, rules: Any, code: str, tools: list[Any]
) -> None:
    held = [agents.function_tool(lambda: "", name_override=tool.__name__) for tool in tools]
    target = agents.Agent[Any](name="target", tools=[executed.tool("delete")], model=calls(("delete", {})))
    start = Agent("start", "x", tools=held, handoffs=[target], model=handing_over("target"))
    with pytest.raises(KantanAgentsError, match=code):
        await Runner.run(start.sdk_agent, "hi", context={"tool_rules": rules})
    assert executed == []


@pytest.mark.parametrize("rules", [{"deny": ["delete"], "alow": []}, ["delete"]])
async def test_rules_made_invalid_by_a_tool_end_the_run_at_a_target_without_tools(rules: Any) -> None:
    context: dict[str, Any] = {"tool_rules": {"deny": ["delete"]}}

    def break_them() -> str:
        context["tool_rules"] = rules
        return "broken"

    target_model = ScriptedModel([[assistant_message("never")]])
    target = Agent("target", "x", model=target_model)
    steps = [[function_call(name, {}, call_id=name)] for name in ("break_them", "transfer_to_target")]
    model = ScriptedModel([[*steps[0], *steps[1]]])
    start = Agent("start", "x", tools=[break_them], handoffs=[target], model=model)
    with pytest.raises(KantanAgentsError, match=r"E18|E20"):
        await start.run_async("hi", context)
    assert not target_model.calls


@pytest.mark.parametrize("ours", [True, False])
async def test_the_rules_apply_to_an_agent_as_tool_and_to_its_tools(executed: Executed, ours: bool) -> None:
    inner_model = calls(("delete", {}), ("read", {"value": "1"}), then="inner done")
    tools: list[Any] = [executed.tool("delete"), executed.tool("read")]
    inner: Any = agents.Agent(name="inner", tools=tools, model=inner_model)
    if ours:
        inner = Agent("inner", "x", tools=tools, model=inner_model).sdk_agent
    tool = inner.as_tool("ask_inner", "Ask.")
    model = calls(("ask_inner", {"input": "q"}))
    context = await Agent("a", "x", tools=[tool], model=model).run_async(
        "hi", {"tool_rules": {"deny": ["delete"]}}
    )
    assert executed == [("read", "1")]
    assert outputs(model) == ["inner done"]
    assert context["result"].final_output == "done"

    hidden = calls(("ask_inner", {"input": "q"}))
    await Agent("a", "x", tools=[tool], model=hidden).run_async("hi", {"tool_rules": {"deny": ["ask_inner"]}})
    assert outputs(hidden)[0].startswith(f"{DENIED}ask_inner")


async def test_an_agent_as_a_tool_of_a_hand_off_target_is_guarded(executed: Executed) -> None:
    inner = agents.Agent[Any](name="inner", tools=[executed.tool("delete")], model=calls(("delete", {})))
    target = agents.Agent[Any](
        name="target", tools=[inner.as_tool("ask", "Ask.")], model=calls(("ask", {"input": "q"}))
    )
    start = Agent("start", "x", handoffs=[target], model=handing_over("target"))
    await start.run_async("hi", {"tool_rules": {"deny": ["delete"]}})
    assert executed == []


async def test_a_run_inside_a_tool_obeys_the_rules_of_its_own_context(executed: Executed) -> None:
    inner = Agent("inner", "x", tools=[executed.tool("delete")], model=calls(("delete", {})))

    async def ask(ctx: agents.RunContextWrapper[Any]) -> str:
        """Ask the inner agent."""
        await inner.run_async("q", {"tool_rules": ctx.context["tool_rules"]})
        return "asked"

    outer = Agent("outer", "x", tools=[ask], model=calls(("ask", {})))
    await outer.run_async("hi", {"tool_rules": {"deny": ["delete"]}})
    assert executed == []


async def test_a_run_resumed_from_json_does_not_run_a_tool_denied_meanwhile(executed: Executed) -> None:
    def team() -> Agent:
        tools: list[Any] = [executed.tool("delete", needs_approval=True)]
        target = agents.Agent[Any](name="target", tools=tools, model=calls(("delete", {})))
        return Agent("start", "x", handoffs=[target], model=handing_over("target"))

    paused = (await team().run_async("hi"))["result"]
    stored = json.dumps(paused.to_state().to_json())
    later = team()
    state = await RunState.from_json(later.sdk_agent, json.loads(stored))
    target = later.handoffs[0]
    target.model = ScriptedModel([[assistant_message("done")]])
    for interruption in state.get_interruptions():
        state.approve(interruption)
    context = await later.run_async(state, {"tool_rules": {"deny": ["delete"]}})
    assert executed == []
    assert context["result"].final_output == "done"


async def test_a_target_added_to_the_sdk_agent_directly_is_guarded(executed: Executed) -> None:
    target = agents.Agent[Any](name="target", tools=[executed.tool("delete")], model=calls(("delete", {})))
    start = Agent("start", "x", model=handing_over("target"))
    start.sdk_agent.handoffs.append(agents.handoff(target))
    await start.run_async("hi", {"tool_rules": {"deny": ["delete"]}})
    assert executed == []


async def test_a_paused_run_of_an_sdk_agent_is_resumed_under_the_rules(executed: Executed) -> None:
    tools: list[Any] = [executed.tool("delete", needs_approval=True)]
    plain = agents.Agent[Any](name="plain", tools=tools, model=calls(("delete", {})))
    state = (await Runner.run(plain, "hi", context={})).to_state()
    for interruption in state.get_interruptions():
        state.approve(interruption)
    ours = Agent("ours", "x", model=calls())
    context = await ours.run_async(state, {"tool_rules": {"deny": ["delete"]}})
    assert executed == []
    assert context["result"].final_output == "done"


async def test_a_tool_disabled_after_it_was_shown_is_not_run_on_a_handoff_target(
    executed: Executed,
) -> None:
    on = [True]
    tool = executed.tool("delete", is_enabled=lambda ctx, agent: on[0])
    model = calls(("delete", {}))
    target = agents.Agent[Any](name="target", tools=[tool], model=model)
    start = Agent("start", "x", handoffs=[target], model=handing_over("target"))

    class Hooks(agents.RunHooks[Any]):
        async def on_llm_end(self, ctx: Any, agent: Any, response: Any) -> None:
            on[0] = agent is not target

    await start.run_async("hi", hooks=Hooks())
    assert executed == []


async def test_an_approval_required_later_is_requested(executed: Executed) -> None:
    tool = executed.tool("delete")

    def team() -> Agent:
        target.model = calls(("delete", {}))
        return Agent("start", "x", handoffs=[target], model=handing_over("target"))

    target = agents.Agent[Any](name="target", tools=[tool])
    await team().run_async("hi")
    tool.needs_approval = True
    paused = (await team().run_async("hi"))["result"]
    assert len(paused.interruptions) == 1
    assert len(executed) == 1


async def test_an_agent_whose_class_cannot_be_extended_is_refused() -> None:
    class Sealed(agents.Agent[Any]):
        def __init_subclass__(cls) -> None:
            raise TypeError("sealed")

    target = Sealed(name="target")
    start = Agent("start", "x", handoffs=[target], model=handing_over("target"))
    with pytest.raises(ValueError, match=r"\[E75\] Invalid option handoffs: agent 'target' of class Sealed"):
        await start.run_async("hi")


# --- MCP servers ----------------------------------------------------------------------------------------


class Calls:
    """The calls that an MCP server has executed and recorded."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    @property
    def lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").splitlines()


@pytest.fixture
def mcp_calls(tmp_path: Path) -> Calls:
    return Calls(tmp_path / "calls.txt")


@pytest.fixture
def http_server(mcp_calls: Calls) -> Iterator[str]:
    port = reserved_port()
    command = [sys.executable, str(SERVER), "http", str(port)]
    process = subprocess.Popen(
        command, env={"CALLS": str(mcp_calls.path), "PATH": ""}, stderr=subprocess.DEVNULL
    )
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
def stdio_server(mcp_calls: Calls, preloaded: Preloaded) -> MCPServerStdio:
    command, *arguments = preloaded.command(SERVER, "stdio")
    params: Any = {"command": command, "args": arguments, "env": {"CALLS": str(mcp_calls.path)}}
    return MCPServerStdio(params, name="files", client_session_timeout_seconds=30)


MCP_SCRIPT = (
    ("delete", {"path": "x"}),
    ("read", {"path": "x", "limit": 500}),
    ("read", {"path": "x", "limit": "500"}),
    ("read", {"path": "x", "limit": 5}),
)


@pytest.mark.parametrize(
    "denied", [["delete"], ["mcp__files__delete"], ["mcp__files__de*"], ["mcp__*__delete"]]
)
async def test_tools_of_a_stdio_server_obey_the_rules(
    mcp_calls: Calls, stdio_server: MCPServerStdio, denied: list[str]
) -> None:
    model = calls(*MCP_SCRIPT)
    rules = {"deny": denied, "params": {"mcp__files__read": {"limit": {"maximum": 10}}}}
    async with stdio_server as server:
        agent = Agent("a", "x", mcp_servers=[server], model=model)
        await agent.run_async("hi", {"tool_rules": rules})
    assert mcp_calls.lines == ["read x 5"]
    assert shown(model) == ["read"]
    results = outputs(model)
    assert [("[E8]" in t, "[E17]" in t, "[E11]" in t) for t in results[:3]] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]


async def test_tools_of_an_http_server_obey_the_rules_of_a_hand_off(
    mcp_calls: Calls, http_server: str
) -> None:
    model = calls(*MCP_SCRIPT)
    params: Any = {"url": http_server}
    rules = {"allow": ["mcp__files__read"], "params": {"read": {"limit": {"maximum": 10}}}}
    async with MCPServerStreamableHttp(params, name="files", client_session_timeout_seconds=30) as server:
        target = agents.Agent[Any](name="target", mcp_servers=[server], model=model)
        start = Agent("start", "x", handoffs=[target], model=handing_over("target"))
        await start.run_async("hi", {"tool_rules": rules})
    assert mcp_calls.lines == ["read x 5"]
    assert shown(model) == ["read"]


async def test_rules_for_prefixed_mcp_names_work_with_either_name(
    mcp_calls: Calls, stdio_server: MCPServerStdio
) -> None:
    async with stdio_server as server:
        for denied in ("delete", "mcp__files__delete", "mcp_files__delete"):
            model = calls(("mcp_files__delete", {"path": "x"}))
            agent = Agent(
                "a",
                "x",
                mcp_servers=[server],
                mcp_config={"include_server_in_tool_names": True},
                model=model,
            )
            await agent.run_async("hi", {"tool_rules": {"deny": [denied]}})
            assert shown(model) == ["mcp_files__read"]
    assert mcp_calls.lines == []


@pytest.mark.parametrize(
    ("rules", "visible"),
    [
        ({"allow": ["search", "mcp__files__read"]}, ["search", "read"]),
        ({"deny": ["mcp__files__*"]}, ["search"]),
        ({"deny": ["mcp__files"]}, ["search"]),
        ({"deny": ["mcp__*"]}, ["search"]),
        ({"deny": ["mcp__*__delete"]}, ["search", "read"]),
    ],
)
async def test_a_rule_may_concern_one_tool_or_all_tools_of_a_server(
    stdio_server: MCPServerStdio, executed: Executed, rules: dict[str, Any], visible: list[str]
) -> None:
    async with stdio_server as server:
        model = ScriptedModel([[assistant_message("Done.")]])
        agent = Agent("a", "x", mcp_servers=[server], tools=[executed.tool("search")], model=model)
        await agent.run_async("hi", {"tool_rules": rules})
        assert sorted(shown(model)) == sorted(visible)


async def test_a_rule_added_after_the_listing_stops_a_call_to_a_server(
    mcp_calls: Calls, stdio_server: MCPServerStdio
) -> None:
    model = calls(("delete", {"path": "x"}))
    context: dict[str, Any] = {}

    class Hooks(agents.RunHooks[Any]):
        async def on_llm_end(self, ctx: Any, agent: Any, response: Any) -> None:
            context["tool_rules"]["deny"] = ["mcp__files__*"]

    async with stdio_server as server:
        await Agent("a", "x", mcp_servers=[server], model=model).run_async("hi", context, hooks=Hooks())
    assert mcp_calls.lines == []
    assert "delete" in shown(model)


def hosted(**options: Any) -> HostedMCPTool:
    config: Any = {"type": "mcp", "server_label": "github", "server_url": "http://127.0.0.1:9/"}
    asks = options.pop("require_approval", None)
    if asks is not None:
        config["require_approval"] = asks
    return HostedMCPTool(tool_config=config, **options)


def approval_request(name: str, arguments: str = "{}", label: str = "github") -> Any:
    return McpApprovalRequest(
        id=f"ask-{name}", arguments=arguments, name=name, server_label=label, type="mcp_approval_request"
    )


async def approvals(tool: HostedMCPTool, rules: Any, *names: str) -> dict[str, bool]:
    """Return the run's answers to a hosted server's approval requests for these tools."""
    model = ScriptedModel([[approval_request(name) for name in names], [assistant_message("done")]])
    await Agent("a", "x", tools=[tool], model=model).run_async("hi", {"tool_rules": rules})
    assert model.last_call is not None
    answers = [item for item in model.last_call.input if item.get("type") == "mcp_approval_response"]
    return {answer["approval_request_id"].removeprefix("ask-"): answer["approve"] for answer in answers}


async def test_a_hosted_server_can_be_hidden() -> None:
    for denied in ("hosted_mcp", "mcp__github", "mcp__github__*", "mcp__*", "*"):
        model = calls()
        agent = Agent("a", "x", tools=[hosted(require_approval="never")], model=model)
        await agent.run_async("hi", {"tool_rules": {"deny": [denied]}})
        assert shown(model) == []


async def test_rules_for_single_tools_of_a_hosted_server_require_approval_of_each_call() -> None:
    tool = hosted(require_approval="never")
    for rules in (
        {"deny": ["mcp__github__delete_repo"]},
        {"deny": ["delete_repo"]},
        {"allow": ["mcp__github__list_*"]},
    ):
        assert await approvals(tool, rules, "list_issues", "delete_repo") == {
            "list_issues": True,
            "delete_repo": False,
        }
    assert "on_approval_request" not in vars(tool) or tool.on_approval_request is None
    assert tool.tool_config["require_approval"] == "never"


async def test_an_allowed_hosted_server_is_unchanged() -> None:
    for asks in ("always", "never"):
        model = calls()
        agent = Agent("a", "x", tools=[hosted(require_approval=asks)], model=model)
        await agent.run_async("hi", {"tool_rules": {"allow": ["mcp__github"]}})
        (tool,) = model.calls[0].tools
        assert tool.tool_config["require_approval"] == asks


async def test_the_approval_handler_is_called_after_the_rules() -> None:
    asked: list[str] = []

    async def ask(request: Any) -> Any:
        asked.append(request.data.name)
        return {"approve": request.data.name != "merge"}

    tool = hosted(require_approval="always", on_approval_request=ask)
    rules = {"deny": ["mcp__github__delete_repo"]}
    answers = await approvals(tool, rules, "list_issues", "merge", "delete_repo")
    assert answers == {"list_issues": True, "merge": False, "delete_repo": False}
    assert asked == ["list_issues", "merge"]


async def test_arguments_of_a_hosted_servers_call_are_checked() -> None:
    rules = {"params": {"mcp__github__read": {"path": {"pattern": "^docs/"}}}}
    model = ScriptedModel(
        [[approval_request("read", '{"path": "/etc/passwd"}')], [assistant_message("done")]]
    )
    agent = Agent("a", "x", tools=[hosted(require_approval="never")], model=model)
    await agent.run_async("hi", {"tool_rules": rules})
    assert model.last_call is not None
    (answer,) = [item for item in model.last_call.input if item.get("type") == "mcp_approval_response"]
    assert answer["approve"] is False
    assert "E15" in answer["reason"]


async def test_a_server_with_human_approvals_is_hidden_if_rules_concern_single_tools() -> None:
    model = calls()
    agent = Agent("a", "x", tools=[hosted(require_approval="always")], model=model)
    await agent.run_async("hi", {"tool_rules": {"deny": ["mcp__github__delete_repo"]}})
    assert shown(model) == []


async def test_a_call_by_a_hosted_server_against_the_rules_is_recorded(traces: Any) -> None:
    call = McpCall(id="i", arguments="{}", name="delete_repo", server_label="github", type="mcp_call")
    model = ScriptedModel([[call, assistant_message("done")]])
    agent = Agent("a", "x", tools=[hosted(require_approval="never")], model=model)
    await agent.run_async("hi", {"tool_rules": {"deny": ["mcp__github__delete_repo"]}})
    (span,) = traces.spans(name="tool_refused")
    assert span.raw["span_data"]["data"]["rule"] == "deny: mcp__github__delete_repo"
