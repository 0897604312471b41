"""The tools of an Agent are guarded when they are first needed, once, and as they stand then."""

from __future__ import annotations

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import agents
import pytest
from agents import FunctionTool, RunContextWrapper, Runner, WebSearchTool, function_tool

from kantan_agents import Agent, rule_parameter
from kantan_agents.bridge import own_tools
from kantan_agents.errors import InvalidOptionError
from kantan_agents.testing import ScriptedModel, assistant_message
from tests.tools.conftest import calls, outputs

pytestmark = pytest.mark.anyio


def tool_named(name: str, log: list[str] | None = None, **options: Any) -> FunctionTool:
    def act(value: str) -> str:
        (log if log is not None else []).append(value)
        return f"{name}: {value}"

    return function_tool(act, name_override=name, **options)


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Hear of each tool that is guarded for an agent."""
    names: list[str] = []
    really: Callable[..., Any] = own_tools.guard

    def guard(tool: Any, book: Any = None) -> Any:
        names.append(tool.name)
        return really(tool, book)

    monkeypatch.setattr(own_tools, "guard", guard)
    return names


async def shown(agent: Agent) -> list[Any]:
    return await agent.sdk_agent.get_all_tools(RunContextWrapper({}))


async def test_plain_tools_are_guarded_when_they_are_needed_and_then_once(guarded: list[str]) -> None:
    agent = Agent(
        "a",
        "x",
        tools=[tool_named("t"), tool_named("u")],
        model=ScriptedModel([[assistant_message("ok")]] * 2),
    )
    assert guarded == []
    await agent.run_async("hi")
    await agent.run_async("hi")
    assert guarded == ["t", "u"]


async def test_tools_that_the_sdk_has_to_find_are_guarded_at_once(guarded: list[str]) -> None:
    Agent("a", "x", tools=[tool_named("t", is_enabled=lambda ctx, agent: True), tool_named("u")])
    assert guarded == ["t"]


async def test_what_is_left_on_the_sdk_agent_is_guarded_already() -> None:
    log: list[str] = []
    tool = tool_named("t", log, is_enabled=lambda ctx, agent: True)
    agent = Agent("a", "x", tools=[tool, tool_named("u", log)], model=calls(("t", {"value": "v"})))
    (inside,) = agent.sdk_agent.tools
    foreign = agents.Agent("b", model=calls(("t", {"value": "v"})), tools=[inside])
    await Runner.run(foreign, "hi", context={"tool_rules": {"deny": ["t"]}})
    assert log == []


def test_a_declaration_that_does_not_fit_is_told_when_the_agent_is_made() -> None:
    @function_tool
    @rule_parameter("path")
    def read(file: str) -> str:
        return file

    with pytest.raises(InvalidOptionError, match="tool read has no parameter 'path'"):
        Agent("a", "x", tools=[read])


async def test_threads_that_run_an_agent_for_the_first_time_get_the_same_tools() -> None:
    agent = Agent("a", "x", tools=[tool_named(f"t{number}") for number in range(200)])
    together = Barrier(8)

    def first_use() -> list[int]:
        together.wait()
        return [id(tool) for tool in agent.sdk_agent._own_tools.held]

    with ThreadPoolExecutor(8) as threads:
        seen = [future.result() for future in [threads.submit(first_use) for _ in range(8)]]
    assert all(ids == seen[0] for ids in seen)


async def test_a_tool_changed_before_the_first_run_counts_as_it_is_then() -> None:
    log: list[str] = []
    tool = tool_named("t", log)
    model = calls(("t", {"value": "v"}))
    agent = Agent("a", "x", tools=[tool], model=model)
    tool.needs_approval = True
    await agent.run_async("hi")
    assert log == []


@pytest.mark.parametrize("ran_before", [False, True])
async def test_a_tool_that_is_switched_off_is_not_shown(ran_before: bool) -> None:
    tool = tool_named("t")
    agent = Agent("a", "x", tools=[tool, tool_named("u")])
    if ran_before:
        assert [each.name for each in await shown(agent)] == ["t", "u"]
    tool.is_enabled = False
    assert [each.name for each in await shown(agent)] == ["u"]


async def test_tools_stay_in_their_order_and_are_given_back_as_they_were_given() -> None:
    tools = [
        tool_named("a"),
        tool_named("b", is_enabled=lambda ctx, agent: True),
        WebSearchTool(),
        tool_named("c"),
    ]
    agent = Agent("a", "x", tools=tools)
    assert [tool.name for tool in await shown(agent)] == ["a", "b", "web_search", "c"]
    given = agent.sdk_agent.given_tools
    assert all(tool is own for tool, own in zip(given, tools, strict=True))


async def test_a_deep_copy_takes_no_other_tool_for_one_of_its_own() -> None:
    agent = Agent("a", "x", tools=[tool_named("t", is_enabled=lambda ctx, agent: True)])
    await shown(agent)
    copied = copy.deepcopy(agent.sdk_agent._own_tools)
    late = tool_named("u")
    copied._guarded.places[id(late)] = 0  # as if it had been made where the original's tool stood
    assert not copied.has(late)
    assert copied.as_given(late) is late


async def test_a_clone_with_tools_of_its_own_has_no_others() -> None:
    agent = Agent("a", "x", tools=[tool_named("t")])
    wrapper = RunContextWrapper({})
    assert [tool.name for tool in await agent.sdk_agent.clone(name="b").get_all_tools(wrapper)] == ["t"]
    own = agent.sdk_agent.clone(tools=[tool_named("u")])
    assert [tool.name for tool in await own.get_all_tools(wrapper)] == ["u"]
    assert [tool.name for tool in own.given_tools] == ["u"]
    assert [tool.name for tool in await own.clone(name="c").get_all_tools(wrapper)] == ["u"]


async def test_the_rules_hold_in_the_first_run() -> None:
    log: list[str] = []
    model = calls(("t", {"value": "v"}))
    agent = Agent("a", "x", tools=[tool_named("t", log)], model=model)
    await agent.run_async("hi", {"tool_rules": {"deny": ["t"]}})
    assert log == []
    assert "[E8]" in outputs(model)[0]
