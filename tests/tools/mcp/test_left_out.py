"""A failing MCP server that a run does without: hand-offs, delegation, commands, copies and the trace."""

from __future__ import annotations

import copy
from typing import Any

import agents
import pytest
from agents import set_trace_processors
from agents.tracing import TracingProcessor

from kantan_agents import Agent, SlashCommands, ToolRulesMode, task_tool
from kantan_agents.errors import InvalidOptionError, MCPServerUnavailableError
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from tests.agent.delegation.cast import Cast, definition, delegate, say, use
from tests.tools.mcp.offering import Offering


class Failures(TracingProcessor):
    """The errors of the spans about listing a server's tools."""

    def __init__(self) -> None:
        self.errors: list[Any] = []

    def on_span_end(self, span: Any) -> None:
        if span.span_data.type == "mcp_tools":
            self.errors.append(span.error)

    def on_trace_start(self, trace: Any) -> None: ...
    def on_trace_end(self, trace: Any) -> None: ...
    def on_span_start(self, span: Any) -> None: ...
    def shutdown(self) -> None: ...
    def force_flush(self) -> None: ...


def failing(name: str = "files", *tools: str) -> Offering:
    server = Offering(name, *(tools or ("read",)))
    server.fails = True
    return server


def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello {name}"


async def test_the_trace_shows_which_server_was_left_out_and_why() -> None:
    recorded = Failures()
    set_trace_processors([recorded])
    clerk = Agent(
        "clerk",
        "You are clerk.",
        model=Cast(clerk=[say("done")]),
        mcp_servers=[failing(), Offering("mail", "send")],
        on_mcp_failure="continue",
    )
    await clerk.run_async("Go")
    first, second = recorded.errors
    assert "[E28] MCP server files of agent clerk" in first["message"]
    assert "RuntimeError: out of order" in first["message"]
    assert second is None


@pytest.mark.parametrize("kind", ["ours", "sdk agent"])
async def test_a_run_goes_on_in_a_hand_off_target_of_which_the_server_fails(kind: str) -> None:
    cast = Cast(start=[use("transfer_to_target")], target=[say("from the target")])
    options: dict[str, Any] = {"name": "target", "model": cast, "mcp_servers": [failing()]}
    target: Any
    if kind == "ours":
        target = Agent(instructions="You are target.", on_mcp_failure="continue", **options)
    else:
        target = agents.Agent(instructions="You are target.", **options)
    start = Agent("start", "You are start.", model=cast, handoffs=[target], on_mcp_failure="continue")
    context = await start.run_async("Go", {"tool_rules": {"deny": ["x"]}})
    assert context["result"].final_output == "from the target"


async def test_the_server_of_a_hand_off_target_does_not_end_a_run_that_never_reaches_it() -> None:
    cast = Cast(start=[say("done")])
    target = Agent("target", "x", mcp_servers=[failing()])
    start = Agent("start", "You are start.", model=cast, handoffs=[target], strict=True)
    context = await start.run_async("Go", {"tool_rules": {"deny": ["mcp__files__read"]}})
    assert context["result"].final_output == "done"


async def test_an_agent_used_as_a_tool_makes_its_own_choice() -> None:
    cast = Cast(start=[use("helper", input="x"), say("done")], helper=[say("helped")])
    helper = Agent(
        "helper", "You are helper.", model=cast, mcp_servers=[failing()], on_mcp_failure="continue"
    )
    start = Agent("start", "You are start.", model=cast, tools=[helper])
    await start.run_async("Go")
    assert "helped" in str(cast.results("start"))


@pytest.mark.parametrize("choice", ["continue", {"files": "continue"}])
async def test_a_delegated_agent_inherits_the_choice(choice: Any) -> None:
    cast = Cast(boss=[delegate("worker"), say("done")], worker=[use("greet", name="Ann"), say("worked")])
    boss = Agent(
        "boss",
        "You are boss.",
        model=cast,
        tools=[greet, task_tool([definition("worker")])],
        mcp_servers=[failing()],
        on_mcp_failure=choice,
    )
    await boss.run_async("Go")
    assert cast.results("worker") == ["Hello Ann"]


