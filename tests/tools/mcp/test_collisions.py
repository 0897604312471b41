"""Two MCP servers with a tool of one name, and what a server that is away may not give up to another."""

from __future__ import annotations

from typing import Any

import agents
import pytest
from agents import RunContextWrapper, Runner, RunState

from kantan_agents import Agent
from kantan_agents.errors import InvalidToolRulesError
from kantan_agents.middleware import Approve
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from tests.tools.conftest import outputs
from tests.tools.mcp.offering import Offering


def model(*called: str) -> ScriptedModel:
    turns = [[function_call(name, {}, call_id=f"c{number}")] for number, name in enumerate(called)]
    return ScriptedModel([*turns, [assistant_message("done")]])


def agent(*servers: Any, scripted: ScriptedModel | None = None, **options: Any) -> Agent[Any]:
    return Agent("clerk", "x", model=scripted or model(), mcp_servers=servers, tool_providers=None, **options)


async def names(*servers: Any, rules: Any = None, **options: Any) -> list[str]:
    """Return the names of the tools that a model sees."""
    scripted = model()
    context = {} if rules is None else {"tool_rules": rules}
    await agent(*servers, scripted=scripted, **options).run_async("Go", context)
    return [tool.name for tool in scripted.calls[0].tools]


def local(name: str) -> Any:
    def act(value: str = "") -> str:
        """Act."""
        return f"{name} did {value}"

    return agents.function_tool(act, name_override=name)


async def test_only_names_that_collide_get_the_sdks_prefix() -> None:
    servers = Offering("files", "read", "list"), Offering("mail", "read", "send"), Offering("web", "fetch")
    assert await names(*servers) == ["mcp_files__read", "list", "mcp_mail__read", "send", "fetch"]


async def test_each_prefixed_tool_is_called_on_its_own_server() -> None:
    files, mail = Offering("files", "read"), Offering("mail", "read")
    scripted = model("mcp_mail__read", "mcp_files__read", "mcp_files__read")
    await agent(files, mail, scripted=scripted).run_async("Go")
    assert (files.called, mail.called) == (["read", "read"], ["read"])
    answers = map(str, outputs(scripted))
    assert all(server in answer for server, answer in zip(("mail", "files", "files"), answers, strict=True))


async def test_servers_of_one_name_get_names_that_differ() -> None:
    both = await names(Offering("files", "read"), Offering("files", "read"))
    assert len(set(both)) == 2
    assert all(name.startswith("mcp_files__read_") for name in both)
    assert both == await names(Offering("files", "read"), Offering("files", "read"))


async def test_a_name_that_another_server_chose_to_look_like_a_prefixed_one_stays_its_own() -> None:
    shown = await names(Offering("files", "read"), Offering("mail", "read", "mcp_files__read"))
    assert len(set(shown)) == 3
    assert "mcp_files__read" in shown


@pytest.mark.parametrize(
    ("rules", "shown"),
    [
        ({"deny": ["mcp__mail__read"]}, ["read"]),
        ({"deny": ["mcp__mail__*"]}, ["read"]),
        ({"deny": ["read"]}, []),
        ({"allow": ["mcp__files__read"]}, ["read"]),
        ({"allow": ["mcp__files__*", "mcp__mail__*"]}, ["mcp_files__read", "mcp_mail__read"]),
        ({"allow": ["read"]}, []),
        ({"allow": "*"}, ["mcp_files__read", "mcp_mail__read"]),
    ],
)
async def test_a_tool_that_the_rules_hide_does_not_collide(rules: Any, shown: list[str]) -> None:
    assert await names(Offering("files", "read"), Offering("mail", "read"), rules=rules) == shown


async def test_a_name_that_the_rules_leave_to_one_server_calls_that_server() -> None:
    files, mail = Offering("files", "read"), Offering("mail", "read")
    scripted = model("read")
    rules = {"deny": ["mcp__mail__read"]}
    await agent(files, mail, scripted=scripted, strict=True).run_async("Go", {"tool_rules": rules})
    assert (files.called, mail.called) == (["read"], [])


async def test_rules_and_approvals_know_a_prefixed_tool_by_the_names_that_it_always_has() -> None:
    files, mail = Offering("files", "read"), Offering("mail", "read")
    scripted = model("mcp_files__read", "mcp_mail__read")
    clerk = agent(files, mail, scripted=scripted, middleware=[Approve("mcp__mail__read")])
    context = await clerk.run_async("Go", {"tool_rules": {"params": {"mcp__files__read": {"value": {}}}}})
    [asked] = context["result"].interruptions
    assert asked.name == "mcp_mail__read"
    state = context["result"].to_state()
    state.approve(asked)
    await clerk.run_async(state)
    assert (files.called, mail.called) == (["read"], ["read"])


