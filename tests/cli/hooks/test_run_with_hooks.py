"""``kantan-agents run`` with hooks: what it says, and that a hook can keep a question or a call back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.testing import ScriptedToolCall
from tests.cli.agent_folder import agent_file

from .conftest import Configure, group


@pytest.fixture
def ask(kantan_agents: Any, serve: Any, work: Path) -> Any:
    """``ask([reply, ...], "Hello", "--tools", ".")``: the outcome, and the requests of the model."""

    def run(replies: list[Any], question: str, *options: str, stdin: bytes | None = None) -> Any:
        with serve(replies) as server:
            outcome = kantan_agents("run", question, "--model", "offline", *options, stdin=stdin)
            return outcome, server.requests

    return run


def test_the_start_names_the_hooks(ask: Any, configure: Configure) -> None:
    path = configure(PreToolUse=[group(f"true {'x' * 99}", "Bash|\u202eWrite")], Stop=[group("true")])
    outcome, _ = ask(["Hello."], "Hi")
    assert (outcome.code, outcome.stdout) == (0, "Hello.\n")
    assert outcome.stderr.splitlines() == [
        f"note: hooks of {path}; --no-hooks turns them off",
        f"  PreToolUse Bash|[U+202E]Write: true {'x' * 52}...",
        "  Stop: true",
    ]


def test_no_hooks_runs_none_and_reads_no_file(ask: Any, configure: Configure) -> None:
    configure(UserPromptSubmit=[group("exit 2")]).write_text("{")
    outcome, _ = ask(["Hello."], "Hi", "--no-hooks")
    assert (outcome.code, outcome.stdout, outcome.stderr) == (0, "Hello.\n", "")


def test_a_wrong_file_is_an_error_before_anything_runs(ask: Any, configure: Configure, work: Path) -> None:
    path = configure(PreToolUse=[group("true", timeout=9999)])
    outcome, requests = ask([], "Hi")
    assert outcome.code == 2 and requests == []
    assert outcome.stderr == (
        f"error: [kantan-agents][E199] Hooks cannot be used: {path}: hooks.PreToolUse[0].hooks[0].timeout: "
        "Input should be less than or equal to 600. Correct this, or pass --no-hooks to run without hooks\n"
    )


def test_a_context_file_brings_no_hooks(ask: Any, own: Path, work: Path) -> None:
    hooks = {"UserPromptSubmit": [group("exit 2")], "PreToolUse": [group("exit 2")]}
    (work / "context.json").write_text(json.dumps({"hooks": hooks}))
    outcome, _ = ask(["Hello."], "Hi", "--context", "context.json")
    assert (outcome.code, outcome.stdout, outcome.stderr) == (0, "Hello.\n", "")


def test_the_file_of_an_agent_brings_no_hooks(ask: Any, own: Path, work: Path) -> None:
    hooks = json.dumps({event: [group("exit 2")] for event in ("UserPromptSubmit", "PreToolUse", "Stop")})
    agent_file(work / ".claude/agents/a.md", "a", "Answers.", f"model: m\nhooks: {hooks}\n", "You answer.\n")
    outcome, _ = ask(["Hello."], "Hi", "--agent", "a")
    assert (outcome.code, outcome.stdout) == (0, "Hello.\n")


def test_a_question_is_kept_back(ask: Any, configure: Configure) -> None:
    configure(UserPromptSubmit=[group("echo 'no \x1b[2Jsecrets' >&2; exit 2")], Stop=[group("touch stopped")])
    outcome, requests = ask([], "My password is 1234.")
    assert (outcome.code, outcome.stdout, requests) == (1, "", [])
    (line,) = outcome.stderr.splitlines()[3:]
    assert line.startswith("error: the question is not sent: ") and line.endswith("no [U+001B][2Jsecrets")


@pytest.mark.parametrize(
    ("question", "options", "sent"),
    [
        ("Hi", (), "Hi{added}"),
        ("//Hi", (), "/Hi{added}"),
        ("/Hi", ("--no-commands",), "/Hi{added}"),
        ("/greet Bo", (), "Greet Bo."),
    ],
)
def test_what_a_hook_prints_is_added_to_the_question(
    ask: Any, configure: Configure, work: Path, question: str, options: tuple[str, ...], sent: str
) -> None:
    (work / ".claude/commands").mkdir(parents=True)
    (work / ".claude/commands/greet.md").write_text("Greet $ARGUMENTS.")
    configure(UserPromptSubmit=[group("echo It is Monday.")])
    _, (request,) = ask(["Hello."], question, *options)
    added = "\n\nAdded by a hook of the user:\nIt is Monday."
    assert request.body["messages"][-1]["content"] == sent.format(added=added)


def test_calls_are_guarded_and_the_end_is_announced(
    ask: Any, configure: Configure, own: Path, work: Path
) -> None:
    (work / "code").mkdir()
    (work / "code/a.txt").write_text("a secret number: 42\n")
    configure(
        PreToolUse=[
            group("tee -a seen | grep -q secret.txt && { echo 'not this' >&2; exit 2; }; true", "Read")
        ],
        Stop=[group("cat > stopped; echo 'run the tests' >&2; exit 2")],
    )
    reads = [ScriptedToolCall("Read", {"file_path": name}, name) for name in ("secret.txt", "a.txt")]
    outcome, requests = ask([reads, "Done."], "Go.", "--tools", "code")
    assert (outcome.code, outcome.stdout) == (0, "Done.\n")
    outputs = [item["content"] for item in requests[1].body["messages"] if item["role"] == "tool"]
    assert outputs[0] == "A hook of the user blocks this call: not this"
    assert "a secret number: 42" in outputs[1]
    assert json.loads((own / "seen").read_text().splitlines()[0])["cwd"] == str(work / "code")
    assert json.loads((own / "stopped").read_text())["last_assistant_message"] == "Done."
    assert outcome.stderr.splitlines()[-1].endswith("run the tests")
