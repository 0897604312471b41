"""The tools of an Agent are guarded once, on first use, in their state at the creation of the Agent."""

from __future__ import annotations

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import MethodType
from typing import Any

import agents
import pytest
from agents import FunctionTool, RunContextWrapper, Runner, WebSearchTool, function_tool

from kantan_agents import Agent, rule_parameter
from kantan_agents.agent.bridge import own_tools
from kantan_agents.errors import InvalidOptionError
from kantan_agents.testing import ScriptedModel, assistant_message
from tests.tools.conftest import calls, outputs


def tool_named(name: str, log: list[str] | None = None, **options: Any) -> FunctionTool:
    def act(value: str) -> str:
        (log if log is not None else []).append(value)
        return f"{name}: {value}"

    return function_tool(act, name_override=name, **options)


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the names of the tools that have been guarded so far."""
    names: list[str] = []

    def recording(really: Callable[..., Any]) -> Callable[..., Any]:
        def guard(tool: Any, *more: Any) -> Any:
            names.append(tool.name)
            return really(tool, *more)

        return guard

    for name in ("guard", "guard_function"):
        monkeypatch.setattr(own_tools, name, recording(getattr(own_tools, name)))
    return names


async def shown(agent: Agent) -> list[Any]:
    return await agent.sdk_agent.get_all_tools(RunContextWrapper({}))


async def test_plain_tools_are_guarded_once_and_on_first_use(guarded: list[str]) -> None:
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


async def test_tools_that_the_sdk_must_find_are_guarded_at_creation(guarded: list[str]) -> None:
    Agent("a", "x", tools=[tool_named("t", is_enabled=lambda ctx, agent: True), tool_named("u")])
    assert guarded == ["t"]


async def test_tools_on_the_sdk_agent_are_already_guarded() -> None:
    log: list[str] = []
    tool = tool_named("t", log, is_enabled=lambda ctx, agent: True)
    agent = Agent("a", "x", tools=[tool, tool_named("u", log)], model=calls(("t", {"value": "v"})))
    (inside,) = agent.sdk_agent.tools
    foreign = agents.Agent("b", model=calls(("t", {"value": "v"})), tools=[inside])
    await Runner.run(foreign, "hi", context={"tool_rules": {"deny": ["t"]}})
    assert log == []


def test_a_wrong_rule_parameter_fails_when_the_agent_is_created() -> None:
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


def refuse(data: Any) -> agents.ToolGuardrailFunctionOutput:
    return agents.ToolGuardrailFunctionOutput.reject_content("no")


CHANGES: dict[str, tuple[Any, Any]] = {
    "needs_approval": (True, False),
    "is_enabled": (False, True),
    "tool_input_guardrails": ([agents.ToolInputGuardrail(refuse)], None),
    "defer_loading": (False, True),
    "allowed_callers": (None, ["programmatic"]),
    "name": ("t", "u"),
    "description": ("before", "after"),
}


@pytest.mark.parametrize("field", CHANGES)
@pytest.mark.parametrize("ran_before", [False, True])
async def test_later_changes_to_a_tool_do_not_reach_the_agent(field: str, ran_before: bool) -> None:
    before, after = CHANGES[field]
    tool = tool_named("t")
    setattr(tool, field, before)
    agent = Agent("a", "x", tools=[tool])
    if ran_before:
        await shown(agent)
    setattr(tool, field, after)
    other = Agent("b", "x", tools=[tool])
    (kept,) = agent.sdk_agent._own_tools.held
    assert getattr(kept, field) == before
    assert [getattr(each, field) for each in (*other.sdk_agent._own_tools.held, *other.sdk_agent.tools)] == [
        after
    ]


@pytest.mark.parametrize("field", ["needs_approval", "tool_input_guardrails"])
async def test_relaxing_a_tool_after_creation_has_no_effect_on_the_agent(field: str) -> None:
    log: list[str] = []
    tool = tool_named("t", log)
    setattr(tool, field, CHANGES[field][0])
    agent = Agent("a", "x", tools=[tool], model=calls(("t", {"value": "v"})))
    setattr(tool, field, CHANGES[field][1])
    await agent.run_async("hi")
    assert log == []


async def test_rules_use_the_name_a_tool_had_at_creation() -> None:
    log: list[str] = []
    tool = tool_named("delete", log)
    agent = Agent("a", "x", tools=[tool], model=calls(("delete", {"value": "v"})))
    tool.name = "read"
    await agent.run_async("hi", {"tool_rules": {"deny": ["delete"]}})
    assert log == []


async def in_time(value: str) -> str:
    return value


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("timeout_seconds", -1.0, ValueError),
        ("params_json_schema", {"type": "object", "additionalProperties": True}, agents.UserError),
    ],
)
def test_a_tool_that_cannot_be_copied_fails_when_the_agent_is_created(
    field: str, value: Any, error: type[Exception]
) -> None:
    tool = function_tool(in_time)
    setattr(tool, field, value)
    with pytest.raises(error):
        Agent("a", "x", tools=[tool])


async def test_a_method_bound_to_its_tool_is_bound_to_the_copy() -> None:
    bound_to: list[Any] = []

    async def invoke(self: Any, ctx: Any, arguments: str) -> str:
        bound_to.append(self)
        return "ok"

    tool = tool_named("t")
    tool.on_invoke_tool = MethodType(invoke, tool)
    agent = Agent("a", "x", tools=[tool], model=calls(("t", {"value": "v"})))
    await agent.run_async("hi")
    assert [type(each) for each in bound_to] == [FunctionTool]
    assert bound_to[0] is not tool


async def test_a_tool_that_creates_an_agent_while_it_is_copied_does_not_deadlock() -> None:
    class Invoker:
        def __getattr__(self, name: str) -> Any:
            if name == "__agents_bind_function_tool__":
                inner = Agent("inner", "x", tools=[tool_named("u")])
                assert len(inner.sdk_agent._own_tools.held) == 1
            raise AttributeError(name)

        async def __call__(self, ctx: Any, arguments: str) -> str:
            return "ok"

    tool = tool_named("t")
    tool.on_invoke_tool = Invoker()
    agent = Agent("a", "x", tools=[tool])
    assert [each.name for each in await shown(agent)] == ["t"]


@pytest.mark.parametrize("ran_before", [False, True])
async def test_a_disabled_tool_is_not_shown(ran_before: bool) -> None:
    tool = tool_named("t")
    agent = Agent("a", "x", tools=[tool, tool_named("u")])
    if ran_before:
        assert [each.name for each in await shown(agent)] == ["t", "u"]
    tool.is_enabled = False
    assert [each.name for each in await shown(agent)] == ["u"]


async def test_tools_keep_their_order_and_are_returned_unguarded() -> None:
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


async def test_a_deep_copy_does_not_mistake_another_tool_for_one_of_its_tools() -> None:
    agent = Agent("a", "x", tools=[tool_named("t", is_enabled=lambda ctx, agent: True)])
    await shown(agent)
    copied = copy.deepcopy(agent.sdk_agent._own_tools)
    late = tool_named("u")
    copied._guarded.places[id(late)] = 0  # as if it had the memory address of the original's tool
    assert not copied.has(late)
    assert copied.as_given(late) is late


async def test_a_clone_with_its_own_tools_has_no_others() -> None:
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
