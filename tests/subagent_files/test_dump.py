"""The text that ``dump`` writes (spec subagents, "格式兼容性")."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kantan_agents import AgentDefinition


def front_of(**values: Any) -> list[str]:
    definition = AgentDefinition(**{"name": "a", "description": "b", **values})
    return definition.dump().split("---\n")[1].splitlines()[2:]


def test_the_dump_can_be_read_by_claude_code_and_kode() -> None:
    """Scenario: Rust 版本 Agent 可被 TS 读取."""
    definition = AgentDefinition(
        name="code-reviewer",
        description="Reviews code: all of it.",
        system_prompt="You review.\n",
        tools=("Read", "Grep", "Bash(git diff:*)"),
        disallowed_tools=("Write",),
        model="opus",
        color="#ff0000",
        max_turns=5,
        extra={"team": "core"},
    )

    assert definition.dump() == (
        "---\n"
        "name: code-reviewer\n"
        'description: "Reviews code: all of it."\n'
        "tools: Read, Grep, Bash(git diff:*)\n"
        "disallowedTools: Write\n"
        "model: opus\n"
        'color: "#ff0000"\n'
        "maxTurns: 5\n"
        "team: core\n"
        "---\n"
        "\n"
        "You review.\n"
    )


def test_missing_fields_are_not_written() -> None:
    assert front_of() == []
    assert front_of(tools="*", disallowed_tools=(), extra={}) == []


def test_no_tools_are_an_empty_list() -> None:
    assert front_of(tools=()) == ["tools: []"]


def test_a_single_name_with_a_space_is_written_as_a_list() -> None:
    assert front_of(tools=("My Tool",)) == ["tools:", "  - My Tool"]


def test_a_tool_with_an_unclosed_bracket_survives_a_round_trip() -> None:
    definition = AgentDefinition(name="a", description="b", tools=("Bash(git", "Read"))

    assert AgentDefinition.loads(definition.dump()) == definition


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "No",
        "on",
        "n",
        "1.0",
        "null",
        "~",
        "2024-01-01",
        "0o7",
        "*",
        "- a",
        "",
        " a",
        "a ",
        "a: b",
        "a #b",
        "a:",
    ],
)
def test_a_text_that_could_be_something_else_is_quoted(text: str) -> None:
    assert front_of(category=text) == [f'category: "{text}"']


@pytest.mark.parametrize("text", ["opus", "two words", "a:b", "a#b", "it's", "é", "x, y (z)", "日本語"])
def test_a_plain_text_stays_plain(text: str) -> None:
    assert front_of(category=text) == [f"category: {text}"]


def test_a_long_text_stays_on_its_line() -> None:
    assert front_of(category="word " * 200 + "end") == ["category: " + "word " * 200 + "end"]


def test_nested_data_is_written_in_block_style() -> None:
    hooks = {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command"}]}],
        "none": {},
        "lists": [[1, [2]], []],
    }

    assert front_of(hooks=hooks) == [
        "hooks:",
        "  PreToolUse:",
        "    - matcher: Bash",
        "      hooks:",
        "        - type: command",
        "  none: {}",
        "  lists:",
        "    - - 1",
        "      - - 2",
        "    - []",
    ]


@pytest.mark.parametrize("key", ["k" * 2000, "\n" * 900, "a: b", "yes", "", "---", "?", "{a}"])
def test_any_key_survives_a_round_trip(key: str) -> None:
    definition = AgentDefinition(name="a", description="b", extra={key: [{key: [1]}]}, context={key: 1})

    assert AgentDefinition.loads(definition.dump()) == definition
    assert yaml.safe_load(definition.dump().rsplit("---\n", 1)[0].removeprefix("---\n"))[key] == [{key: [1]}]


def test_a_literal_backslash_n_in_a_description_survives_a_round_trip() -> None:
    definition = AgentDefinition(name="a", description="C:\\new \\ \\\\n\nline")

    assert "C:\\x5cnew" in definition.dump()
    assert AgentDefinition.loads(definition.dump()) == definition


def test_a_number_is_read_as_a_number_by_every_parser() -> None:
    numbers = [1e16, 1.5e-7, -0.5, 10**30, -3, 1e300]

    assert yaml.safe_load("\n".join(front_of(extra={"x": numbers})))["x"] == numbers
