from __future__ import annotations

import inspect
import json
import threading
from functools import partial
from pathlib import Path
from typing import Any

import agents
import pytest
from agents.mcp import MCPServerStdio
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent, AgentDefinition
from kantan_agents.errors import InvalidOptionError, ToolNameRequiredError, ToolSchemaError
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.tools.coerce import coerce_tool

ours_and_the_sdks = pytest.mark.parametrize("ours", [True, False])


def helper(ours: bool, model: Any, **options: Any) -> Any:
    if ours:
        return Agent("Geo helper", "Know cities.", model=model, **options)
    return agents.Agent(name="Geo helper", instructions="Know cities.", model=model, **options)


def asking(*calls: Any) -> ScriptedModel:
    return ScriptedModel([*calls, [assistant_message("done")]])


ASK = [function_call("geo_helper", {"input": "Where is Oslo?"}, call_id="c1")]


@ours_and_the_sdks
async def test_an_agent_in_tools_is_a_tool_with_its_name_and_the_model_gets_its_answer(ours: bool) -> None:
    inner = helper(
        ours, ScriptedModel([[assistant_message("In Norway.")]]), handoff_description="Knows cities."
    )
    model = asking(ASK)
    agent = Agent("boss", "Ask.", model=model, tools=[inner])
    context = await agent.run_async("hi")
    assert context["result"].final_output == "done"
    [tool] = model.calls[0].tools
    assert (tool.name, tool.description) == ("geo_helper", "Knows cities.")
    assert [item.output for item in context["result"].new_items if item.type == "tool_call_output_item"] == [
        "In Norway."
    ]


def test_agents_that_would_share_a_tool_name_are_refused_instead_of_one_being_lost() -> None:
    with pytest.raises(InvalidOptionError) as caught:
        Agent("boss", "Ask.", tools=[Agent("Geo 東京", "x"), Agent("Geo 大阪", "x")])
    assert "the agents 'Geo 東京' and 'Geo 大阪' would have the same tool name, geo___" in str(caught.value)
    same = Agent("boss", "Ask.", tools=[Agent("geo", "x"), Agent("geo", "y")])
    assert [tool.name for tool in same.unguarded_tools] == ["geo"]


def test_an_agent_without_a_letter_for_a_tool_name_is_refused_with_the_way_to_choose_one() -> None:
    with pytest.raises(InvalidOptionError) as caught:
        Agent("boss", "Ask.", tools=[Agent("翻訳者", "x")])
    assert "the agent '翻訳者' has no letter" in str(caught.value)
    assert "as_tool(tool_name=" in str(caught.value)


@ours_and_the_sdks
async def test_the_rules_of_the_run_apply_to_an_agent_in_tools_and_to_its_own_tools(ours: bool) -> None:
    called: list[str] = []

    def delete() -> str:
        """Delete it."""
        called.append("delete")
        return "deleted"

    function = delete if ours else agents.function_tool(delete)
    inner_model = ScriptedModel([[function_call("delete", {}, call_id="c1")], [assistant_message("x")]])
    inner = helper(ours, inner_model, tools=[function])
    agent = Agent("boss", "Ask.", model=asking(ASK), tools=[inner])
    await agent.run_async("hi", {"tool_rules": {"deny": ["delete"]}})
    assert called == []
    assert len(inner_model.calls) == 2

    hidden = Agent("boss", "Ask.", model=asking(ASK), tools=[helper(ours, ScriptedModel([]))])
    context = await hidden.run_async("hi", {"tool_rules": {"deny": ["geo_helper"]}})
    assert "E8" in json.dumps(context["result"].to_input_list())


