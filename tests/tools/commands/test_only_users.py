"""Text from a model is never a command, and agents that a command runs obey the rules for models."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import Runner, function_tool
from agents.mcp import MCPServerStdio

from kantan_agents import RUBRIC, Agent, AgentDefinition, SlashCommands, ToolRulesMode, UserRules, task_tool
from kantan_agents.errors import CommandNotRunnableError, ToolNotAllowedError, UnknownCommandError
from kantan_agents.middleware.slash_commands.rules import user_layers
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.tool_rules import BASE, RuleLayers, ToolFacts, ToolRules

SERVER = Path(__file__).parents[1] / "mcp_server.py"
DO_EVIL = "/evil now"


@pytest.fixture
def ran() -> list[str]:
    return []


@pytest.fixture
def evil(ran: list[str]) -> Any:
    @function_tool(name_override="evil")
    def run(text: str) -> str:
        """Do something unwanted."""
        ran.append(text)
        return "done"

    return run


def commands(rules: Any = ToolRulesMode.ALLOW_ALL) -> SlashCommands:
    return SlashCommands(rules)


def say(*texts: str) -> ScriptedModel:
    return ScriptedModel([[assistant_message(text)] for text in texts])


async def test_the_task_of_a_delegated_agent_is_not_a_command(evil: Any, ran: list[str]) -> None:
    arguments = {"description": "d", "prompt": DO_EVIL, "subagent_type": "worker"}
    model = ScriptedModel(
        [
            [function_call("Task", arguments, call_id="1")],
            [assistant_message("child answered")],
            [assistant_message("Done.")],
        ]
    )
    worker = AgentDefinition.loads("---\nname: worker\ndescription: Works.\n---\nYou work.")
    lead = Agent("lead", "x", model=model, tools=[task_tool([worker]), evil], middleware=[commands()])
    await lead.run_async("Go")
    assert ran == []
    assert model.calls[1].input == [{"role": "user", "content": DO_EVIL}]


@pytest.mark.parametrize("text", [DO_EVIL, "//evil"])
async def test_an_agent_run_by_a_tool_takes_no_commands(text: str, evil: Any, ran: list[str]) -> None:
    model = say("I am asked.")
    inner = Agent("inner", "x", model=model, tools=[evil], middleware=[commands()])

    @function_tool
    async def ask(text: str) -> str:
        return str((await inner.run_async(text))["result"].final_output)

    @function_tool
    def ask_sync(text: str) -> str:
        return str(inner.run(text)["result"].final_output)

    for tool in (ask, ask_sync):
        inner.sdk_agent.model = say("I am asked.")
        script: list[Any] = [
            [function_call(tool.name, {"text": text}, call_id="1")],
            [assistant_message("Done.")],
        ]
        outer = Agent("outer", "x", model=ScriptedModel(script), tools=[tool])
        await outer.run_async("Go")
        assert inner.sdk_agent.model.last_call.input == [{"role": "user", "content": text}]
    assert ran == []


async def test_an_agent_run_by_a_tool_of_an_sdk_run_takes_no_commands(evil: Any, ran: list[str]) -> None:
    inner = Agent("inner", "x", model=say("I am asked."), tools=[evil], middleware=[commands()])

    @function_tool
    async def ask(text: str) -> str:
        return str((await inner.run_async(text))["result"].final_output)

    script: list[Any] = [[function_call("ask", {"text": DO_EVIL}, call_id="1")], [assistant_message("Done.")]]
    await Runner.run(agents.Agent(name="outer", tools=[ask], model=ScriptedModel(script)), "Go")
    assert ran == []


async def test_an_agent_run_by_a_guardrail_hook_or_span_of_an_sdk_run_takes_no_commands(
    evil: Any, ran: list[str]
) -> None:
    inner = Agent("inner", "x", model=say("1", "2", "3"), tools=[evil], middleware=[commands()])

    async def ask(text: str) -> str:
        return str((await inner.run_async(text))["result"].final_output)

    @agents.output_guardrail
    async def check(_context: Any, _agent: Any, output: Any) -> agents.GuardrailFunctionOutput:
        return agents.GuardrailFunctionOutput(await ask(output), tripwire_triggered=False)

    class Hooks(agents.RunHooks[Any]):
        async def on_agent_end(self, context: Any, agent: Any, output: Any) -> None:
            await ask(output)

    @function_tool(name_override="ask")
    async def tool(text: str) -> str:
        with agents.custom_span("mine"):
            return await ask(text)

    guarded = agents.Agent(name="outer", model=say(DO_EVIL), output_guardrails=[check])
    await Runner.run(guarded, "Go")
    await Runner.run(agents.Agent(name="outer", model=say(DO_EVIL)), "Go", hooks=Hooks())
    script: list[Any] = [[function_call("ask", {"text": DO_EVIL}, call_id="1")], [assistant_message("Done.")]]
    await Runner.run(agents.Agent(name="outer", tools=[tool], model=ScriptedModel(script)), "Go")
    assert ran == []
    assert len(inner.sdk_agent.model.calls) == 3


async def test_commands_work_inside_a_trace_but_not_inside_a_span(evil: Any, ran: list[str]) -> None:
    agent = Agent("a", "x", model=say("Hi."), tools=[evil], middleware=[commands()])
    with agents.trace("mine"):
        await agent.run_async("/evil traced")
        with agents.custom_span("mine"):
            await agent.run_async("/evil in a span")
    assert ran == ["traced"]


async def test_an_agent_as_tool_and_a_hand_off_target_take_no_commands(evil: Any, ran: list[str]) -> None:
    target = Agent("target", "x", model=say("One.", "Two."), tools=[evil], middleware=[commands()])
    tool = target.sdk_agent.as_tool("helper", "Helps.")
    script = [
        [function_call("helper", {"input": DO_EVIL}, call_id="1")],
        [function_call("transfer_to_target", {}, call_id="2")],
    ]
    outer = Agent("outer", "x", model=ScriptedModel(script), tools=[tool], handoffs=[target])
    context = await outer.run_async([{"role": "user", "content": DO_EVIL}])
    assert context["result"].final_output == "Two."
    assert ran == []


async def test_a_judge_takes_no_commands(evil: Any, ran: list[str]) -> None:
    model = say('{"score": 1, "comments": []}')
    judge = Agent("judge", "x", model=model, output_type=RUBRIC, tools=[evil], middleware=[commands()])
    await judge.run_async(DO_EVIL)
    assert ran == []


async def test_a_run_after_another_run_takes_commands(evil: Any, ran: list[str]) -> None:
    agent = Agent("a", "x", model=say("Hi."), tools=[evil], middleware=[commands()])
    await agent.run_async("Hello")
    await agent.run_async(DO_EVIL)
    assert ran == ["now"]


async def test_an_agent_that_a_command_delegates_to_obeys_the_rules_for_models(
    evil: Any, ran: list[str]
) -> None:
    model = ScriptedModel(
        [[function_call("evil", {"text": "x"}, call_id="1")], [assistant_message("I may not.")]]
    )
    worker = AgentDefinition.loads("---\nname: worker\ndescription: Works.\n---\nYou work.")
    lead = Agent("lead", "x", model=model, tools=[task_tool([worker]), evil], middleware=[commands()])
    context = await lead.run_async(
        "/Task --subagent-type worker --description d do it", {"tool_rules": {"deny": ["evil"]}}
    )
    assert "I may not." in context["result"].final_output
    assert ran == []


async def test_an_agent_as_tool_that_waits_for_an_approval_raises_an_error() -> None:
    @function_tool(needs_approval=True)
    def careful() -> str:
        return "done"

    script = [[function_call("careful", {}, call_id="1")]]
    inner = agents.Agent(name="inner", tools=[careful], model=ScriptedModel(script))
    outer = Agent("a", "x", model=say(), tools=[inner.as_tool("helper", "Helps.")], middleware=[commands()])
    with pytest.raises(CommandNotRunnableError, match="waits for an approval"):
        await outer.run_async("/helper go")


async def test_the_limits_of_a_subagent_file_apply_to_users(evil: Any, ran: list[str]) -> None:
    definition = AgentDefinition.loads("---\nname: w\ndescription: W.\ntools: Read\n---\nYou work.")
    agent = Agent.from_definition(definition, tools=[evil], model=say(), middleware=[commands()])
    with pytest.raises(ToolNotAllowedError):
        await agent.run_async(DO_EVIL)
    with pytest.raises(ToolNotAllowedError):
        await agent.run_async(DO_EVIL, {"user_rules": UserRules({"allow": "*"})})
    assert ran == []


def test_provider_denials_apply_to_users_and_provider_allows_do_not_extend_user_rules() -> None:
    parsed = ToolRules.parse({"allow": ["offered"], "deny": ["guarded"]})
    standing = RuleLayers(((BASE, ToolRules()), ("provider p", parsed)))
    users = ToolRules.parse({"allow": ["evil", "guarded"]})

    def allowed(rules: ToolRules, context: Any) -> list[str]:
        layers = user_layers(rules, context, standing)
        names = ("evil", "guarded", "offered")
        return [name for name in names if layers.decide_tool(ToolFacts((name,))).allowed]

    assert allowed(users, {}) == ["evil"]
    assert allowed(users, {"user_rules": UserRules({"allow": ["offered"]})}) == ["evil", "offered"]
    assert allowed(ToolRules(), {}) == ["offered"]
    assert allowed(ToolRules(), {"user_rules": UserRules({"allow": "*"})}) == ["evil", "offered"]


class TestMCP:
    async def test_a_server_cannot_take_the_name_of_an_alias(self, tmp_path: Path) -> None:
        params: Any = {
            "command": sys.executable,
            "args": [str(SERVER), "stdio"],
            "env": {**os.environ, "CALLS": str(tmp_path / "calls")},
        }

        def note(text: str) -> str:
            return f"noted {text}"

        async with MCPServerStdio(params, name="files", client_session_timeout_seconds=30) as server:
            around = [SlashCommands({}, aliases={"delete": "note"})]
            agent = Agent("a", "x", model=say(), tools=[note], mcp_servers=[server], middleware=around)
            for text, expected in (
                ("/delete it", "noted it"),
                ("/mcp__files__delete b.txt", "deleted b.txt"),
                ("/help", "/mcp__files__delete PATH"),
            ):
                assert expected in (await agent.run_async(text))["result"].final_output

    async def test_tools_of_servers_are_commands(self, tmp_path: Path) -> None:
        log = tmp_path / "calls"
        params: Any = {
            "command": sys.executable,
            "args": [str(SERVER), "stdio"],
            "env": {**os.environ, "CALLS": str(log)},
        }
        async with MCPServerStdio(params, name="files", client_session_timeout_seconds=30) as server:
            rules = {"allow": ["read"], "params": {"mcp__files__read": {"limit": {"maximum": 50}}}}
            agent = Agent("a", "x", model=say(), mcp_servers=[server], middleware=[commands(rules)])
            context = await agent.run_async("/read notes.txt 20", {"tool_rules": {"deny": "*"}})
            assert "content of notes.txt" in context["result"].final_output
            assert log.read_text().splitlines() == ["read notes.txt 20"]
            context = await agent.run_async("/mcp__files__read path=b.txt")
            assert "content of b.txt" in context["result"].final_output
            assert "/read PATH [--limit LIMIT]" in (await agent.run_async("/help"))["result"].final_output
            for text, error in (("/delete b.txt", ToolNotAllowedError), ("/nothing", UnknownCommandError)):
                with pytest.raises(error):
                    await agent.run_async(text)
            with pytest.raises(Exception, match=r"\[E1[1-7]\]"):
                await agent.run_async("/read b.txt 51")
            assert len(log.read_text().splitlines()) == 2
