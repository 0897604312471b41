"""``skills`` of a subagent file: the agent gets the skills it names, and its subagents do not get them."""

from __future__ import annotations

from typing import Any

import pytest

from kantan_agents import Agent, AgentDefinition, Skill, SkillLoader, task_tool
from kantan_agents.errors import InvalidOptionError
from kantan_agents.testing import ScriptedModel
from tests.tools.skills.conftest import call, fill, outputs, shell, shown

LOADER = SkillLoader(
    (),
    builtin=[
        Skill("forms", "Fills", allowed_tools=("fill",)),
        Skill("charts", "Draws"),
        Skill("zip", "Packs"),
    ],
)


def definition(name: str = "clerk", **fields: Any) -> AgentDefinition:
    return AgentDefinition(name, "Helps", "Help.", **fields)


def names_in(model: Any, turn: int = 0) -> list[str]:
    """Return the names of the skills that the model was shown."""
    description: str = next(tool.description for tool in model.calls[turn].tools if tool.name == "Skill")
    return [line[2:].partition(":")[0] for line in description.splitlines() if line.startswith("- ")]


async def agent_run(file: AgentDefinition, *steps: Any, **options: Any) -> tuple[list[str], Any]:
    model = ScriptedModel([*steps, "Done."])
    agent = Agent.from_definition(file, tools=[fill, shell], model=model, **options)
    return outputs(await agent.run_async("Hello")), model


async def test_the_agent_gets_the_skills_that_its_file_names_and_no_others() -> None:
    file = definition(skills=("forms", "Charts"), tools=("fill",))
    made, model = await agent_run(
        file, call("Skill", name="zip"), call("Skill", name="charts"), skills=LOADER
    )
    assert names_in(model) == ["charts", "forms"]
    assert shown(model, 0) == ["fill", "Skill", "ReadSkillFile"]
    assert made[0] == "[kantan-agents][E189] Skill not found: zip (available: charts, forms)"
    assert made[1].startswith('{"skill": "charts"')


async def test_without_a_loader_or_without_skills_there_are_no_tools_for_skills() -> None:
    for file, options in ((definition(skills=("forms",)), {}), (definition(), {"skills": LOADER})):
        _, model = await agent_run(file, **options)
        assert shown(model, 0) == ["fill", "shell"]


async def test_a_file_with_the_tool_in_its_list_gets_all_skills_or_those_in_parentheses() -> None:
    _, model = await agent_run(definition(tools=("Skill",)), skills=LOADER)
    assert names_in(model) == ["charts", "forms", "zip"]
    made, model = await agent_run(
        definition(tools=("Skill(zip)",)),
        call("Skill", name="zip"),
        call("ReadSkillFile", skill="zip", path="a", offset=0),
        skills=LOADER,
    )
    assert names_in(model) == ["zip"]
    assert "E190" in made[1]


async def test_disallowed_tools_win_over_skills() -> None:
    _, model = await agent_run(definition(skills=("forms",), disallowed_tools=("Skill",)), skills=LOADER)
    assert shown(model, 0)[:2] == ["fill", "shell"]
    assert "Skill" not in shown(model, 0)


async def test_a_skill_that_does_not_exist_is_logged_once_with_the_nearest_name(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = ScriptedModel(["Done.", "Done."])
    agent = Agent.from_definition(definition(skills=("froms",)), skills=LOADER, model=model)
    await agent.run_async("Hello")
    await agent.run_async("Hello")
    warnings = [record for record in caplog.records if "do not exist" in record.getMessage()]
    assert len(warnings) == 1


async def test_a_clone_keeps_the_skills() -> None:
    model = ScriptedModel(["Done."])
    agent = Agent.from_definition(
        definition(skills=("forms",)), tools=[fill], skills=LOADER, model=ScriptedModel()
    )
    await agent.clone(tools=[shell], model=model).run_async("Hello")
    assert shown(model, 0) == ["shell", "Skill", "ReadSkillFile"]
    assert names_in(model) == ["forms"]


async def test_a_subagent_has_the_skills_of_its_own_file_only() -> None:
    children = [
        AgentDefinition("plain", "Helps", "I am plain."),
        AgentDefinition("skilled", "Helps", "I am skilled.", skills=("zip",)),
    ]
    seen: dict[str, list[str]] = {}

    def answer(asked: Any) -> Any:
        who = asked.system_instructions
        is_first = who not in seen
        tools = [tool for tool in asked.tools if tool.name == "Skill"]
        seen.setdefault(who, [line for tool in tools for line in tool.description.splitlines()])
        if who == "Help.":
            name = "plain" if is_first else "skilled" if "I am skilled." not in seen else None
            if name is not None:
                return call("Task", description="a", prompt="b", subagent_type=name)
        return "Done."

    agent = Agent.from_definition(
        definition("chief", skills=("forms",)),
        tools=[fill, task_tool(children)],
        skills=LOADER,
        model=ScriptedModel(answer),
    )
    await agent.run_async("Hello")
    assert "- forms: Fills" in seen["Help."]
    assert seen["I am plain."] == []
    assert [line for line in seen["I am skilled."] if line.startswith("- ")] == ["- zip: Packs"]


async def test_a_subagent_is_under_the_limit_of_the_skill_its_parent_has_chosen() -> None:
    child = ScriptedModel([call("shell", command="ls"), "Refused."])
    agent = Agent.from_definition(
        definition("chief", skills=("both",)),
        tools=[fill, shell, task_tool([definition("child")], model=child)],
        skills=SkillLoader((), builtin=[Skill("both", "Does", allowed_tools=("fill", "Task"))]),
        model=ScriptedModel(
            [
                call("Skill", name="both"),
                call("Task", description="a", prompt="b", subagent_type="child"),
                "Done.",
            ]
        ),
    )
    await agent.run_async("Hello")
    assert "shell" not in shown(child, 0)
    assert "E8" in str(child.calls[1].input)


async def test_children_may_have_a_loader_of_their_own() -> None:
    child = ScriptedModel(["Done."])
    task = task_tool([definition("child", skills=("zip",))], model=child, skills=LOADER)
    steps = [call("Task", description="a", prompt="b", subagent_type="child"), "Done."]
    await Agent("chief", "Lead.", tools=[task], model=ScriptedModel(steps)).run_async("Hello")
    assert names_in(child) == ["zip"]


def test_skills_must_be_a_loader() -> None:
    with pytest.raises(InvalidOptionError, match="skills"):
        Agent.from_definition(definition(skills=("a",)), skills="skills")  # type: ignore[arg-type]
    with pytest.raises(InvalidOptionError, match="skills"):
        task_tool([definition()], skills=["a"])
