"""The files of a project and of its user, in the documented forms."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from kantan_agents import (
    Agent,
    AgentLoader,
    CommandLoader,
    SkillLoader,
    SlashCommands,
    configured_servers,
    project_instructions,
    skill_tools,
    task_tool,
)
from kantan_agents.testing import ScriptedModel
from tests.old_layout.conftest import Copied, Shown


@pytest.fixture
def project(copied: Copied, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = Path(os.path.realpath(copied("project")))
    (root / ".git").mkdir()
    for name in ("HOME", "USERPROFILE", "KANTAN_AGENTS_CONFIG_DIR"):
        monkeypatch.setenv(name, str(root / "home"))
    for name in ("CLAUDE_CONFIG_DIR", "KODE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    (root / "home").chmod(0o700)
    monkeypatch.chdir(root)
    return root


def look(what: str) -> str:
    """Look at something."""
    return f"saw {what}"


def delete(path: str) -> str:
    """Delete something."""
    raise AssertionError(path)


async def test_agent_files_are_loaded_and_run(project: Path) -> None:
    loader = AgentLoader()
    agents = await loader.load_agents()
    assert [one.name for one in agents] == ["helper", "lead"]
    lead, helper = await loader.get_agent("lead"), await loader.get_agent("Helper")
    assert lead.description == "Leads. Use it first: it delegates"
    assert helper.max_turns == 3
    task = {"description": "look", "prompt": "Look.", "subagent_type": "helper"}
    model = ScriptedModel([{"tool": "Task", "arguments": task}, "Looked.", "Done."])
    agent = Agent.from_definition(lead, tools=[look, delete, task_tool(loader)], model=model)
    context = await agent.run_async("Look.", {"customer": "Aiko"})
    assert context["result"].final_output == "Done."
    assert "You lead for Aiko." in str(model.calls[0].system_instructions)
    assert "You help." in str(model.calls[1].system_instructions)
    assert [tool.name for tool in model.calls[0].tools] == ["look", "Task"]


async def test_skills_commands_and_instructions_of_a_project_are_used(project: Path) -> None:
    model = ScriptedModel([{"tool": "Skill", "arguments": {"name": "release-notes"}}, "Hello."])
    commands = SlashCommands({"allow": ["greet"]}, files=CommandLoader())
    agent = Agent(
        "writer",
        project_instructions("."),
        model=model,
        tools=[look, delete, *skill_tools(SkillLoader())],
        middleware=[commands],
    )
    context = await agent.run_async('/greet "Ben B" now')
    assert context["result"].final_output == "Hello."
    assert "Tabs, not spaces." in str(model.calls[0].system_instructions)
    assert "Greet Ben B kindly." in str(model.calls[0].input)
    assert "reference/style.md" in str(model.calls[1].input)
    assert [tool.name for tool in model.calls[1].tools if tool.name in ("look", "delete")] == ["look"]


def test_servers_are_configured_and_the_record_of_trust_holds(
    project: Path, monkeypatch: pytest.MonkeyPatch, shown: Shown
) -> None:
    path = project / ".mcp.json"
    servers = configured_servers(trusted=True)
    assert servers.names == ("files", "github")
    listed = json.loads(shown("mcp", "list", "--json"))["servers"]
    assert [(one["name"], one["state"]) for one in listed] == [
        ("notes", "disabled"),
        ("files", "not trusted"),
        ("github", "not trusted"),
    ]
    record = {"path": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    folder = project / "home" / "trusted-mcp"
    folder.mkdir(mode=0o700)
    file = folder / f"{hashlib.sha256(os.fsencode(path)).hexdigest()}.json"
    file.write_text(json.dumps(record))
    file.chmod(0o600)
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    assert [server.name for server in configured_servers()] == ["files", "github"]


def test_rules_of_a_file_decide(project: Path, shown: Shown) -> None:
    shown("tools", "check", "rules.json")
    asked = ("tools", "explain", "look", "--rules", "rules.json", "--json", "--args")
    assert json.loads(shown(*asked, '{"what": "sky", "count": 2}'))["allowed"] is True
