"""Which calls a hook is for, and what is wrong with a file of hooks, each mistake with its place."""

from __future__ import annotations

from typing import Any

import pytest

from kantan_agents.cli.hooks.hook import parse_hooks

from .conftest import entry, group


@pytest.mark.parametrize(
    ("matcher", "concerned", "others"),
    [
        ("", ["Bash", "mcp__docs__search"], []),
        ("*", ["Bash"], []),
        ("Write", ["Write"], ["MultiWrite", "Writer", "write"]),
        ("Write|Edit", ["Write", "Edit"], ["MultiEdit"]),
        ("Write | Edit", ["Write", "Edit"], ["MultiEdit"]),
        ("mcp__my-docs__search", ["mcp__my-docs__search"], ["mcp__my-docs__search2"]),
        ("mcp__docs__.*", ["mcp__docs__search"], ["mcp__other__search"]),
        ("Edit$", ["Edit", "MultiEdit"], ["Editor"]),
    ],
)
def test_a_matcher_is_names_or_a_regular_expression(
    matcher: str, concerned: list[str], others: list[str]
) -> None:
    (hook,), problems = parse_hooks({"hooks": {"PreToolUse": [group("true", matcher)]}})
    assert problems == []
    assert [name for name in (*concerned, *others) if hook.concerns([name])] == concerned
    assert hook.concerns(["of a server", *concerned])  # one of the names of a tool is enough


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ([], "the file: "),
        ({}, "hooks: Field required"),
        ({"hooks": []}, "hooks: "),
        ({"hooks": {"SessionStart": []}}, "hooks.SessionStart.[key]: Input should be 'PreToolUse'"),
        ({"hooks": {"Stop": [group("true")]}, "mcp": 1}, "mcp: Extra inputs"),
        ({"hooks": {"Stop": [{"hooks": []}]}}, "hooks.Stop[0].hooks: "),
        (
            {"hooks": {"Stop": [{"hooks": [{"command": "true"}]}]}},
            "hooks.Stop[0].hooks[0].type: Field required",
        ),
        ({"hooks": {"Stop": [{"hooks": [entry("")]}]}}, "hooks.Stop[0].hooks[0].command: "),
        ({"hooks": {"Stop": [group("true", timeout=0)]}}, "hooks.Stop[0].hooks[0].timeout: "),
        ({"hooks": {"Stop": [group("true", timeout=601)]}}, "hooks.Stop[0].hooks[0].timeout: "),
        ({"hooks": {"Stop": [group("true", timeout="5")]}}, "hooks.Stop[0].hooks[0].timeout: "),
        (
            {"hooks": {"PreToolUse": [group("true", "(")]}},
            "hooks.PreToolUse[0].matcher: Input should be a valid",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(data: Any, problem: str) -> None:
    _, problems = parse_hooks(data)
    assert len(problems) == 1
    assert problems[0].startswith(problem)


def test_all_mistakes_are_named() -> None:
    wrong = {"matcher": 1, "hooks": [entry("true", timeout=-1), {"type": "prompt", "command": "x"}]}
    _, problems = parse_hooks({"hooks": {"Stop": [group("true"), wrong]}})
    assert [problem.partition(":")[0] for problem in problems] == [
        "hooks.Stop[1].matcher",
        "hooks.Stop[1].hooks[0].timeout",
        "hooks.Stop[1].hooks[1].type",
    ]
