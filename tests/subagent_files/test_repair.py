"""Files that are not valid YAML are repaired while they are read."""

from __future__ import annotations

from typing import Any

import pytest

from kantan_agents import AgentDefinition
from kantan_agents.errors import AgentFileError, InvalidDefinitionError

UNINDENTED = """\
---
name: planner
description: Use this agent to plan. Examples:

<example>
Context: The user wants a plan.
user: "Plan this: now"
assistant: "I'll use the planner: it plans."
# a heading of the text
</example>

And more.
# the tools
tools: Read, Grep
model: opus
---

You plan.
"""


def repaired(*lines: str, name: str = "name: a") -> AgentDefinition:
    definition = AgentDefinition.loads("\n".join(["---", name, *lines, "---", "", "P\n"]))
    assert definition.system_prompt == "P\n"
    assert definition.is_repaired
    return definition


def warnings_in(definition: AgentDefinition) -> list[tuple[int, str]]:
    return [(note.line, note.message) for note in definition.repairs]


def test_a_colon_in_a_description_without_quotes() -> None:
    read = repaired(
        'description: Use it: now.\\n\\n<example>Context: x\\nuser: "y: z"</example>', "model: opus"
    )

    assert read.description == 'Use it: now.\n\n<example>Context: x\nuser: "y: z"</example>'
    assert read.model == "opus"
    assert warnings_in(read) == [(3, "description: contains ': ' and is not quoted")]
    assert str(read.repairs[0]) == "<text>:3: description: contains ': ' and is not quoted"


def test_a_description_that_continues_on_unindented_lines() -> None:
    read = AgentDefinition.loads(UNINDENTED)

    assert read.description.startswith("Use this agent to plan. Examples:\n\n<example>\nContext: The user")
    assert read.description.endswith("# a heading of the text\n</example>\n\nAnd more.")
    assert (read.tools, read.model, read.system_prompt) == (("Read", "Grep"), "opus", "You plan.\n")
    assert warnings_in(read) == [(5, "description: continues on lines that are not indented")]


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_other_line_ends_are_repaired_the_same_way(newline: str) -> None:
    read = AgentDefinition.loads(UNINDENTED.replace("\n", newline))

    assert read.description == AgentDefinition.loads(UNINDENTED).description
    assert warnings_in(read) == warnings_in(AgentDefinition.loads(UNINDENTED))


@pytest.mark.parametrize(
    ("written", "description", "why"),
    [
        ('"Use it: now', "Use it: now", "the quote is not closed"),
        ("'Use it: now", "Use it: now", "the quote is not closed"),
        ('"say "hello: you" now"', 'say "hello: you" now', "inside its quotes"),
        ('"say \\"hello\\" "you" now"', 'say "hello" "you" now', "inside its quotes"),
        ("'it's: so'", "it's: so", "inside its quotes"),
        ('"one" and "two"', '"one" and "two"', "inside its quotes"),
        ('"one" and: two', '"one" and: two', "text follows the closing quote"),
        ("@someone: hello", "@someone: hello", "contains ': '"),
        ("@someone", "@someone", "begins with '@'"),
        ("*Important* text", "*Important* text", "begins with '*'"),
        ("%a", "%a", "begins with '%'"),
        ("`a`", "`a`", "begins with '`'"),
        ("{a} b", "{a} b", "is not valid YAML"),
        ("{{ var }}", "{{ var }}", "begins with '{{' must be quoted"),
        ("{{ $ctx.a }} and {{ b }}", "{{ $ctx.a }} and {{ b }}", "is not valid YAML"),
        ('"a \\d b"', "a \\d b", "inside its quotes"),
        ("a \x07 b", "a \x07 b", "U+0007 is not allowed"),
    ],
)
def test_a_description_that_is_not_valid_yaml(written: str, description: str, why: str) -> None:
    read = repaired(f"description: {written}", "tools: Read")

    assert (read.description, read.tools) == (description, ("Read",))
    assert len(read.repairs) == 1
    assert why in read.repairs[0].message


def test_a_block_whose_lines_are_not_indented() -> None:
    assert repaired("description: |", "Use it: now.", "Or later.").description == "Use it: now.\nOr later."


def test_a_description_that_begins_on_the_next_line() -> None:
    read = repaired("description:", "user: hi", "assistant: ho", "tools: *")

    assert read.description == "user: hi\nassistant: ho"


@pytest.mark.parametrize("space", ["\u00a0", "\u202f", "\u00a0 "])
def test_a_no_break_space_after_the_colon(space: str) -> None:
    read = repaired(f"description:{space}b", name=f"name:{space}a")

    assert (read.name, read.description) == ("a", "b")
    assert [line for line, _ in warnings_in(read)] == [2, 3]
    assert "no-break space" in read.repairs[0].message


def test_no_space_after_the_colon() -> None:
    read = repaired("description:b", "model:opus", name="name:a")

    assert (read.name, read.description, read.model) == ("a", "b", "opus")
    assert "no space follows the colon" in read.repairs[0].message


def test_tabs_for_indentation() -> None:
    read = repaired("description: b", "tools:", "\t- Read", "\t- Grep", "hooks:", "\tStop:", "\t\t- x")

    assert (read.tools, read.hooks) == (("Read", "Grep"), {"Stop": ["x"]})
    assert warnings_in(read) == [(5, "tools: indented with a tab"), (8, "hooks: indented with a tab")]