async def test_a_local_tool_and_a_hand_off_win_over_servers_tools_of_their_names(
    caplog: pytest.LogCaptureFixture,
) -> None:
    servers = Offering("files", "read", "transfer_to_boss"), Offering("mail", "read", "send")
    boss = agents.Agent(name="boss")
    with caplog.at_level("WARNING", "kantan_agents"):
        shown = await names(*servers, tools=[local("read")], handoffs=[boss])
    assert shown == ["send", "read"]
    assert caplog.text.count("mcp_tool_left_out") == 2


async def test_names_stay_when_a_server_goes_and_comes() -> None:
    files, mail = Offering("files", "read"), Offering("mail", "read")
    scripted = ScriptedModel([[assistant_message("done")]] * 3)
    clerk = agent(files, mail, scripted=scripted, on_mcp_failure="continue")
    for mail.fails in (False, True, False):
        await clerk.run_async("Go")
    assert [[tool.name for tool in call.tools] for call in scripted.calls] == [
        ["mcp_files__read", "mcp_mail__read"],
        ["mcp_files__read"],
        ["mcp_files__read", "mcp_mail__read"],
    ]


async def test_a_plain_sdk_agent_in_a_run_gets_the_same_names() -> None:
    scripted = model()
    plain = agents.Agent(
        name="plain", model=scripted, mcp_servers=[Offering("files", "read"), Offering("mail", "read")]
    )
    start = Agent(
        "start",
        "x",
        model=ScriptedModel([[function_call("transfer_to_plain", {}, call_id="h")]]),
        handoffs=[plain],
        tool_providers=None,
    )
    await start.run_async("Go")
    assert [tool.name for tool in scripted.calls[0].tools] == ["mcp_files__read", "mcp_mail__read"]


async def test_the_sdks_own_runner_gets_the_same_names() -> None:
    scripted = model()
    clerk = agent(Offering("files", "read"), Offering("mail", "read"), scripted=scripted)
    await Runner.run(clerk.sdk_agent, "Go", context={})
    assert [tool.name for tool in scripted.calls[0].tools] == ["mcp_files__read", "mcp_mail__read"]


async def test_prefixes_for_all_tools_are_those_of_the_sdk() -> None:
    def servers() -> list[Any]:
        return [Offering("files", "read", "list"), Offering("my mail", "read"), Offering("files", "read")]

    config: Any = {"include_server_in_tool_names": True}
    plain: agents.Agent[Any] = agents.Agent(name="plain", mcp_servers=servers(), mcp_config=config)
    expected = [tool.name for tool in await plain.get_mcp_tools(RunContextWrapper({}))]
    assert await names(*servers(), mcp_config=config) == expected


async def test_a_paused_call_of_a_prefixed_tool_survives_as_json() -> None:
    files, mail = Offering("files", "read"), Offering("mail", "read", require_approval="always")
    scripted = model("mcp_mail__read")
    clerk = agent(files, mail, scripted=scripted)
    context = await clerk.run_async("Go")
    text = context["result"].to_state().to_string() if context["result"].interruptions else ""
    state = await RunState.from_string(clerk.sdk_agent, text)
    state.approve(state.get_interruptions()[0])
    await clerk.run_async(state)
    assert (files.called, mail.called) == ([], ["read"])


# -- a server that is away


@pytest.mark.parametrize("was_listed", [False, True])
async def test_an_entry_for_a_server_that_is_away_allows_no_tool_of_another(was_listed: bool) -> None:
    files, evil = Offering("files", "read"), Offering("evil", "look")
    scripted = ScriptedModel([[assistant_message("done")]] * 2)
    clerk = agent(files, evil, scripted=scripted, on_mcp_failure="continue")
    rules = {"allow": ["read", "mcp__files__read"]}
    if was_listed:
        await clerk.run_async("Go", {"tool_rules": rules})
    files.fails = True
    evil._tools = ("read", "mcp__files__read")
    await clerk.run_async("Go", {"tool_rules": rules})
    assert [tool.name for tool in scripted.calls[-1].tools] == []
    shown = await names(files, evil, rules={"allow": ["mcp__evil__read"]}, on_mcp_failure="continue")
    assert shown == ["read"]


async def test_rules_that_name_tools_of_a_server_that_is_away_are_no_mistake_and_are_checked_later() -> None:
    files = Offering("files", "read")
    scripted = ScriptedModel([[assistant_message("done")]] * 2)
    clerk = agent(files, scripted=scripted, on_mcp_failure="continue", strict=True)
    rules = {"deny": ["mcp__files__read", "mcp__files__raed"]}
    files.fails = True
    await clerk.run_async("Go", {"tool_rules": rules})
    files.fails = False
    with pytest.raises(InvalidToolRulesError, match="mcp__files__raed"):
        await clerk.run_async("Go", {"tool_rules": rules})


async def test_an_approval_that_names_a_tool_of_a_server_that_is_away_is_no_mistake() -> None:
    files = Offering("files", "read")
    files.fails = True
    clerk = agent(files, on_mcp_failure="continue", middleware=[Approve("mcp__files__read")])
    await clerk.run_async("Go")
