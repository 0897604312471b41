"""``run --rules`` and ``tools explain --agent``: the same rules as in a run of the library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.testing import ScriptedToolCall
from tests.cli.agent_folder import agent_file
from tests.distributions import Distribution, Use

GREET = """
def greet(name: str) -> str:
    '''Greet somebody.'''
    return f"Hello {name}."

class Provider:
    def list_tools(self): return [greet]
    def get_tool_rules(self): return None
"""
PROVIDER = Distribution("brief-greeter-tools", "1.0", {"brief-greeter": ":Provider"}, GREET)
SHORT = {"params": {"greet": {"name": {"maxLength": 3}}}}


@pytest.fixture
def written(tmp_path: Path) -> Any:
    """``written({...}, "rules.json")``: the path of a file with this JSON."""

    def write(data: Any, name: str = "rules.json") -> str:
        (tmp_path / name).write_text(json.dumps(data))
        return str(tmp_path / name)

    return write


class TestRunRules:
    def test_they_limit_the_calls_of_the_model_and_the_refusal_is_found(
        self, kantan_agents: Any, serve: Any, use: Use, written: Any
    ) -> None:
        use(PROVIDER)
        with serve([ScriptedToolCall("greet", {"name": "Ada Lovelace"}), "No."]) as server:
            outcome = kantan_agents("run", "Greet her.", "--rules", written(SHORT), "--json")
        context = json.loads(outcome.stdout)
        assert (outcome.code, context["result"]["final_output"]) == (0, "No.")
        assert context["tool_rules"]["params"] == SHORT["params"]
        assert "E14" in json.dumps(server.requests[1].body)
        found = kantan_agents("traces", "list", "--denied", "--tool", "greet", "--json")
        assert [run["input"] for run in json.loads(found.stdout)] == ["Greet her."]

    def test_they_limit_commands_too(self, kantan_agents: Any, use: Use, written: Any) -> None:
        use(PROVIDER)
        rules = written(SHORT)
        assert kantan_agents("run", "/greet Ada", "--rules", rules).stdout == "Hello Ada.\n"
        outcome = kantan_agents("run", "/greet Adam", "--rules", rules)
        assert outcome.code != 0
        assert "Hello" not in outcome.stdout

    def test_they_may_be_in_a_context_or_on_standard_input(
        self, kantan_agents: Any, serve: Any, written: Any
    ) -> None:
        with serve(["a", "b"]):
            outcome = kantan_agents(
                "run", "hi", "--json", "--rules", written({"tool_rules": {"deny": ["x"]}})
            )
            assert json.loads(outcome.stdout)["tool_rules"]["deny"] == ["x"]
            outcome = kantan_agents("run", "hi", "--json", "--rules", "-", stdin=b'{"deny": ["y"]}')
        assert json.loads(outcome.stdout)["tool_rules"]["deny"] == ["y"]

    def test_a_conversation_can_repeat_them(self, kantan_agents: Any, serve: Any, written: Any) -> None:
        rules, context = written(SHORT), written({}, "context.json")
        with serve(["one", "two", "three"]):
            for _ in range(3):
                outcome = kantan_agents("run", "hi", "--json", "--context", context, "--rules", rules)
                assert (outcome.code, outcome.stderr) == (0, "")
                Path(context).write_text(outcome.stdout)
        assert len(json.loads(outcome.stdout)["history"]) == 6

    @pytest.mark.parametrize("present", [{"deny": ["greet"]}, {"allow": []}])
    def test_other_rules_in_the_context_are_neither_merged_nor_replaced(
        self, kantan_agents: Any, written: Any, present: Any
    ) -> None:
        context = written({"tool_rules": present}, "context.json")
        outcome = kantan_agents("run", "hi", "--context", context, "--rules", written(SHORT))
        outcome.is_one_error("[E75] Invalid option --rules: the context has other rules in tool_rules")

    def test_mistakes_end_the_command_before_the_run(
        self, kantan_agents: Any, serve: Any, written: Any
    ) -> None:
        with serve() as server:
            kantan_agents("run", "hi", "--rules", written({"alow": []})).is_one_error("[E20] ")
            kantan_agents("run", "hi", "--rules", "/none.json").is_one_error("[E79] ")
            kantan_agents("run", "-", "--rules", "-", stdin=b"{}").is_one_error(
                "[E75] Invalid option --rules"
            )
            context = written({"tool_rules": []}, "context.json")
            kantan_agents("run", "hi", "--rules", written({}), "--context", context).is_one_error("[E18] ")
        assert server.requests == []


class TestExplainForAnAgent:
    @pytest.fixture
    def reviewer(self, project: Path) -> Path:
        more = "tools: Read, Bash(git diff:*)\nmodel: some-model-without-a-key\n"
        return agent_file(project / ".claude" / "agents" / "reviewer.md", "reviewer", more=more)

    @pytest.mark.parametrize("by", ["name", "file"])
    @pytest.mark.parametrize(
        ("tool", "arguments", "code"),
        [
            ("Read", None, 0),
            ("Write", None, 1),
            ("Bash", '{"command": "git diff HEAD"}', 0),
            ("Bash", '{"command": "rm -rf ."}', 1),
            ("Task", None, 1),
        ],
    )
    def test_the_tools_that_its_file_allows_decide(
        self,
        kantan_agents: Any,
        reviewer: Path,
        by: str,
        tool: str,
        arguments: str | None,
        code: int,
    ) -> None:
        named = str(reviewer) if by == "file" else "Reviewer"
        options = [] if arguments is None else ["--args", arguments]
        outcome = kantan_agents("tools", "explain", tool, "--agent", named, "--json", *options)
        assert outcome.code == code
        explanation = json.loads(outcome.stdout)
        assert explanation["allowed"] is (code == 0)
        assert explanation["layer"] == "definition"

    @pytest.mark.usefixtures("reviewer")
    def test_a_tool_that_the_agent_does_not_have_is_named_on_stderr(self, kantan_agents: Any) -> None:
        outcome = kantan_agents("tools", "explain", "Read", "--agent", "reviewer")
        assert outcome.code == 0
        assert outcome.stderr == (
            "warning: no tool of agent 'reviewer' is named 'Read'; "
            "a program that runs the agent must bring it\n"
        )
        assert kantan_agents("tools", "explain", "Write", "--agent", "reviewer").stderr == ""

    def test_a_tool_that_the_agent_has_or_may_get_is_not_named(
        self, kantan_agents: Any, use: Use, project: Path
    ) -> None:
        use(PROVIDER)
        more = "tools: greet, Task, mcp__github\n"
        agent_file(project / ".claude" / "agents" / "host.md", "host", more=more)
        for tool in ("greet", "Task", "mcp__github__get_issue"):
            outcome = kantan_agents("tools", "explain", tool, "--agent", "host")
            assert (outcome.code, outcome.stderr) == (0, "")

    @pytest.mark.usefixtures("reviewer")
    def test_explicit_rules_come_on_top(self, kantan_agents: Any, written: Any) -> None:
        rules = written({"deny": ["Read"]})
        outcome = kantan_agents("tools", "explain", "Read", "--agent", "reviewer", "--rules", rules)
        assert outcome.code == 1
        assert "  rule: deny: Read, in explicit\n" in outcome.stdout

    def test_an_unknown_agent_or_file(self, kantan_agents: Any, project: Path) -> None:
        kantan_agents("tools", "explain", "Read", "--agent", "nobody").is_one_error("[E32] ")
        kantan_agents("tools", "explain", "Read", "--agent", "nobody.md").is_one_error("[E30] ")

    def test_a_file_outside_the_usual_directories_can_be_run(
        self, kantan_agents: Any, serve: Any, project: Path
    ) -> None:
        path = agent_file(project / "elsewhere" / "poet.md", "poet", prompt="You rhyme.")
        with serve(["Tea for me."]) as server:
            outcome = kantan_agents("run", "--agent", str(path), "Tea?")
        assert (outcome.code, outcome.stdout, outcome.stderr) == (0, "Tea for me.\n", "")
        assert "You rhyme." in json.dumps(server.requests[0].body)
