"""``Agent.as_tool``: the SDK's ``as_tool`` with names made of the agent."""

from __future__ import annotations

from typing import Any

import agents
import pytest

from kantan_agents import Agent, AgentDefinition
from kantan_agents.errors import InvalidOptionError
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from tests.conftest import TraceDB


def say(text: str) -> list[Any]:
    return [assistant_message(text)]


def asking(name: str = "ask") -> ScriptedModel:
    return ScriptedModel([[function_call(name, {"input": "q"}, call_id="c")], say("end")])


def outputs(result: Any) -> list[Any]:
    return [item.output for item in result.new_items if item.type == "tool_call_output_item"]


async def extract(result: Any) -> str:
    return f"got {result.final_output}"


@pytest.mark.parametrize("caller", ["ours", "the SDK's"])
async def test_the_tool_answers_with_the_same_context_in_the_same_trace(caller: str, traces: TraceDB) -> None:
    inner = Agent("inner", "Inner {{ $ctx.who }}", model=ScriptedModel([say("42")]))
    ask = inner.as_tool("ask", "Ask.", custom_output_extractor=extract)
    if caller == "ours":
        outer = Agent("outer", "x", model=asking(), tools=[ask])
        result = (await outer.run_async("hi", {"who": "Bo"}))["result"]
    else:
        plain = agents.Agent(name="outer", model=asking(), tools=[ask])
        result = await agents.Runner.run(plain, "hi", context={"who": "Bo"})
    assert outputs(result) == ["got 42"]
    assert inner.model.calls[-1].system_instructions == "Inner Bo"  # type: ignore[union-attr]
    assert len(traces.traces()) == 1


async def test_the_rules_of_the_calling_run_apply_to_the_agents_tools() -> None:
    removed: list[str] = []

    def remove() -> str:
        removed.append("x")
        return "removed"

    model = ScriptedModel([say("42")])
    inner = Agent("inner", "x", model=model, tools=[remove])
    outer = Agent("outer", "x", model=asking(), tools=[inner.as_tool("ask")])
    await outer.run_async("hi", {"tool_rules": {"deny": ["remove"]}})
    assert (model.calls[-1].tools, removed) == ([], [])


async def test_the_rules_can_deny_the_tool_itself() -> None:
    inner = Agent("inner", "x", model=ScriptedModel([]))
    model = ScriptedModel([say("end")])
    await Agent("outer", "x", model=model, tools=[inner.as_tool("ask")]).run_async(
        "hi", {"tool_rules": {"deny": ["ask"]}}
    )
    assert model.calls[-1].tools == []


async def test_a_call_can_wait_for_an_approval() -> None:
    inner = Agent("inner", "x", model=ScriptedModel([say("42")]))
    outer = Agent("outer", "x", model=asking(), tools=[inner.as_tool("ask", needs_approval=True)])
    context = await outer.run_async("hi")
    state = context["result"].to_state()
    state.approve(state.get_interruptions()[0])
    context = await outer.run_async(state, context)
    assert outputs(context["result"])[-1] == "42"


def test_name_and_description_are_those_of_the_agent_by_default() -> None:
    tool = Agent("Order Bot", "x", handoff_description="Knows orders.").as_tool()
    assert (tool.name, tool.description) == ("order_bot", "Knows orders.")
    assert Agent("a", "x").as_tool(tool_description="d").description == "d"


def test_an_option_that_the_sdk_does_not_have_is_e75_with_the_nearest_name() -> None:
    with pytest.raises(InvalidOptionError, match="the nearest name is 'needs_approval'"):
        Agent("a", "x").as_tool(need_approval=True)


@pytest.mark.parametrize("form", ["agent", "as_tool", "clone", "sdk_agent"])
async def test_the_turn_limit_of_a_file_holds_for_the_tool(form: str) -> None:
    made: list[str] = []

    def look() -> str:
        made.append("x")
        return "more"

    definition = AgentDefinition(name="inner", description="d", system_prompt="x", max_turns=2)
    looking = [[function_call("look", {}, call_id=f"l{number}")] for number in range(4)]
    inner = Agent.from_definition(definition, model=ScriptedModel([*looking, say("42")]), tools=[look])
    tools: dict[str, Any] = {
        "agent": lambda: inner,
        "as_tool": lambda: inner.as_tool("inner"),
        "clone": lambda: inner.clone(name="inner").as_tool("inner"),
        "sdk_agent": lambda: inner.sdk_agent.as_tool("inner", "d"),
    }
    outer = Agent("outer", "x", model=asking("inner"), tools=[tools[form]()])
    await outer.run_async("hi")
    assert len(made) == 2


async def test_a_turn_limit_of_the_caller_wins_over_that_of_the_file() -> None:
    def look() -> str:
        return "more"

    definition = AgentDefinition(name="inner", description="d", system_prompt="x", max_turns=1)
    model = ScriptedModel([[function_call("look", {}, call_id="l")], say("42")])
    inner = Agent.from_definition(definition, model=model, tools=[look])
    outer = Agent("outer", "x", model=asking("inner"), tools=[inner.as_tool("inner", max_turns=3)])
    assert outputs((await outer.run_async("hi"))["result"]) == ["42"]
