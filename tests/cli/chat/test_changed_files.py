"""A chat goes on with the agents it began with, and uses changed files when the person says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kantan_agents.testing import OfflineServer, RecordedRequest, ScriptedToolCall
from tests.cli.agent_folder import agent_file

NARROW, WIDE = "tools: Read\n", "tools: Read, Write\n"


@pytest.fixture
def writer(folder: Path) -> Path:
    agents = folder / ".claude" / "agents"
    agent_file(agents / "lead.md", "lead", "Leads.", "", "You lead.\n")
    return agent_file(agents / "writer.md", "writer", "Writes.", NARROW, "You write.\n")


class Model:
    """Delegates each question to the writer; the first answer of the writer comes with another file."""

    def __init__(self, writer: Path) -> None:
        self.writer = writer
        self.tools: list[set[str]] = []

    def __call__(self, request: RecordedRequest) -> Any:
        if request.body["instructions"].startswith("You write."):
            self.tools.append({tool["name"] for tool in request.body.get("tools", ())})
            agent_file(self.writer, "writer", "Writes.", WIDE, "You write.\n")
            return "Written."
        if request.body["input"][-1].get("type") == "function_call_output":
            return f"Answer {len(self.tools)}."
        return ScriptedToolCall("Task", {"description": "a", "prompt": "Go.", "subagent_type": "writer"})


def test_a_changed_file_has_no_effect_in_a_pipe(lines: Any, writer: Path) -> None:
    model = Model(writer)
    with OfflineServer(model) as server:
        ended = lines(server, b"One.\nTwo.\n", "--agent", "lead", "--tools", ".", "--write")
    assert model.tools == [{"Read"}, {"Read"}]
    assert ended.stderr.count("Files have changed. This chat goes on with them as they were:") == 1
    assert ".claude/agents/writer.md has changed: tools Read before, tools Read, Write now" in ended.stderr


@pytest.mark.slow
def test_a_changed_file_is_used_when_the_person_says_so(chat: Any, writer: Path) -> None:
    model = Model(writer)
    with OfflineServer(model) as server:
        terminal = chat(server, "--agent", "lead", "--tools", ".", "--write", columns=120)
        terminal.ask("/reload", "No file has changed.")
        shown = terminal.enter("One.", until="/reload uses them as they are now.")
        assert "writer.md has changed: tools Read before, tools Read, Write now" in shown
        terminal.wait_for_prompt()
        terminal.ask("Two.", "Answer 2.")
        assert model.tools == [{"Read"}, {"Read"}]
        agent_file(writer, "writer", "Writes.", "tools: '*'\n", "You write.\n")
        terminal.enter("/reload")  # not what was shown
        terminal.wait_for("tools Read before, tools all now")
        terminal.wait_for_prompt()
        agent_file(writer, "writer", "Writes.", "tools: '*'\n", "You write.\n")
        terminal.ask("/reload", "They are used from now on.")
        terminal.enter("Three.", until="Answer 3.")
    assert {"Read", "Write"} <= model.tools[2]