@ours_and_the_sdks
async def test_an_agent_in_tools_shares_the_events_and_the_context_of_the_run(ours: bool) -> None:
    seen: list[Any] = []

    def look(wrapper: agents.RunContextWrapper[Any]) -> str:
        """Look."""
        seen.append(wrapper.context["city"])
        return "seen"

    function = look if ours else agents.function_tool(look)
    inner_model = ScriptedModel([[function_call("look", {}, call_id="c1")], [assistant_message("x")]])
    agent = Agent("boss", "Ask.", model=asking(ASK), tools=[helper(ours, inner_model, tools=[function])])
    events: list[Any] = []
    with agent.subscribe(events.append):
        await agent.run_async("hi", {"city": "Oslo"})
    assert seen == ["Oslo"]
    assert {event.tool for event in events if event.type == "tool_call_started"} == {"geo_helper", "look"}


@pytest.mark.parametrize(
    ("given_as_tool", "option"),
    [
        (MCPServerStdio({"command": "none"}, name="files"), r"mcp_servers=\[\.\.\.\]"),
        (agents.handoff(agents.Agent(name="other")), r"handoffs=\[\.\.\.\]"),
        (AgentDefinition("tester", "Tests."), "task_tool"),
        (Path("report.txt"), "tools of the SDK"),
    ],
)
def test_what_belongs_to_another_option_is_refused_at_once_with_the_name_of_that_option(
    given_as_tool: Any, option: str
) -> None:
    with pytest.raises(InvalidOptionError, match=rf"\[E75\] Invalid option tools: .*{option}"):
        Agent("a", "b", tools=[given_as_tool])


def nameless(*values: int) -> int:
    return sum(values)


@pytest.mark.parametrize(
    ("tool", "named"),
    [(lambda: 1, "<lambda>"), (partial(nameless, 1), "functools.partial"), (7, "7")],
)
def test_e4_names_the_tool_in_a_note_below_the_message_of_the_specification(tool: Any, named: str) -> None:
    with pytest.raises(ToolNameRequiredError) as caught:
        coerce_tool(tool)
    assert str(caught.value) == "[kantan-agents][E4] Tool must define name"
    assert named in caught.value.__notes__[0]


def free(query: str, filters: dict[str, Any]) -> str:
    """Search."""
    return query


def missing(query: "Nowhere", limit: int = 1) -> str:  # type: ignore[name-defined]  # noqa: F821, UP037
    """Search."""
    return str(query)


def strange(limit: int, connection: object = None, *, when: threading.Thread) -> str:
    """Search."""
    return str(limit)


def late(query: str, wrapper: agents.RunContextWrapper[Any]) -> str:
    """Search."""
    return query


def nested(queries: list[dict[str, int]], *more: int) -> str:
    """Search."""
    return str(queries)


@pytest.mark.parametrize(
    ("function", "parameter"),
    [(free, "filters"), (missing, "query"), (strange, "when"), (late, "wrapper"), (nested, "queries")],
)
def test_a_parameter_that_no_schema_describes_is_e29_with_the_tool_and_the_parameter(
    function: Any, parameter: str
) -> None:
    with pytest.raises(ToolSchemaError) as caught:
        Agent("a", "b", tools=[function])
    assert str(caught.value).startswith(
        f"[kantan-agents][E29] Tool {function.__name__} has no usable schema: parameter {parameter}: "
    )
    assert caught.value.parameters == (parameter,)
    assert caught.value.__cause__ is not None


@given(st.lists(st.booleans(), min_size=1, max_size=6))
def test_e29_names_all_the_parameters_without_a_schema_and_no_others(are_free: list[bool]) -> None:
    hints = {f"p{place}": dict[str, Any] if is_free else int for place, is_free in enumerate(are_free)}

    def search() -> None:
        """Search."""

    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=hint)
        for name, hint in hints.items()
    ]
    search.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    search.__annotations__ = hints
    wrong = tuple(name for name, hint in hints.items() if hint is not int)
    if not wrong:
        assert coerce_tool(search).name == "search"
        return
    with pytest.raises(ToolSchemaError) as caught:
        coerce_tool(search)
    assert caught.value.parameters == wrong
