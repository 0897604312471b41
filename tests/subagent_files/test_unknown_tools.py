"""Tools that a definition names and that do not exist are found by their names."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import AgentDefinition
from kantan_agents.subagent_files.unknown_tools import UnknownTool, unknown_tools

names = st.text("abcdefgh_", min_size=1, max_size=8)


def define(tools: Any) -> AgentDefinition:
    return AgentDefinition("a", "b", "P", tools=tools)


@pytest.mark.parametrize(
    ("tools", "existing", "expected"),
    [
        ("*", [], []),
        ((), [], []),
        (("Read", "Grep"), [], ["Read", "Grep"]),
        (("Read", "search"), ["search"], ["Read"]),
        (("Bash(git diff:*)", "Bash(ls)"), [], ["Bash"]),
        (("Bash(git diff:*)",), ["Bash"], []),
        (("s*", "x*"), ["search"], ["x*"]),
        (("mcp__github", "mcp__github__*", "mcp__a__b"), [], []),
        (("Task", "Agent", "Task(a, b)", "agent"), [], []),
        (("WebFetch(domain:example.com)", "Read(src/**)"), [], ["WebFetch", "Read"]),
        (("read",), ["Read"], ["read"]),
    ],
)
def test_only_local_tools_that_do_not_exist_are_found(
    tools: Any, existing: list[str], expected: list[str]
) -> None:
    assert [tool.name for tool in unknown_tools(define(tools), existing)] == expected


def test_the_nearest_existing_name_is_given() -> None:
    [tool] = unknown_tools(define(("Read",)), ["read", "write"])
    assert tool == UnknownTool("Read", "read")
    assert str(tool) == "'Read' (the nearest name is 'read')"
    assert str(UnknownTool("Grep")) == "'Grep'"


@given(st.lists(names, min_size=1, max_size=6, unique=True), st.lists(names, max_size=6, unique=True))
def test_a_name_is_found_if_and_only_if_no_tool_has_it(wanted: list[str], existing: list[str]) -> None:
    found = [tool.name for tool in unknown_tools(define(tuple(wanted)), existing)]
    delegation = {"task", "agent"}
    assert found == [name for name in wanted if name not in existing and name.casefold() not in delegation]
