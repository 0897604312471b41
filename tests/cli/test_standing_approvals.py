"""What the answer "always" and ``--yes`` cover, and how a change is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agents import FunctionTool, function_tool

from kantan_agents.cli.terminal.approvals import ApprovalAnswer, AskedApprovals, AskedCall, approving
from kantan_agents.cli.terminal.file_diff import diff_lines, visible
from kantan_agents.cli.terminal.standing_approvals import GivenApprovals, standing_approval
from kantan_agents.errors import InvalidOptionError
from kantan_agents.middleware import PendingCall
from kantan_agents.tool_rules import ToolFacts
from kantan_agents.toolkit import toolkit
from kantan_agents.tools.facts import facts_of


@function_tool
def pay(note: str) -> str:
    """Pay."""
    return note


@pytest.fixture
def facts(tmp_path: Path) -> dict[str, ToolFacts]:
    (tmp_path / "root").mkdir()
    tools: list[FunctionTool] = [*toolkit(tmp_path / "root", write=True, shell=True, network=True), pay]
    return {tool.name: facts_of(tool) for tool in tools}


def call(tool: str, agent: str = "a", **arguments: Any) -> PendingCall:
    return PendingCall("1", tool, json.dumps(arguments), agent)


def shell(command: str, **others: Any) -> PendingCall:
    return call("Bash", command=command, **others)


@pytest.mark.parametrize(
    ("command", "words", "covered", "others"),
    [
        (
            "git status",
            "commands that begin with git status",
            ["git status -s"],
            ["git log", "git", "git -C x status"],
        ),
        (
            "git diff a.py",
            "commands that begin with git diff",
            ["git diff"],
            ["git diff > .git/hooks/pre-commit"],
        ),
        (
            "ls -l",
            "commands that begin with ls",
            ["ls", "ls /"],
            ["lsof", "ls; rm -r x", "ls $(rm x)", "X=1 ls"],
        ),
        ("npm test", "commands that begin with npm test", ["npm test -- -x"], ["npm run evil", "npm"]),
        (
            "pytest tests/a.py",
            "commands that begin with pytest",
            ["pytest"],
            ["pytest && rm x", "python -m pytest"],
        ),
        *(
            (command, "this command", [], [f"{command} x", command.split()[0]])
            for command in (
                *(
                    "python -m pytest",
                    "python3.11 a.py",
                    "bash a.sh",
                    "rm a",
                    "npx tsc",
                    "env X=1 ls",
                    "sudo ls",
                ),
                *(
                    "git -C x status",
                    "git config a b",
                    "npm run build",
                    "find . -name a",
                    "xargs ls",
                    "make all",
                ),
                *(
                    "julia -v",
                    "at now",
                    "crontab f",
                    "rg x",
                    "sort f",
                    "pwsh a",
                    "gh pr list",
                    "hatch env show",
                ),
                *(
                    "git fetch origin",
                    "git grep x",
                    "git pull",
                    "git ls-remote x",
                    "LS a",
                    "unknown-program a",
                ),
                *("./run.sh a", "ls | wc", "ls && rm x", "X=1 ls", "uv run a", "'git' status", "curl x"),
            )
        ),
    ],
)
def test_always_is_for_the_beginning_of_a_command(
    facts: dict[str, ToolFacts], command: str, words: str, covered: list[str], others: list[str]
) -> None:
    standing = standing_approval(shell(command), facts["Bash"])
    assert standing.words == words
    for one in (command, *covered):
        assert standing.covers(shell(one, description="other"), facts["Bash"]), one
    for one in others:
        assert not standing.covers(shell(one), facts["Bash"]), one
    assert not standing.covers(call("Bash", "b", command=command), facts["Bash"])
    assert not standing.covers(call("Write", file_path=command), facts["Write"])


def test_always_is_for_a_folder(facts: dict[str, ToolFacts], tmp_path: Path) -> None:
    standing = standing_approval(call("Edit", file_path="src/./a.py"), facts["Edit"])
    assert standing.words == "changes of files in src/"
    for tool in ("Write", "Edit", "MultiEdit"):
        for path in ("src/b.py", "src/x/c.py", f"{tmp_path}/root/src/d.py"):
            assert standing.covers(call(tool, file_path=path), facts[tool])
        for path in ("a.py", "srcs/a.py", "src/../a.py", "../src/a.py", "src", "/src/a.py"):
            assert not standing.covers(call(tool, file_path=path), facts[tool])
    assert not standing.covers(call("Read", file_path="src/b.py"), facts["Read"])
    # Another toolkit of the same agent has the same names for other files.
    (tmp_path / "other").mkdir()
    other = facts_of(toolkit(tmp_path / "other", write=True)[-1])
    assert not standing.covers(call("MultiEdit", file_path="src/b.py"), other)
    whole = standing_approval(call("Write", file_path="a.py"), facts["Write"])
    assert whole.words == f"changes of files in {tmp_path}/root/"
    assert whole.covers(call("Write", file_path="src/b.py"), facts["Write"])


def test_always_is_for_a_host_or_the_same_arguments(facts: dict[str, ToolFacts]) -> None:
    standing = standing_approval(call("WebFetch", url="https://docs.example.com/a"), facts["WebFetch"])
    assert standing.words == "calls of WebFetch for docs.example.com"
    assert standing.covers(call("WebFetch", url="https://docs.example.com/b"), facts["WebFetch"])
    assert not standing.covers(call("WebFetch", url="https://example.com/a"), facts["WebFetch"])
    standing = standing_approval(call("pay", note="git status"), facts["pay"])
    assert standing.covers(call("pay", note="git status"), facts["pay"])
    assert not standing.covers(call("pay", note="git status 2"), facts["pay"])
    guessed = ToolFacts(("mcp__a__b",), guessed=True)
    assert not standing_approval(call("mcp__a__b", x=1), guessed).covers(call("mcp__a__b", x=2), guessed)


def test_yes_takes_names_and_entries(facts: dict[str, ToolFacts]) -> None:
    given = GivenApprovals.of(["Edit", "Bash(git status:*)", "Write(docs/**)", "Write(.git/config)"])

    def covers(one: PendingCall, *, is_protected: bool = False) -> bool:
        return given.cover(one, facts[one.tool], is_protected=is_protected)

    assert covers(call("Edit", file_path="a"))
    assert covers(shell("git status -s")) and not covers(shell("git log"))
    assert covers(call("Write", file_path="docs/a")) and not covers(call("Write", file_path="a"))
    # A protected file is named, or asked for.
    assert covers(call("Write", file_path=".git/config"), is_protected=True)
    assert not covers(call("Edit", file_path=".git/config"), is_protected=True)
    assert not covers(call("Write", file_path="docs/.mcp.json"), is_protected=True)
    with pytest.raises(InvalidOptionError, match="--yes"):
        GivenApprovals.of(["Bash(git *)"])


async def test_a_protected_path_is_asked_for_whatever_the_tool_is(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    tools = {tool.name: tool for tool in toolkit(tmp_path / "root", write=True)}
    asked: list[AskedCall] = []

    async def ask(one: AskedCall) -> ApprovalAnswer:
        asked.append(one)
        return ApprovalAnswer("always")

    approvals = AskedApprovals(ask, lambda: None, ["Edit", "mcp__files__write"])
    for tool, arguments in (
        ("Write", {"file_path": "a.txt", "content": "x"}),
        ("Write", {"file_path": ".mcp.json", "content": "x"}),
        ("Edit", {"file_path": ".mcp.json", "old_string": "a", "new_string": "b"}),
        ("mcp__files__write", {"path": "src/.git/config", "content": "see .git"}),
    ):
        for _ in range(2):
            await approvals.answer(call(tool, **arguments), tools.get(tool))
    paths = [one.protected and one.protected[0] for one in asked]
    assert paths == [None, *[".mcp.json"] * 4, *["src/.git/config"] * 2]
    assert all((one.always is None) is (one.protected is not None) for one in asked)
    assert approving(asked[-1]) == "'mcp__files__write(src/.git/config)'"
    await approvals.answer(call("mcp__files__write", path="a.txt", content="see .git/config"), None)
    assert len(asked) == 7


def test_a_change_is_shown_as_lines_with_the_code_of_what_is_invisible() -> None:
    before = "".join(f"{number}\n" for number in range(20))
    after = before.replace("5\n", "five\u200b\U000e0041\x1b[1m\n", 1)
    shown = list(diff_lines(before, after))
    assert shown[0] == "@@ from line 3 @@"
    assert [line for line in shown if line[0] in "+-"] == ["-5", "+five[U+200B][U+E0041][U+001B][1m"]
    assert list(diff_lines(None, "a\nb\n")) == ["+a", "+b"]
    assert list(diff_lines("a\n", "a\n")) == []
    many = "\n".join(map(str, range(5000)))
    assert len([*diff_lines(many, many[::-1])]) > 5000
    assert visible("日本 é\tx") == "日本 é\tx"
