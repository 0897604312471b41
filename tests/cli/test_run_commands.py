"""``kantan-agents run "/name ..."``: slash commands run tools without a model."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.agent_folder import agent_file
from tests.distributions import Distribution, Use

GREET = """
def greet(name: str, loud: bool = False) -> str:
    '''Greet somebody.'''
    return f"Hello {name}{'!' if loud else '.'}"

class Provider:
    def list_tools(self): return [greet]
    def get_tool_rules(self): return None
"""
PROVIDER = Distribution("greeter-tools", "1.0", {"greeter": ":Provider"}, GREET)


def test_a_command_is_answered_without_a_model(kantan_agents: Any, use: Use) -> None:
    use(PROVIDER)
    outcome = kantan_agents("run", "/greet 'Ada Lovelace' --loud")
    assert (outcome.code, outcome.stdout, outcome.stderr) == (0, "Hello Ada Lovelace!\n", "")


def test_help_lists_the_available_tools(kantan_agents: Any, use: Use) -> None:
    use(PROVIDER)
    outcome = kantan_agents("run", "/help")
    assert outcome.stdout.splitlines() == [
        "/help [COMMAND]: List the commands, or explain one.",
        "/greet NAME [--loud]: Greet somebody.",
    ]


def test_json_shows_the_completed_context(kantan_agents: Any, use: Use) -> None:
    use(PROVIDER)
    outcome = kantan_agents("run", "/greet Ada", "--json")
    context = json.loads(outcome.stdout)
    assert context["result"]["final_output"] == "Hello Ada."
    assert context["result"]["usage"]["requests"] == 0
    assert [entry["role"] for entry in context["history"]] == ["user", "assistant"]


@pytest.mark.parametrize(
    ("question", "code"), [("/gret Ada", "E54"), ("/greet", "E55"), ("/etc/hosts?", "E54"), ("/", "E55")]
)
def test_an_invalid_command_gives_one_line_and_exit_code_2(
    question: str, code: str, kantan_agents: Any, use: Use
) -> None:
    use(PROVIDER)
    outcome = kantan_agents("run", question)
    outcome.is_one_error(f"[{code}] ")


def test_two_slashes_begin_a_question_for_the_model(kantan_agents: Any, serve: Any) -> None:
    with serve(["A file."]) as server:
        outcome = kantan_agents("run", "//etc/hosts is what?")
    assert outcome.stdout == "A file.\n"
    assert server.requests[0].body["input"] == [{"content": "/etc/hosts is what?", "role": "user"}]


def test_piped_input_is_always_a_question(
    kantan_agents: Any, serve: Any, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(PROVIDER)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"/greet Ada\n")))
    with serve(["Asked."]) as server:
        outcome = kantan_agents("run", "-")
    assert outcome.stdout == "Asked.\n"
    assert server.requests[0].body["input"] == [{"content": "/greet Ada", "role": "user"}]


def test_without_commands_it_is_a_question(kantan_agents: Any, serve: Any, use: Use) -> None:
    use(PROVIDER)
    with serve(["Asked."]) as server:
        outcome = kantan_agents("run", "/greet Ada", "--no-commands")
    assert outcome.stdout == "Asked.\n"
    assert server.requests[0].body["input"] == [{"content": "/greet Ada", "role": "user"}]


@pytest.mark.parametrize(
    ("context", "code"),
    [
        ({"tool_rules": {"deny": ["greet"]}}, 1),
        ({"tool_rules": {"allow": ["other"]}}, 1),
        ({"tool_rules": {"params": {"greet": {"name": {"pattern": "^B"}}}}}, 1),
        ({"user_rules": {"allow": ["other"]}}, 1),
        ({"tool_rules": {"deny": "*"}, "user_rules": {"allow": ["greet"]}}, 0),
        ({"tool_rules": {"allow": None, "deny": None, "params": {}}}, 0),
        ({"tool_rules": 5}, 2),
        ({"user_rules": 5}, 2),
        ({"userRules": {"deny": ["greet"]}}, 2),
        ({"Tool-Rules": {"deny": ["greet"]}}, 2),
    ],
)
def test_the_rules_in_the_context_apply(
    context: Any, code: int, kantan_agents: Any, use: Use, tmp_path: Path
) -> None:
    use(PROVIDER)
    path = tmp_path / "context.json"
    path.write_text(json.dumps(context), encoding="utf-8")
    outcome = kantan_agents("run", "/greet Ada", "--context", str(path))
    assert outcome.code == code, outcome
    assert ("Hello Ada" in outcome.stdout) == (code == 0)


def test_the_rules_for_users_are_printed_as_the_context_option_reads_them(
    kantan_agents: Any, use: Use, tmp_path: Path
) -> None:
    use(PROVIDER)
    path = tmp_path / "context.json"
    rules = {"allow": ["greet"], "deny": ["other"], "params": {}}
    path.write_text(json.dumps({"user_rules": rules}), encoding="utf-8")
    for _ in range(2):
        outcome = kantan_agents("run", "/greet Ada", "--context", str(path), "--json")
        assert json.loads(outcome.stdout)["user_rules"] == rules
        path.write_text(outcome.stdout, encoding="utf-8")


def test_an_agent_of_a_file_has_the_tools_its_file_allows(
    kantan_agents: Any, project: Path, serve: Any
) -> None:
    directory = project / ".claude" / "agents"
    agent_file(directory / "lead.md", "lead", "Leads.", "tools: Task\n", "You lead.\n")
    agent_file(directory / "coder.md", "coder", "Codes.", "tools: Read\n", "You code.\n")
    with serve(["/help"]) as server:
        asked = kantan_agents(
            "run", "--agent", "lead", "/Task --description d --subagent-type coder -- /help"
        )
    assert asked.code == 0
    assert "no tool of agent 'coder' is named 'Read'" in asked.stderr
    assert server.requests[0].body["input"] == [{"content": "/help", "role": "user"}]
    assert "/Task" in kantan_agents("run", "--agent", "lead", "/help").stdout
    assert kantan_agents("run", "--agent", "coder", "/help").stdout.count("\n") == 1
    assert "[E8]" in kantan_agents("run", "--agent", "coder", "/Task a b c").stderr
