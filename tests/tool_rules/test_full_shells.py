from __future__ import annotations

from pathlib import Path

import pytest

from kantan_agents import explain
from kantan_agents.tool_rules import ToolFacts, ToolRules, decide_call
from kantan_agents.tool_rules.full_shells import (
    BY_OPTIONS,
    BY_SUBCOMMAND,
    INTERPRETERS,
    SHELLS,
    remark_on_entry,
)
from kantan_agents.tool_rules.wrappers import WRAPPERS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "tool-rules.md"
BASH = ToolFacts(("Bash",), parameter="command")
WRAPPING = sorted(name for wrapper in WRAPPERS for name in wrapper.names if name not in SHELLS)


def codes(names: object) -> str:
    return ", ".join(f"`{name}`" for name in names)  # type: ignore[attr-defined]


def rows() -> list[str]:
    by_subcommand = "; ".join(
        f"`{name}`{f': {codes(more.split())}' if more else ''}" for name, (_, more) in BY_SUBCOMMAND.items()
    )
    return [
        f"| {codes(SHELLS)} | unless a script is named |",
        f"| {codes(INTERPRETERS)} | unless a script or a package is named |",
        f"| {codes(BY_OPTIONS)} | also with further words: an option, or a file, names the program |",
        f"| {by_subcommand} | alone, or with one of these subcommands |",
        "| each command that runs another | unless the other command is named |",
    ]


def test_the_page_names_them_all() -> None:
    page = PAGE.read_text(encoding="utf-8")
    missing = [row for row in rows() if row not in page]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("example", sorted({*BY_OPTIONS.values(), *INTERPRETERS.values()}))
def test_an_example_is_a_call_that_the_entry_allows(example: str) -> None:
    name = example.partition(" ")[0]
    remark = remark_on_entry(f"Bash({name}:*)")
    assert remark == f"Bash({name}:*) permits any program, as in: {example}"
    if not any(sign in example for sign in ";()<>"):  # a chain is never in a prefix
        rules = ToolRules.parse({"allow": [f"Bash({name}:*)"]})
        assert decide_call(rules, BASH, {"command": example.replace("PROGRAM", "x")}).allowed


@pytest.mark.parametrize("name", [*SHELLS, *WRAPPING, *BY_SUBCOMMAND])
def test_each_name_alone_is_a_full_shell(name: str) -> None:
    assert remark_on_entry(f"Bash({name}:*)") is not None


FULL = """git:*|git -C .:*|git -C . push:*|git push:*|git config:*|find . -name:*|python3.11:*|python3:*
    |/usr/bin/python:*|python -u:*|npm:*|npm install:*|npm exec:*|npx:*|env:*|env A=1:*|timeout 5:*|xargs:*
    |xargs -n1:*|bash -c:*|make test:*|uv run:*|uv run python:*|sudo -n:*|docker run:*|node.exe:*|sed -n:*
    |tar xf:*|poetry run env:*"""
NARROW = """git status:*|git log:*|git diff:*|git -C . log:*|python x.py:*|npm run test:*|npm test:*|ls:*
    |npx prettier:*|cat:*|grep:*|timeout 5 ls:*|bash x.sh:*|make test|git|uv run ruff:*|go vet:*|cargo fmt:*
    |env ls:*|*|kubectl get:*"""


@pytest.mark.parametrize("argument", [one.strip() for one in FULL.split("|")])
def test_entries_that_permit_any_program_are_remarked_on(argument: str) -> None:
    assert remark_on_entry(f"Bash({argument})") is not None


@pytest.mark.parametrize("argument", [one.strip() for one in NARROW.split("|")])
def test_other_entries_are_not(argument: str) -> None:
    assert remark_on_entry(f"Bash({argument})") is None


@pytest.mark.parametrize("entry", ["Bash", "Read(src/**)", "WebFetch(domain:a.example)", "Bash(", "mcp__git"])
def test_entries_about_no_command_are_not(entry: str) -> None:
    assert remark_on_entry(entry) is None


def test_an_explanation_says_so() -> None:
    explained = explain("Bash", tool_rules={"allow": ["Bash(find:*)", "Bash(ls:*)"], "deny": ["Bash(git:*)"]})
    assert explained.remarks == ("Bash(find:*) permits any program, as in: find . -exec PROGRAM ;",)
    assert str(explained).endswith(f"remark: {explained.remarks[0]}")