@pytest.mark.parametrize(
    ("written", "tools"),
    [
        ("*", "*"),
        ("*  # all of them", "*"),
        ("* Read", ("Read",)),
        ("* Read\n  * Grep", ("Read", "Grep")),
        ("\n  * Read\n  * Grep", ("Read", "Grep")),
        ("\n* Read\n* Grep", ("Read", "Grep")),
        ("\n  * Read\n  + Grep\n  \u2022 Glob\n  # Bash", ("Read", "Grep", "Glob")),
        ("[Read, Grep", ("Read", "Grep")),
        ("[mcp__[ab]*, Read", ("mcp__[ab]*", "Read")),
        ('"Read", "Grep"', ("Read", "Grep")),
        ("- Read\n- Grep # why", ("Read", "Grep")),
        ("@x, Agent(a, b)", ("@x", "Agent(a, b)")),
        ("[*]", "*"),
        ("`Read`, `Grep`", ("Read", "Grep")),
        ("\n  - Read # why\n  - @x", ("Read", "@x")),
    ],
)
def test_tools_that_are_not_valid_yaml(written: str, tools: Any) -> None:
    assert repaired("description: b", f"tools: {written}").tools == tools


def test_a_star_for_all_tools_is_explained() -> None:
    assert warnings_in(repaired("description: b", "tools: *")) == [(4, "tools: * must be quoted")]


def test_a_colour_in_hex_without_quotes() -> None:
    read = repaired("description: b", "color: #ff0000", "model: opus")

    assert (read.color, read.model) == ("#ff0000", "opus")
    assert "is a comment in YAML" in read.repairs[0].message
    assert repaired("description: b: c", "color: #ff0000").color == "#ff0000"


def test_unknown_keys_after_a_short_field_stay_keys() -> None:
    read = repaired("description: b", "tools: *", "author: me", "tags: [a, b]", "broken: {x")

    assert read.extra == {"author": "me", "tags": ["a", "b"], "broken": "{x"}


def test_duplicate_keys_in_a_repaired_file() -> None:
    read = repaired("description: b: c", "tools: [Read, Grep", "tools: [Grep", "description: d")

    assert (read.description, read.tools) == ("d", ("Grep",))


def test_lines_that_belong_to_no_field_are_ignored_with_a_warning() -> None:
    read = repaired("description: b: c", name="hello there\n# comment\nname: a")

    assert (read.name, warnings_in(read)[0]) == ("a", (2, "this line belongs to no field and is ignored"))


def test_a_frontmatter_without_a_closing_line() -> None:
    read = AgentDefinition.loads("---\nname: a\ndescription: b\n\ntools:\n  - Read\n\nYou are a.\n\n- x\n")

    assert (read.tools, read.system_prompt) == (("Read",), "You are a.\n\n- x\n")
    assert warnings_in(read) == [(7, "the frontmatter has no closing line '---'")]


def test_a_frontmatter_without_a_closing_line_and_a_rule_in_the_prompt() -> None:
    text = "---\nname: a\ndescription: b\nmodel: opus\n\nYou are: a.\n\nMore.\n\n---\n\nEnd.\n"

    read = AgentDefinition.loads(text)

    assert (read.model, read.system_prompt) == ("opus", "You are: a.\n\nMore.\n\n---\n\nEnd.\n")
    assert "no closing line" in read.repairs[0].message


def test_a_file_of_nothing_but_frontmatter_without_a_closing_line() -> None:
    assert AgentDefinition.loads("---\nname: a\ndescription: b").system_prompt == ""


def test_a_missing_field_in_a_repaired_file_is_an_error() -> None:
    with pytest.raises(InvalidDefinitionError, match="line 1: description: is missing"):
        AgentDefinition.loads("---\nname: a: b\n---\n")


def test_refused_content_is_not_repaired() -> None:
    with pytest.raises(InvalidDefinitionError, match="line 5: contains the YAML tag"):
        AgentDefinition.loads(
            "---\nname: a\ndescription: b: c\nmodel: opus\nx: !!python/name:os.system y\n---\n"
        )


@pytest.mark.parametrize(
    "field", ["tools: {{ tools }}", "disallowedTools: {{ a }}", "context:\n  a: {{ x }}"]
)
def test_a_marker_in_place_of_a_list_or_of_data_is_refused(field: str) -> None:
    with pytest.raises(InvalidDefinitionError, match="line 4: a key is not text"):
        AgentDefinition.loads(f"---\nname: a\ndescription: b\n{field}\n---\n")


def test_a_frontmatter_without_known_keys_is_refused() -> None:
    with pytest.raises(AgentFileError, match="line 2: its frontmatter is not valid YAML"):
        AgentDefinition.loads("---\nfoo: a: b\n---\n")


def test_max_turns_and_data_in_a_repaired_file() -> None:
    read = repaired("description: b: c", "maxTurns: 5", "context: use: this", "mcpServers: [a")

    assert (read.max_turns, read.context, read.mcp_servers) == (5, "use: this", "[a")


def test_a_data_field_with_invalid_content_is_kept_as_text_with_a_warning() -> None:
    read = repaired("description: b", "hooks:", "  Stop: x: y", "context: words: only")

    assert read.hooks == "Stop: x: y"
    assert [line for line, message in warnings_in(read) if message.endswith("; kept as text")] == [5]


def test_bullets_other_than_dashes_are_explained() -> None:
    read = repaired("description: b", "tools:", "* Read")

    assert warnings_in(read) == [(4, "tools: the items of a list must begin with '- '")]
