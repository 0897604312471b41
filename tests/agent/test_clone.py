"""``Agent.clone``: an agent like another one, with some options changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import agents
import pytest
from pydantic import BaseModel

from kantan_agents import Agent, AgentDefinition, Event, Next, Prompt, Run, agent_of, task_tool
from kantan_agents.errors import InvalidOptionError
from kantan_agents.middleware import Deadline
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.tool_rules import ToolRules

FILE = """---
name: reader
description: Reads.
tools: read
maxTurns: 1
context:
  place: Oslo
---
Read in {{ $ctx.place }}.
"""


class Report(BaseModel):
    title: str


def say(text: str) -> list[Any]:
    return [assistant_message(text)]


def tool(name: str) -> agents.FunctionTool:
    def function() -> str:
        return name

    return agents.function_tool(function, name_override=name)


async def test_a_clone_keeps_all_options_that_are_not_changed() -> None:
    model = ScriptedModel([say("1"), say("2")])
    agent = Agent(
        "a",
        "Hi {{ $ctx.who }}",
        model=model,
        model_settings=agents.ModelSettings(temperature=0.5),
        tools=[tool("one"), agents.WebSearchTool()],
        metadata={"team": "x"},
        history=2,
        handoff_description="d",
        tool_use_behavior="stop_on_first_tool",
    )
    copied = agent.clone(name="b")
    context = await copied.run_async("hi", {"who": "Bo"})
    assert (copied.name, copied.sdk_agent.name, agent.name) == ("b", "b", "a")
    assert model.calls[-1].system_instructions == "Hi Bo"
    assert [one.name for one in model.calls[-1].tools] == ["one", "web_search"]
    assert (copied.handoff_description, copied.tool_use_behavior) == ("d", "stop_on_first_tool")
    assert copied.model_settings.temperature == 0.5
    assert copied.trace_metadata(context, "r")["team"] == "x"
    assert (copied.history, copied.handoffs) == (2, [])


async def test_a_clone_has_the_changed_options_and_the_original_does_not() -> None:
    model = ScriptedModel([say("1"), say("2")])
    agent = Agent("a", "Long.", model=model, tools=[tool("one")])
    brief = agent.clone(instructions=Prompt("p", "v2", "Short."), tools=[*agent.tools, tool("two")])
    for one, text, names in ((agent, "Long.", ["one"]), (brief, "Short.", ["one", "two"])):
        await one.run_async("hi")
        assert model.calls[-1].system_instructions == text
        assert [shown.name for shown in model.calls[-1].tools] == names


async def test_the_tools_of_a_clone_obey_the_clones_own_rules() -> None:
    calls: list[Any] = []

    def on_violation(violation: Any) -> Any:
        calls.append(violation.tool)
        return "feedback"

    model = ScriptedModel([[function_call("one", {"x": 1}, call_id="c")], say("end")])
    agent = Agent("a", "x", model=model, tools=[tool("one")])
    copied = agent.clone(tools=list(agent.tools), on_rule_violation=on_violation)
    assert copied.tools[0] is not agent.tools[0]
    await copied.run_async("hi", {"tool_rules": {"params": {"one": {"x": {"enum": [2]}}}}})
    assert calls == ["one"]


@pytest.mark.parametrize("given", ["agent.tools", "agent.sdk_agent.tools"])
async def test_tools_taken_from_one_agent_obey_the_rules_of_the_agent_they_are_given_to(given: str) -> None:
    asked: list[str] = []

    def on_violation(violation: Any) -> Any:
        asked.append(violation.agent)
        return "feedback"

    model = ScriptedModel([[function_call("one", {}, call_id="c")], say("end")])
    first = Agent("first", "x", tools=[tool("one"), Agent("inner", "x").as_tool("ask")])
    if given == "agent.tools":
        first.tools[0].needs_approval = True  # type: ignore[union-attr]
        taken: Any = first.tools
    else:
        taken = [*first.sdk_agent.held_tools, *first.sdk_agent.tools]
    second = Agent("second", "x", model=model, tools=taken, on_rule_violation=on_violation)
    assert all(one is not other for one, other in zip(second.tools, first.tools, strict=True))
    books = [one.on_invoke_tool.book for one in second.tools]  # type: ignore[union-attr]
    assert books == [second, second]
    assert second.tools[0].needs_approval is (given == "agent.tools")  # type: ignore[union-attr]


async def test_a_clone_shares_middleware_and_not_subscriptions() -> None:
    seen: list[Event] = []
    runs: list[str] = []

    async def note(run: Run, call_next: Next) -> None:
        runs.append(run.agent.name)
        await call_next(run)

    agent = Agent("a", "x", model=ScriptedModel([say("1"), say("2")]), middleware=[note])
    agent.subscribe(seen.append)
    await agent.clone(name="b").run_async("hi")
    assert (runs, seen) == (["b"], [])
    await agent.run_async("hi")
    assert runs == ["b", "a"]
    assert seen


def test_a_clone_is_under_the_standing_rules_of_the_agent() -> None:
    agent = Agent("a", "x")
    agent.standing_rules = agent.standing_rules.with_limits(("limit", ToolRules.parse({"deny": ["one"]})))
    assert not agent.clone(tools=[tool("one")]).explain_tool("one").allowed


async def test_hand_offs_are_copied_as_they_are_now() -> None:
    first, second = Agent("first", "x"), Agent("second", "x")
    agent = Agent("a", "x", handoffs=[first])
    agent.handoffs.append(second)
    copied = agent.clone()
    agent.handoffs.clear()
    assert copied.handoffs == [first, second]
    assert [one.agent_name for one in copied.sdk_agent.handoffs] == ["first", "second"]  # type: ignore[union-attr]


async def test_a_changed_output_type_and_model_bring_their_own_defaults() -> None:
    agent = Agent("a", "x", model=ScriptedModel([say("{}")]))
    other = ScriptedModel([say('{"title": "t"}')])
    context = await agent.clone(output_type=Report, model=other, output_dest="report").run_async("hi")
    assert context["report"] == {"title": "t"}
    assert agent.clone(output_type=Report).clone(output_type=None).output_type is None


@pytest.mark.parametrize(
    ("option", "near"), [("instrctions", "instructions"), ("model_setings", "model_settings"), ("zzz", None)]
)
def test_an_unknown_option_is_e75_with_the_nearest_name(option: str, near: str | None) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        Agent("a", "x").clone(**{option: 1})
    hint = f"; the nearest name is {near!r}" if near else ""
    assert str(caught.value) == f"[kantan-agents][E75] Invalid option {option}: there is no such option{hint}"


def test_the_values_of_changed_options_are_checked() -> None:
    with pytest.raises(InvalidOptionError, match="history"):
        Agent("a", "x").clone(history=-1)


def test_a_subclass_keeps_its_type_and_its_attributes() -> None:
    class Support(Agent):
        def __init__(self, team: str) -> None:
            super().__init__("support", f"Help {team}.")
            self.team = team

        def greeting(self) -> str:
            return f"{self.name} of {self.team}"

    copied = Support("A").clone(name="second")
    assert type(copied) is Support
    assert (copied.greeting(), copied.instructions) == ("second of A", "Help A.")


async def test_a_clone_of_an_agent_from_a_file_keeps_the_limits_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "reader.md"
    path.write_text(FILE)
    model = ScriptedModel([say("1"), say("2"), say("3")])
    agent = Agent.from_definition(
        AgentDefinition.load(path), model=model, tools=[tool("read"), tool("write")]
    )
    copied = agent.clone(name="b", middleware=[Deadline(60)], tools=[tool("read"), tool("erase")])
    for one in (agent, copied, copied.clone(renderer=lambda text, context: text)):
        context = await one.run_async("hi")
        assert [shown.name for shown in model.calls[-1].tools] == ["read"]
        assert context["place"] == "Oslo"
        assert "place: Oslo" in str(model.calls[-1].system_instructions)
        assert one.pipeline.names.count("definition") == 1
    assert copied.given.middleware != agent.given.middleware


@pytest.mark.parametrize("changes", [{}, {"middleware": []}, {"tool_providers": None}, {"name": "other"}])
async def test_a_clone_of_a_delegated_agent_is_under_the_same_ceiling(changes: dict[str, Any]) -> None:
    removed: list[str] = []

    def remove() -> str:
        removed.append("x")
        return "removed"

    async def clone(context: agents.RunContextWrapper[Any]) -> str:
        agent = agent_of(context.agent)  # type: ignore[attr-defined]
        assert agent is not None
        model = ScriptedModel([[function_call("remove", {}, call_id="c")], say("end")])
        await agent.clone(model=model, **changes).run_async("Go", {})
        return "done"

    arguments = {"description": "d", "prompt": "p", "subagent_type": "helper"}
    steps = [
        [function_call("Task", arguments, call_id="t")],
        [function_call("clone", {}, call_id="k")],
        say("done"),
        say("end"),
    ]
    helper = AgentDefinition(name="helper", description="Helps.", system_prompt="x")
    tools = [remove, agents.function_tool(clone, failure_error_function=None), task_tool([helper])]
    boss = Agent("boss", "x", model=ScriptedModel(steps), tools=tools, tool_providers=None)
    context = await boss.run_async("Go", {"tool_rules": {"deny": ["remove"]}})
    assert (context["result"].final_output, removed) == ("end", [])
