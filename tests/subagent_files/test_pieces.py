"""Where the fields of an invalid frontmatter begin and end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.subagent_files.test_repair import repaired, warnings_in


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("isolation: worktree", "isolation", "worktree"),
        ("background: true", "background", True),
        ("tags: [a, b]", "tags", ["a", "b"]),
        ("author: Jane Doe", "author", "Jane Doe"),
        ("priority: high", "priority", "high"),
        ("temperature: 0.2", "temperature", 0.2),
        ("metadata:\n  team: core", "metadata", {"team": "core"}),
        ("argument-hint: [a", "argument-hint", "[a"),
        ("when_to_use: always: so", "when_to_use", "always: so"),
        ("triggers: [x]", "triggers", ["x"]),
    ],
)
def test_well_known_keys_end_an_invalid_description(line: str, key: str, value: Any) -> None:
    read = repaired("description: b: c", "user: hi", line)

    assert (read.description, read.extra) == ("b: c\nuser: hi", {key: value})


@pytest.mark.parametrize(
    "line",
    [
        "background: the user has a plan",
        "priority: do this first",
        "capabilities: it plans",
        "Author: somebody",
        "tags:none",
        "examples: two",
        "  author: me",
    ],
)
def test_labels_in_an_invalid_description_are_part_of_it(line: str) -> None:
    assert repaired("description: b: c", line, "more").description.split("\n")[1].strip() == line.strip()


def test_an_indented_block_ends_at_the_first_unindented_line() -> None:
    read = repaired("description: |", "  one: x", "", "    two", "  three", "foo: a: b", "user: c")

    assert read.description == "one: x\n\n  two\nthree"
    assert read.extra == {"foo": "a: b", "user": "c"}


def test_a_dialogue_below_an_indented_block_belongs_to_it() -> None:
    read = repaired("description: >", "  Use it.", "user: hi", 'assistant: "a" b')

    assert read.description == 'Use it.\nuser: hi\nassistant: "a" b'


def test_a_context_that_is_a_line_of_a_dialogue_is_part_of_it() -> None:
    read = repaired("description: Ask: this", "context: the user is here", "", "user: hi", "tools: Read")

    assert read.description == "Ask: this\ncontext: the user is here\n\nuser: hi"
    assert read.context is None
    assert repaired("description: Ask: this", "context: the office", "tools: Read").context == "the office"


def test_a_name_line_inside_an_invalid_description_is_not_a_key() -> None:
    read = repaired("description: Ask: this", "name: John asks", "user: hi", "tools: Read")

    assert (read.name, read.description) == ("a", "Ask: this\nname: John asks\nuser: hi")
    assert (4, "name: appears twice; this one is read as part of description") in warnings_in(read)
