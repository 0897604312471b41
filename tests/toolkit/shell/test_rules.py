"""Tool rules and approvals of the shell, with a real shell behind them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kantan_agents import Agent
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.toolkit.shell import shell_tools


async def outcome(root: Path, command: str, rules: dict[str, Any], **arguments: Any) -> str:
    steps = [
        [function_call("Bash", {"command": command, **arguments}, call_id="1")],
        [assistant_message("Done.")],
    ]
    tools = shell_tools(root, sandbox="off", approval=False)
    agent = Agent("a", "x", model=ScriptedModel(steps), tools=tools)
    context = await agent.run_async("Go", {"tool_rules": rules})
    (output,) = (item.output for item in context["result"].new_items if item.type == "tool_call_output_item")
    return str(output)


ECHO_ONLY = {"allow": ["Bash(echo safe:*)", "BashOutput", "KillShell"]}


async def test_a_command_that_an_entry_covers_runs(root: Path) -> None:
    assert "safe and sound" in await outcome(root, "echo safe and sound", ECHO_ONLY, description="touch ran")


@pytest.mark.parametrize(
    "command",
    [
        "echo safe; touch ran",
        "echo safe && touch ran",
        "echo safe || touch ran",
        "echo safe | touch ran",
        "echo safe & touch ran",
        "echo safe\ntouch ran",
        "echo safe $(touch ran)",
        "echo safe `touch ran`",
        "echo safe > ran",
        "echo safe <(touch ran)",
        "echo safe ${x:-$(touch ran)}",
        "touch ran; echo safe",
        "touch ran #echo safe",
        "echo unsafe; touch ran",
    ],
)
async def test_a_chained_command_does_not_run_behind_an_allowed_beginning(root: Path, command: str) -> None:
    refused = await outcome(root, command, ECHO_ONLY)
    assert "[kantan-agents][E" in refused
    assert not (root / "ran").exists()


@pytest.mark.parametrize("command", ["touch ran", "true; touch ran", "env touch ran", "true && 'touch' ran"])
async def test_a_denied_command_does_not_run_in_another(root: Path, command: str) -> None:
    refused = await outcome(root, command, {"deny": ["Bash(touch:*)"]})
    assert "[kantan-agents][E" in refused
    assert not (root / "ran").exists()


PIECES = (
    "touch ran",
    ";",
    "&&",
    "|",
    "\n",
    "$(",
    ")",
    "`",
    '"',
    "'",
    ">",
    "ran",
    "\\",
    "&",
    " ",
    "{",
    "}",
    "x",
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=7))
def test_whatever_follows_an_allowed_beginning_makes_no_file(root: Path, rest: list[str]) -> None:
    asyncio.run(outcome(root, "echo safe " + " ".join(rest), ECHO_ONLY))
    assert list(root.iterdir()) == []


async def test_bash_needs_an_approval_unless_it_is_switched_off(root: Path) -> None:
    tools = shell_tools(root, sandbox="off")
    assert [(tool.name, tool.needs_approval) for tool in tools] == [
        ("Bash", True),
        ("BashOutput", False),
        ("KillShell", False),
    ]
    model = ScriptedModel([[function_call("Bash", {"command": "touch ran"}, call_id="1")]])
    context = await Agent("a", "x", model=model, tools=tools).run_async("Go")
    assert [waiting.name for waiting in context["result"].interruptions] == ["Bash"]
    assert not (root / "ran").exists()
