"""What agents may do is what their files said when the conversation began."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kantan_agents import (
    Agent,
    AgentDefinition,
    AgentLoader,
    CommandLoader,
    SkillLoader,
    skill_tools,
    task_tool,
)
from kantan_agents.cli.agents.pinned_files import PinnedFiles, pinned_loaders
from kantan_agents.cli.chat.settings import open_conversations
from kantan_agents.cli.terminal import protect_used as used
from kantan_agents.errors import AgentNotFoundError
from kantan_agents.middleware import SlashCommands
from kantan_agents.testing import RecordedRequest, ScriptedToolCall
from kantan_agents.toolkit import protected
from tests.cli.agent_folder import agent_file

NARROW, WIDE = "tools: Read\nmodel: m\n", "tools: Read, Write, Bash\nmodel: m\n"


@pytest.fixture
def agents(project: Path) -> Path:
    directory = project / ".claude" / "agents"
    agent_file(directory / "lead.md", "lead", "Leads.", "model: m\n", "You lead.\n")
    agent_file(directory / "writer.md", "writer", "Writes.", NARROW, "You write.\n")
    (project / "code").mkdir()
    return directory


def skill_file(folder: Path, allowed: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "SKILL.md"
    path.write_text(
        f"---\nname: {folder.name}\ndescription: Does it.\nallowed-tools: {allowed}\n---\n\nDo.\n"
    )
    return path


class Widening:
    """A model that delegates twice; meanwhile, a command of a tool gives the second agent more tools."""

    def __init__(self, agents: Path) -> None:
        self.agents = agents
        self.tools: list[set[str]] = []

    def __call__(self, request: RecordedRequest) -> Any:
        messages = request.body["messages"]
        results = [item for item in messages if item["role"] == "tool"]
        if "You write." in str(messages[0]["content"]):
            self.tools.append({tool["function"]["name"] for tool in request.body.get("tools", ())})
            agent_file(self.agents / "writer.md", "writer", "Writes.", WIDE, "You write.\n")
            agent_file(self.agents / "new.md", "new", "Is new.", "model: m\n", "You are new.\n")
            return "Done."
        if len(results) < 2:
            task = {"description": "write", "prompt": "Write it.", "subagent_type": "writer"}
            return ScriptedToolCall("Task", task)
        if len(results) == 2:
            return ScriptedToolCall("Task", {"description": "a", "prompt": "a", "subagent_type": "new"})
        return str(results[-1]["content"])


def test_an_agent_has_the_tools_that_its_file_gave_it_at_the_start(
    kantan_agents: Any, serve: Any, agents: Path
) -> None:
    model = Widening(agents)
    with serve(model):
        options = ("--model", "ollama/m", "--tools", "code", "--write", "--shell", "--yes", "Write")
        ended = kantan_agents("run", "Go.", "--agent", "lead", *options)
    assert model.tools == [{"Read"}, {"Read"}]
    assert "[E32]" in ended.stdout and "new" in ended.stdout  # a new agent is not one of them either
    place = ".claude/agents/"
    as_at_start = "; this run has used it as it was at its start"
    assert f"note: {place}new.md is new: new, tools all{as_at_start}" in ended.stderr
    change = "has changed: tools Read before, tools Read, Write, Bash now"
    assert f"note: {place}writer.md {change}{as_at_start}" in ended.stderr


async def test_pinned_agents_stay_until_they_are_pinned_again(tmp_path: Path) -> None:
    writer = agent_file(tmp_path / "writer.md", "writer", more=NARROW)
    loader = AgentLoader([tmp_path], recheck_seconds=0)
    before = loader.pin()
    agent_file(writer, "writer", more=WIDE)
    agent_file(tmp_path / "new.md", "new")
    assert await loader.load_agents() is before and loader.load_agents_now() is before
    for definition in (await loader.get_agent("writer"), loader.get_agent_now("Writer")):
        assert definition.tools == ("Read",)
    with pytest.raises(AgentNotFoundError):
        await loader.get_agent("new")
    writer.unlink()
    assert loader.get_agent_now("writer").tools == ("Read",)
    assert loader.read_files().names() == ("new",)
    assert loader.pin().names() == ("new",)
    assert loader.pin(before) is before and loader.get_agent_now("writer").tools == ("Read",)


async def test_an_empty_folder_can_be_pinned(tmp_path: Path) -> None:
    agents, skills = AgentLoader([tmp_path]), SkillLoader(tmp_path)
    agents.pin()
    skills.pin()
    agent_file(tmp_path / "new.md", "new")
    skill_file(tmp_path / "fill", "Read")
    assert (agents.load_agents_now().names(), skills.load_skills_now().names()) == ((), ())
    assert (await agents.load_agents()).names() == (await skills.load_skills()).names() == ()


async def test_pinned_skills_and_commands_stay_as_well(tmp_path: Path) -> None:
    skill_file(tmp_path / "skills/fill", "Read")
    command = tmp_path / "commands/review.md"
    command.parent.mkdir()
    command.write_text("---\nallowed-tools: Read\n---\nReview.\n")
    skills, commands = SkillLoader(tmp_path / "skills"), CommandLoader(tmp_path / "commands")
    skills.pin()
    commands.pin()
    skill_file(tmp_path / "skills/fill", "Read, Bash")
    command.write_text("---\nallowed-tools: Read, Bash\n---\nReview.\n")
    assert (await skills.get_skill("fill")).allowed_tools == ("Read",)
    assert skills.get_skill_now("fill").allowed_tools == ("Read",)
    for catalog in (await commands.load_commands(), commands.load_commands_now()):
        assert catalog.get("review").allowed_tools == ("Read",)
    assert skills.pin().get("fill").allowed_tools == ("Read", "Bash")


def test_what_was_shown_is_what_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    writer = agent_file(tmp_path / "agents/writer.md", "writer", more=NARROW)
    skill_file(tmp_path / "skills/fill", "Read")
    agents, skills = AgentLoader(["agents"]), SkillLoader("skills")
    pinned = PinnedFiles([agents], [skills], AgentDefinition.load(writer))
    assert pinned.changed() is None
    agent_file(writer, "writer", more=WIDE)
    skill_file(tmp_path / "skills/fill", "Read, Bash")
    shown = pinned.changed()
    assert shown is not None and shown == pinned.changed()
    assert shown.lines == (
        "agents/writer.md has changed: tools Read before, tools Read, Write, Bash now",
        "skills/fill/SKILL.md has changed: tools Read before, tools Read, Bash now",
    )
    agent_file(writer, "writer", more="tools: '*'\n")
    assert pinned.changed() != shown
    pinned.take(shown)
    assert agents.get_agent_now("writer").tools == ("Read", "Write", "Bash")
    assert pinned.own is not None and pinned.own.tools == ("Read", "Write", "Bash")
    assert skills.get_skill_now("fill").allowed_tools == ("Read", "Bash")
    writer.unlink()
    left = pinned.changed()
    assert left is not None and left.lines == ("agents/writer.md is gone, or cannot be used any more",)


def test_the_configuration_of_servers_is_read_once(project: Path) -> None:
    path = project / ".mcp.json"
    path.write_text('{"mcpServers": {"time": {"command": "time-server"}}}')
    pinned = PinnedFiles()
    before = pinned.configuration()
    path.write_text('{"mcpServers": {"time": {"command": "other"}}}')
    assert pinned.configuration() is before
    changed = pinned.changed()
    assert changed is not None and ".mcp.json has changed: its servers" in changed.lines[0]


def test_the_loaders_of_an_agent_made_in_python_are_pinned(tmp_path: Path) -> None:
    agent_file(tmp_path / "writer.md", "writer", more=NARROW)
    agents, skills = AgentLoader([tmp_path]), SkillLoader(tmp_path / "skills")
    commands = CommandLoader(tmp_path / "commands")
    target: Agent[Any] = Agent("b", "Work.", middleware=[SlashCommands({"allow": "*"}, files=commands)])
    agent: Agent[Any] = Agent(
        "a", "Work.", tools=[task_tool(agents), *skill_tools(skills)], handoffs=[target]
    )
    pinned = pinned_loaders(agent)
    agent_file(tmp_path / "writer.md", "writer", more=WIDE)
    skill_file(tmp_path / "skills/fill", "Read")
    assert agents.get_agent_now("writer").tools == ("Read",)
    (tmp_path / "commands").mkdir()
    (tmp_path / "commands" / "review.md").write_text("---\nallowed-tools: Bash\n---\nReview.\n")
    assert skills.load_skills_now().names() == commands.load_commands_now().names() == ()
    changed = pinned.changed()
    assert changed is not None
    assert f"{tmp_path / 'commands' / 'review.md'} is new: review, tools Bash" in changed.lines
    pinned.take(changed)
    assert commands.load_commands_now().names() == ("review",)


def test_the_files_that_a_command_was_started_with_are_protected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protected, "_also", {})
    (tmp_path / "rules.json").touch()
    used.protect_used([str(tmp_path / "rules.json"), None, tmp_path / "agents"], has_tools=True)
    folder = tmp_path.resolve()
    assert protected.also_protected() == (str(folder / "rules.json"), str(folder / "agents"))
    kept = open_conversations(tmp_path / "own.sqlite3", resumes=False)
    assert kept is not None
    kept.close()
    assert protected.why_protected(str(folder), ("own.sqlite3-wal",)) == protected.TRACES