async def test_a_choice_for_servers_that_only_the_run_has_is_no_mistake_in_a_delegated_agent() -> None:
    cast = Cast(
        boss=[use("transfer_to_mid")],
        mid=[delegate("worker"), say("done")],
        worker=[say("worked")],
    )
    mid = agents.Agent(
        name="mid", instructions="You are mid.", model=cast, tools=[task_tool([definition("worker")])]
    )
    boss = Agent(
        "boss",
        "You are boss.",
        model=cast,
        handoffs=[mid],
        mcp_servers=[failing()],
        on_mcp_failure={"files": "continue"},
    )
    context = await boss.run_async("Go")
    assert context["result"].final_output == "done"


async def test_a_command_of_an_agents_own_tool_works_without_the_server() -> None:
    commands = SlashCommands(ToolRulesMode.ALLOW_ALL, aliases={"hi": "greet", "get": "read"})
    clerk = Agent(
        "clerk",
        "x",
        model=Cast(clerk=[say("never")]),
        tools=[greet],
        mcp_servers=[failing()],
        on_mcp_failure="continue",
        middleware=[commands],
    )
    for text in ("/greet Ann", "/hi Ann"):
        context = await clerk.run_async(text)
        assert context["result"].final_output == "Hello Ann"
    assert "greet" in str((await clerk.run_async("/help"))["result"].final_output)


async def test_an_agent_that_the_sdk_runs_itself_keeps_its_choice() -> None:
    model = ScriptedModel([[assistant_message("done")]])
    clerk = Agent("clerk", "x", model=model, mcp_servers=[failing()], on_mcp_failure="continue")
    result = await agents.Runner.run(clerk.sdk_agent, "Go", context={})
    assert result.final_output == "done"


async def test_copies_of_an_agent_work(tmp_path: Any) -> None:
    del tmp_path
    model = ScriptedModel([[function_call("read", {}, call_id="c")], [assistant_message("done")]] * 2)
    server = Offering("files", "read")
    clerk = Agent("clerk", "x", model=model, mcp_servers=[server])
    await clerk.run_async("Go")
    for made in (clerk.sdk_agent.clone(name="other"), copy.copy(clerk.sdk_agent)):
        assert [tool.name for tool in await made.get_mcp_tools(agents.RunContextWrapper({}))] == ["read"]
    await clerk.run_async("Go")
    assert server.called == ["read", "read"]


async def test_a_subclass_of_the_sdks_agent_may_list_the_tools_of_its_servers_itself() -> None:
    class Careful(agents.Agent[Any]):
        async def get_mcp_tools(self, run_context: Any) -> list[Any]:
            return [tool for tool in await super().get_mcp_tools(run_context) if tool.name != "delete"]

    cast = Cast(start=[use("transfer_to_target")], target=[say("done")])
    target = Careful(
        name="target",
        instructions="You are target.",
        model=cast,
        mcp_servers=[Offering("files", "read", "delete")],
    )
    start = Agent("start", "You are start.", model=cast, handoffs=[target])
    await start.run_async("Go")
    assert cast.visible_tools("target") == ["read"]


async def test_the_error_keeps_the_exception_of_the_server_as_its_cause() -> None:
    clerk = Agent("clerk", "x", model=ScriptedModel([]), mcp_servers=[failing()])
    with pytest.raises(MCPServerUnavailableError) as raised:
        await clerk.run_async("Go")
    assert isinstance(raised.value.__cause__, RuntimeError)


def test_the_option_is_checked_for_delegated_agents_too() -> None:
    with pytest.raises(InvalidOptionError, match="on_mcp_failure"):
        task_tool([definition("worker")], on_mcp_failure="ignore")
