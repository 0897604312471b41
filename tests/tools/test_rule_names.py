"""Names in the rules of a run that no tool has: a warning once, an error for a strict agent."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from agents import FunctionTool, ShellTool, function_tool

from kantan_agents import Agent, AgentDefinition, ToolRetrieval, task_tool
from kantan_agents.errors import InvalidOptionError, InvalidToolRulesError
from kantan_agents.middleware import SlashCommands
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from tests.tools.test_server_names import Server


def bash(command: str, directory: str = "") -> str:
    """Run a command."""
    return command + directory


def read(path: str) -> str:
    """Read a file."""
    return path


def agent(**options: Any) -> Agent:
    options = {"tools": [bash, read], "tool_providers": None, **options}
    return Agent("a", "x", model=ScriptedModel([[assistant_message("Done.")]] * 5), **options)


def open_tool() -> FunctionTool:
    tool = function_tool(read, name_override="open")
    tool.strict_json_schema = False
    tool.params_json_schema = {"type": "object", "properties": {}, "additionalProperties": True}
    return tool


WRONG = [
    ({"deny": ["bsh"]}, "deny: 'bsh' names no tool of agent 'a'; the nearest name is 'bash'"),
    ({"allow": ["bash", "raed"]}, "allow: 'raed' names no tool"),
    ({"deny": ["delete_*"]}, "deny: 'delete_*' names no tool"),
    ({"deny": ["bsh(git push:*)"]}, "deny: 'bsh(git push:*)' names no tool"),
    ({"params": {"bsh": {"command": {"maxLength": 5}}}}, "params: 'bsh' names no tool"),
    ({"params": {"bash": {"comand": {"maxLength": 5}}}}, "params.bash.comand: there is no such parameter"),
    ({"params": {"*": {"comand": {"maxLength": 5}}}}, "the nearest is 'command'"),
    ({"params": {"bash": {"command.x": {"maxLength": 5}}}}, "params.bash.command.x: there is no such"),
]
RIGHT: list[Any] = [
    {"allow": ["bash", "r*", "bash(git:*)"], "deny": ["*(rm:*)"]},
    {"params": {"bash": {"command": {"maxLength": 5}, "directory": {"maxLength": 5}}}},
    {"params": {"*": {"path": {"maxLength": 5}}}},
    {"allow": "*", "deny": []},
    {"deny": ["*"]},
]


@pytest.mark.parametrize(("rules", "message"), WRONG)
async def test_a_name_in_the_rules_that_nothing_has_is_a_warning_once_and_an_error_if_strict(
    rules: Any, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    lenient = agent()
    with caplog.at_level(logging.WARNING, "kantan_agents"):
        for _ in range(3):
            await lenient.run_async("Go", {"tool_rules": dict(rules)})
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert any(message in problem for problem in warnings[0].problems)  # type: ignore[attr-defined]
    strict = agent(strict=True)
    for _ in range(2):
        with pytest.raises(InvalidToolRulesError) as caught:
            await strict.run_async("Go", {"tool_rules": dict(rules)})
        assert message in str(caught.value)


@pytest.mark.parametrize("rules", RIGHT)
async def test_names_that_exist_are_no_mistakes(rules: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "kantan_agents"):
        await agent(strict=True).run_async("Go", {"tool_rules": rules})
    assert caplog.records == []


async def test_tools_that_are_not_shown_now_are_no_mistakes() -> None:
    off = function_tool(bash, is_enabled=False)
    later = function_tool(bash, name_override="later", is_enabled=lambda *_: False)
    many = [function_tool(read, name_override=f"read_{number}") for number in range(20)]
    made = agent(tools=[off, later, *many], tool_retrieval=ToolRetrieval(top_n=2), strict=True)
    rules = {"deny": ["bash", "later", "read_19"], "params": {"read_7": {"path": {"maxLength": 5}}}}
    await made.run_async("Go", {"tool_rules": rules})


async def test_a_mistake_in_many_different_rule_sets_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    made = agent()
    with caplog.at_level(logging.WARNING, "kantan_agents"):
        for length in range(3):
            rules = {"deny": ["serch"], "params": {"bash": {"command": {"maxLength": 100 + length}}}}
            await made.run_async("Go", {"tool_rules": rules})
        await made.run_async("Go", {"tool_rules": {"deny": ["serch", "delte"]}})
    assert caplog.text.count("serch") == 1
    assert caplog.text.count("delte") == 1


async def test_tools_of_reachable_agents_and_of_connected_servers_are_no_mistakes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    target = Agent(
        "target", "x", model=ScriptedModel(), mcp_servers=[Server("files", "look")], tool_providers=None
    )
    made = agent(handoffs=[target], mcp_servers=[Server("wiki", "page")], strict=True)
    names = ["look", "mcp__files__look", "mcp__wiki__page"]
    params = {"mcp__wiki__page": {"value": {"maxLength": 5}}}
    await made.run_async("Go", {"tool_rules": {"allow": names, "params": params}})
    await made.run_async("Go", {"tool_rules": {"deny": ["mcp__wiki", "mcp__files__*"]}})
    for entry in ("mcp__wiki__pgae", "mcp__files__lok"):
        with pytest.raises(InvalidToolRulesError):
            await made.run_async("Go", {"tool_rules": {"deny": [entry]}})
    with caplog.at_level(logging.WARNING, "kantan_agents"):
        await made.run_async("Go", {"tool_rules": {"deny": ["mcp__github__delete"]}})
    assert "tool rules name what does not exist" in caplog.text


async def test_an_allow_entry_that_only_a_servers_own_name_matches_is_a_mistake() -> None:
    made = agent(mcp_servers=[Server("wiki", "page_one")], strict=True)
    await made.run_async("Go", {"tool_rules": {"deny": ["page_*"]}})
    with pytest.raises(InvalidToolRulesError) as caught:
        await made.run_async("Go", {"tool_rules": {"allow": ["page_*"]}})
    assert "'page_*' covers only names that servers have chosen, which do not count here" in str(caught.value)
    assert str(caught.value).endswith("write, for example, 'mcp__wiki__page_one'")


async def test_parameters_that_a_tool_does_not_list_but_may_have_are_no_mistakes() -> None:
    def find(filter: dict[str, Any], ids: list[str]) -> str:
        """Find."""
        return f"{filter}{ids}"

    tool = function_tool(find, strict_mode=False)
    made = agent(tools=[tool, open_tool(), ShellTool(executor=lambda _: "")], strict=True)
    params = {
        "find": {"filter.limit": {"maximum": 5}, "ids[]": {"maxLength": 5}},
        "open": {"anything": {"maxLength": 5}},
        "shell": {"commands[]": {"maxLength": 5}},
    }
    await made.run_async("Go", {"tool_rules": {"params": params}})
    for wrong in ({"find": {"ids[].x": {"maxLength": 5}}}, {"shell": {"comands[]": {"maxLength": 5}}}):
        with pytest.raises(InvalidToolRulesError):
            await made.run_async("Go", {"tool_rules": {"params": wrong}})


async def test_rules_inherited_by_a_delegated_agent_are_not_checked_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    helper = AgentDefinition(name="helper", description="Helps.", system_prompt="Help.")
    arguments = {"description": "d", "prompt": "p", "subagent_type": "helper"}
    target = Agent("target", "x", model=ScriptedModel(), tools=[bash], tool_providers=None)
    model = ScriptedModel(
        [
            [function_call("Task", arguments, call_id="t")],
            [assistant_message("Helped.")],
            [assistant_message("Done.")],
        ]
    )
    made = Agent(
        "a",
        "x",
        model=model,
        tools=[task_tool([helper])],
        handoffs=[target],
        tool_providers=None,
        strict=True,
    )
    with caplog.at_level(logging.WARNING, "kantan_agents"):
        await made.run_async("Go", {"tool_rules": {"deny": ["bash"]}})
    assert caplog.records == []


async def test_an_agent_without_tools_reports_names_as_well(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "kantan_agents"):
        await agent(tools=[]).run_async("Go", {"tool_rules": {"deny": ["bash"]}})
    assert "tool rules name what does not exist" in caplog.text


@pytest.mark.parametrize(
    "key", ["toolrules", "tool-rules", "Tool_Rules", "tool_rule", "toolRules", "tool_ruels"]
)
async def test_a_context_key_that_is_almost_tool_rules_is_a_warning_once_and_an_error_if_strict(
    key: str, caplog: pytest.LogCaptureFixture
) -> None:
    lenient = agent()
    with caplog.at_level(logging.WARNING, "kantan_agents"):
        for _ in range(3):
            await lenient.run_async("Go", {key: {"deny": ["bash"]}})
    assert caplog.text.count("context key is almost 'tool_rules': ") == 1
    with pytest.raises(InvalidOptionError, match=f"the key '{key}' has no effect"):
        await agent(strict=True).run_async("Go", {key: {}})


async def test_other_context_keys_are_no_mistakes(caplog: pytest.LogCaptureFixture) -> None:
    context = {"tools": 1, "rules": 2, "user_roles": 3, "tool_results": 4, 5: 6, "user": {"tool_rule": 1}}
    with caplog.at_level(logging.WARNING, "kantan_agents"):
        await agent(strict=True, middleware=[SlashCommands({"allow": "*"})]).run_async("Go", context)  # type: ignore[arg-type]
    assert caplog.records == []


async def test_a_context_key_that_is_almost_user_rules_is_an_error_for_commands_of_a_strict_agent() -> None:
    made = agent(strict=True, middleware=[SlashCommands({"allow": "*"})])
    with pytest.raises(InvalidOptionError, match="the key 'user-rules' has no effect"):
        await made.run_async("/read x", {"user-rules": {"deny": ["read"]}})
    await made.run_async("/read x", {"user_roles": ["admin"]})


def test_strict_is_a_bool() -> None:
    with pytest.raises(InvalidOptionError, match="strict"):
        agent(strict="yes")
