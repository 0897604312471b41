"""The definition as a value (spec subagents, "Agent 结构定义")."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import attrs
import pytest

from kantan_agents import AgentDefinition
from kantan_agents.errors import InvalidDefinitionError


def problems_of(**values: Any) -> tuple[str, ...]:
    with pytest.raises(InvalidDefinitionError) as raised:
        AgentDefinition(**{"name": "a", "description": "b", **values})
    return tuple(raised.value.problems)


def test_an_agent_has_name_description_tools_model_and_prompt() -> None:
    """Scenario: Agent 字段定义, Agent 示例代码."""
    agent = AgentDefinition(
        name="a", description="b", tools=("Read",), model="opus", system_prompt="You are a."
    )

    assert (agent.name, agent.description, agent.tools) == ("a", "b", ("Read",))
    assert (agent.model, agent.system_prompt) == ("opus", "You are a.")


def test_name_and_description_are_enough() -> None:
    """Scenario: Agent 字段定义: the model is optional; all tools are the default."""
    agent = AgentDefinition(name="a", description="b")

    assert (agent.tools, agent.model, agent.system_prompt) == ("*", None, "")


@pytest.mark.parametrize(
    ("given", "tools"),
    [
        ("*", "*"),
        (["*"], "*"),
        (["`Read`", "\u201cGrep\u201d;"], ("Read", "Grep")),
        ((), ()),
        (["Read", "Grep", "Read"], ("Read", "Grep")),
        (["Read, Grep", " Bash(git diff:*) "], ("Read", "Grep", "Bash(git diff:*)")),
        (["Agent(a, b)", ""], ("Agent(a, b)",)),
    ],
)
def test_the_tool_filter_is_all_or_the_tools_named(given: Any, tools: Any) -> None:
    """Scenario: ToolFilter 枚举."""
    assert AgentDefinition(name="a", description="b", tools=given).tools == tools


def test_a_denial_of_all_tools_is_a_single_entry() -> None:
    assert AgentDefinition(name="a", description="b", disallowed_tools=("Read", "*")).disallowed_tools == (
        "*",
    )


def test_white_space_around_the_name_is_removed() -> None:
    assert AgentDefinition(name=" a b\n", description="b").name == "a b"


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": 1}, "name"),
        ({"description": ""}, "description"),
        ({"system_prompt": None}, "system_prompt"),
        ({"system_prompt": "\ud800"}, "system_prompt"),
        ({"model": 4}, "model"),
        ({"model": "\udfff"}, "model"),
        ({"tools": "Read"}, "tools"),
        ({"tools": "all"}, "tools"),
        ({"tools": ["All"]}, "tools"),
        ({"tools": ["all tools"]}, "tools"),
        ({"tools": ("Read", "*")}, "tools"),
        ({"tools": ("*", "Bash")}, "tools"),
        ({"tools": ("mcp__x__*", "-mcp__x__delete")}, "tools"),
        ({"tools": ("Read", "but", "not", "Bash")}, "tools"),
        ({"tools": ("Bash: false",)}, "tools"),
        ({"tools": [1]}, "tools"),
        ({"tools": ["\ud800"]}, "tools"),
        ({"disallowed_tools": "*"}, "disallowed_tools"),
        ({"disallowed_tools": ["all"]}, "disallowed_tools"),
        ({"disallowed_tools": ["all", "Bash"]}, "disallowed_tools"),
        ({"disallowed_tools": ["Bash Write"]}, "disallowed_tools"),
        ({"disallowed_tools": ["Bash; Write"]}, "disallowed_tools"),
        ({"disallowed_tools": ["`Bash`"]}, "disallowed_tools"),
        ({"disallowed_tools": ["Bash(rm"]}, "disallowed_tools"),
        ({"disallowed_tools": ["[Bash]"]}, "disallowed_tools"),
        ({"disallowed_tools": ["-"]}, "disallowed_tools"),
        ({"skills": None}, "skills"),
        ({"max_turns": 0}, "max_turns"),
        ({"max_turns": True}, "max_turns"),
        ({"max_turns": "5"}, "max_turns"),
        ({"context": 5}, "context"),
        ({"context": {"history": []}}, "context"),
        ({"context": {"a": {1, 2}}}, "context"),
        ({"hooks": {1: "a"}}, "hooks"),
        ({"hooks": float("nan")}, "hooks"),
        ({"mcp_servers": ["\ud800"]}, "mcp_servers"),
        ({"extra": []}, "extra"),
        ({"extra": {"tools": "Read"}}, "extra"),
        ({"extra": {"Allowed-Tools": "Read"}}, "extra"),
        ({"extra": {"disallowed tools": "Bash"}}, "extra"),
        ({"extra": {"\u200btools": "Read"}}, "extra"),
        ({"extra": {"model_name": "opus"}}, "extra"),
        ({"extra": {"a": 10**300}}, "extra"),
        ({"extra": {"a": b"bytes"}}, "extra"),
    ],
)
def test_a_wrong_value_is_named(values: dict[str, Any], field: str) -> None:
    assert [problem.partition(":")[0] for problem in problems_of(**values)] == [field]


def test_all_mistakes_are_listed_together() -> None:
    found = problems_of(name="", description="", max_turns=0, context={"result": 1, "tool_rules": {}})

    assert len(found) == 5


def test_data_that_contains_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    wide: list[Any] = []
    wide.extend([wide, wide])

    assert "deeper than 40" in problems_of(context=endless)[0]
    assert problems_of(hooks=wide)


def test_data_with_more_values_than_a_file_may_have_is_refused() -> None:
    assert "more than" in problems_of(hooks=[0] * 10_001)[0]


def test_a_definition_copies_its_data() -> None:
    context = {"a": [1]}
    agent = AgentDefinition(name="a", description="b", context=context)

    context["a"].append(2)
    agent.to_dict()["context"]["a"].append(3)

    assert agent.context == {"a": [1]}


def test_a_definition_is_frozen() -> None:
    agent = AgentDefinition(name="a", description="b")

    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        agent.name = "b"  # type: ignore[misc]


def test_definitions_with_the_same_content_are_equal_whatever_their_source() -> None:
    text = "---\nname: a\ndescription: b: c\n---\n"

    assert AgentDefinition.loads(text) == AgentDefinition(name="a", description="b: c")
    assert AgentDefinition.loads(text) != AgentDefinition(name="a", description="b")


def test_a_definition_can_be_copied_pickled_and_changed() -> None:
    agent = AgentDefinition.loads("---\nteam: {x: [1]}\nname: a\ndescription: b: c\n---\n")

    assert copy.deepcopy(agent) == agent
    assert pickle.loads(pickle.dumps(agent)) == agent
    assert attrs.evolve(agent, name="c").extra == {"team": {"x": [1]}}


def test_the_dict_of_a_definition_is_json() -> None:
    agent = AgentDefinition(name="a", description="b", tools=("Read",), context={"a": [None, 1.5, True]})

    said = agent.to_dict()

    assert json.loads(json.dumps(said)) == said
    assert said["tools"] == ["Read"]
    assert not {"path", "notes"} & said.keys()
