"""A subagent that works without tools of its file, because a file above it does not list them."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kantan_agents import Agent, task_tool
from tests.agent.delegation.cast import Cast, bash, definition, delegate, read, say, write

LIMIT = "denied by the limit 'delegation: definition of lead'"


async def warnings(
    caplog: pytest.LogCaptureFixture, lead: dict[str, Any], child: dict[str, Any], context: Any = None
) -> list[str]:
    cast = Cast(
        lead=[delegate("helper"), delegate("helper", call_id="d2"), say("led")],
        helper=[say("one"), say("two")],
    )
    tools = [read, write, bash, task_tool([definition("helper", **child)])]
    agent = Agent.from_definition(definition("lead", **lead), model=cast, tools=tools)
    with caplog.at_level(logging.WARNING, "kantan_agents.delegation"):
        await agent.run_async("Go", context or {})
    assert cast.results("lead") == ["one", "two"]
    return [record.message for record in caplog.records if record.name == "kantan_agents.delegation"]


@pytest.mark.parametrize(
    ("lead", "child", "missing"),
    [
        (("Task",), ("read", "write"), "'read', 'write'"),
        (("Task",), "*", "'read', 'write', 'bash'"),
        (("Task(helper)", "read"), ("read", "write"), "'write'"),
    ],
)
async def test_the_tools_that_the_file_above_does_not_list_are_named_once(
    caplog: pytest.LogCaptureFixture, lead: Any, child: Any, missing: str
) -> None:
    found = await warnings(caplog, {"tools": lead}, {"tools": child})
    assert found == [f"agent 'helper' works without {missing}: {LIMIT}"]


@pytest.mark.parametrize(
    ("lead", "child", "rules"),
    [
        (("Task", "read"), ("read",), {}),
        (("Task", "read"), "*", {}),
        (("Task",), (), {}),
        ("*", ("read", "write"), {"deny": ["write"]}),
    ],
)
async def test_what_a_file_does_not_ask_for_and_what_rules_refuse_is_not_reported(
    caplog: pytest.LogCaptureFixture, lead: Any, child: Any, rules: Any
) -> None:
    assert await warnings(caplog, {"tools": lead}, {"tools": child}, {"tool_rules": rules}) == []


async def test_a_list_with_delegation_only_is_a_warning_when_the_agent_is_made(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.WARNING, "kantan_agents.definitions"):
        Agent.from_definition(definition("lead", tools=("Task",)), tools=[task_tool([])])
    (record,) = caplog.records
    assert record.message.startswith("agent 'lead': tools: only delegation is allowed, so the agents")
