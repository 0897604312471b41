"""``kantan-agents run --agent``: an agent of the project answers and delegates to others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.testing import RecordedRequest, ScriptedToolCall
from tests.cli.agent_folder import ERRORS, agent_file


@pytest.fixture
def agents(project: Path) -> Path:
    """An orchestrator and two agents it can delegate to."""
    directory = project / ".claude" / "agents"
    agent_file(directory / "lead.md", "lead", "Leads.", "tools: Task\nmodel: sonnet\n", "You lead.\n")
    agent_file(directory / "coder.md", "coder", "Codes.", "model: inherit\n", "You code.\n")
    agent_file(directory / "tester.md", "tester", "Tests.", "model: ollama/tester\n", "You test.\n")
    return directory


def delegate(agent: str, prompt: str) -> ScriptedToolCall:
    return ScriptedToolCall("Task", {"description": "part of it", "prompt": prompt, "subagent_type": agent})


def instructions_of(request: RecordedRequest) -> str:
    if "instructions" in request.body:
        return str(request.body["instructions"]).strip()
    return str(request.body["messages"][0]["content"]).strip()


def reply(request: RecordedRequest) -> Any:
    if instructions_of(request) == "You code.":
        return "coded"
    if instructions_of(request) == "You test.":
        return "tested"
    answered = json.dumps(request.body)
    if "coded" in answered:
        return "All done."
    return [delegate("coder", "Write it."), delegate("tester", "Test it.")]


def test_the_missing_tools_of_subagents_are_named_once_on_stderr(
    kantan_agents: Any, serve: Any, agents: Path
) -> None:
    agent_file(agents / "coder.md", "coder", "Codes.", "model: inherit\ntools: Grep\n", "You code.\n")

    def twice(request: RecordedRequest) -> Any:
        if instructions_of(request) == "You code.":
            return "coded"
        answered = json.dumps(request.body)
        return "All done." if "coded" in answered else [delegate("coder", "One."), delegate("coder", "Two.")]

    with serve(twice):
        outcome = kantan_agents("run", "--agent", "lead", "Build it.", "--model", "gpt-6.1-terra")
    assert (outcome.code, outcome.stdout) == (0, "All done.\n")
    assert outcome.stderr == (
        "warning: tools: no tool of agent 'coder' is named 'Grep'; the agent runs without it; "
        "--tools DIR gives Grep\n"
    )


def test_what_a_project_puts_in_place_of_the_users_is_named_on_stderr(
    kantan_agents: Any, serve: Any, agents: Path, tmp_path: Path
) -> None:
    home, here = tmp_path / "home" / ".claude", agents.parent
    agent_file(home / "agents" / "Lead.md", "Lead", "Mine.", "", "I lead.\n")
    agent_file(home / "agents" / "only.md", "only", "Mine.", "", "I am only here.\n")
    agent_file(agents / "lead.md", "lead", "Leads.", "skills: [pdf]\ntools: Task\n", "You lead.\n")
    agent_file(agents / "nearer" / "lead.md", "lead", "Leads.", "", "Of the project, too.\n")
    for place in (home, here):
        for name in ("pdf", "other"):
            agent_file(place / "skills" / name / "SKILL.md", name, "A skill.", "", "Read.\n")
        for name in ("deploy", "other"):
            (place / "commands").mkdir(exist_ok=True)
            (place / "commands" / f"{name}.md").write_text("Deploy.")
    with serve(["Hi.", "Deployed."]):
        model = ("--model", "gpt-6.1-terra")
        led = kantan_agents("run", "--agent", "lead", "Hello", *model)
        deployed = kantan_agents("run", "/deploy", *model)
    assert (led.stdout, deployed.stdout) == ("Hi.\n", "Deployed.\n")
    assert led.stderr.splitlines() == [
        (
            f"note: the agent 'Lead' of this project is used, {agents / 'lead.md'}, and not yours, "
            f"{home / 'agents' / 'Lead.md'}"
        ),
        (
            f"note: the skill 'pdf' of this project is used, {here / 'skills' / 'pdf' / 'SKILL.md'}, and not "
            f"yours, {home / 'skills' / 'pdf' / 'SKILL.md'}"
        ),
    ]
    assert deployed.stderr.splitlines() == [
        (
            f"note: the command 'deploy' of this project is used, {here / 'commands' / 'deploy.md'}, and not "
            f"yours, {home / 'commands' / 'deploy.md'}"
        ),
    ]


def test_a_chat_says_where_its_agent_is_from(
    agents: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from kantan_agents.cli.chat.questions import Questions
    from kantan_agents.cli.chat.source import agent_source
    from kantan_agents.cli.terminal.agent_options import AgentRunOptions

    mine = agent_file(tmp_path / "home" / ".claude" / "agents" / "mine.md", "mine")
    named = agent_file(tmp_path / "other" / "named.md", "named")
    for name in ("lead", "mine", str(named)):
        agent_source(name, "", None, AgentRunOptions(), questions=Questions())
    assert capsys.readouterr().err.splitlines() == [
        f"lead is of this project: {agents / 'lead.md'}",
        f"mine is yours: {mine}",
        f"named is of the file that you named: {named}",
    ]
    agent_source("lead", "", None, AgentRunOptions())  # nobody is there to read it
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("agents")
class TestRun:
    def test_an_orchestrator_delegates_to_two_agents(
        self, kantan_agents: Any, serve: Any, database: Any
    ) -> None:
        with serve(reply) as server:
            outcome = kantan_agents(
                *(
                    "run",
                    "--agent",
                    "LEAD",
                    "Build it.",
                    "--model",
                    "gpt-6.1-terra",
                    "--db",
                    str(database.path),
                )
            )
        assert (outcome.code, outcome.stdout, outcome.stderr) == (0, "All done.\n", "")
        models = {instructions_of(request): request.model for request in server.requests}
        # --model replaces a short name or a missing one; a full name in a file stays.
        assert models == {"You lead.": "gpt-6.1-terra", "You code.": "gpt-6.1-terra", "You test.": "tester"}
        last = json.dumps(server.requests[-1].body)
        assert "coded" in last
        assert "tested" in last
        (trace,) = database.traces()
        assert trace.metadata["agent_name"] == "lead"
        ran = {span.name for span in database.spans() if span.span_type == "agent"}
        assert ran == {"lead", "coder", "tester"}

    def test_json_is_the_context_of_the_named_agent(self, kantan_agents: Any, serve: Any) -> None:
        with serve(reply):
            outcome = kantan_agents("run", "--agent", "lead", "Build it.", "--model", "gpt-5", "--json")
        assert outcome.code == 0
        context = json.loads(outcome.stdout)
        assert context["result"]["last_agent"] == "lead"
        assert context["result"]["usage"]["requests"] == 4
        assert [entry["text"] for entry in context["history"]] == ["Build it.", "All done."]

    def test_the_tool_description_lists_the_agents_to_delegate_to(
        self, kantan_agents: Any, serve: Any
    ) -> None:
        with serve(["ok"]) as server:
            assert kantan_agents("run", "hi", "--agent", "lead", "--model", "gpt-5").code == 0
        (tool,) = server.requests[0].body["tools"]
        assert tool["name"] == "Task"
        assert "- coder: Codes." in tool["description"]
        assert "- tester: Tests." in tool["description"]
        assert "- lead:" not in tool["description"]

    def test_without_model_a_file_without_one_uses_the_default(self, kantan_agents: Any, serve: Any) -> None:
        with serve(["ok", "ok"]) as server:
            assert kantan_agents("run", "hi").code == 0
            assert kantan_agents("run", "hi", "--agent", "coder").code == 0
        first, second = server.requests
        assert first.model == second.model

    def test_prompts_cannot_read_the_environment(
        self, kantan_agents: Any, serve: Any, agents: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SECRET", "s3cret")
        agent_file(agents / "curious.md", "curious", prompt="Say {{ $env.SECRET }}.")
        with serve(["ok"]) as server:
            assert kantan_agents("run", "hi", "--agent", "curious").code == 0
        assert instructions_of(server.requests[0]) == "Say ."


@pytest.mark.usefixtures("agents")
class TestBadArguments:
    def test_an_unknown_agent(self, kantan_agents: Any) -> None:
        outcome = kantan_agents("run", "hi", "--agent", "teste")
        outcome.is_one_error("[E32] Agent not found: teste (available: tester, coder, lead)")

    def test_a_file_that_cannot_be_loaded(self, kantan_agents: Any, agents: Path) -> None:
        (agents / "broken.md").write_bytes(ERRORS["no-name.md"][0])
        outcome = kantan_agents("run", "hi", "--agent", "broken")
        outcome.is_one_error(f"[E31] Agent definition is not valid: {agents}/broken.md:1: name: is missing")

    def test_a_file_without_a_prompt(self, kantan_agents: Any, agents: Path) -> None:
        path = agent_file(agents / "mute.md", "mute", prompt=" \n")
        outcome = kantan_agents("run", "hi", "--agent", "mute")
        outcome.is_one_error("[E75] Invalid option --agent: mute has no prompt")
        assert str(path) in outcome.stderr

    def test_agent_and_instructions_cannot_be_combined(self, kantan_agents: Any) -> None:
        outcome = kantan_agents("run", "hi", "--agent", "lead", "--instructions", "Be brief.")
        outcome.is_one_error("[E75] Invalid option --agent: cannot be combined with --instructions")
