"""YAML features that could do harm and that no subagent file needs."""

from __future__ import annotations

import pytest

from kantan_agents import AgentDefinition
from kantan_agents.errors import AgentFileError, InvalidDefinitionError
from kantan_agents.subagent_files.fix import fixed_text
from kantan_agents.subagent_files.frontmatter import nodes
from kantan_agents.subagent_files.frontmatter.document import MAX_FRONTMATTER_CHARS


def agent(*lines: str, prompt: str = "P\n") -> AgentDefinition:
    return AgentDefinition.loads("\n".join(["---", "name: a", "description: b", *lines, "---", "", prompt]))


def refused(*lines: str) -> InvalidDefinitionError:
    with pytest.raises(InvalidDefinitionError) as raised:
        agent(*lines)
    return raised.value


def test_anchors_aliases_and_merge_keys_are_expanded() -> None:
    read = agent(
        "base: &base {a: 1, b: 2}", "more: {<<: *base, b: 3}", "both: {<<: [{a: 0}, *base]}", "it: *base"
    )

    assert read.extra["more"] == {"a": 1, "b": 3}
    assert read.extra["both"] == {"a": 0, "b": 2}
    assert "&" not in read.dump() and "*" not in read.dump()


def test_aliases_that_grow_without_end_are_refused() -> None:
    laughs = ["x0: &x0 [a, a, a, a, a, a, a, a, a, a]"]
    laughs += [f"x{i}: &x{i} [{', '.join([f'*x{i - 1}'] * 10)}]" for i in range(1, 12)]

    assert "aliases repeat more than" in str(refused(*laughs))
    assert "inside the value it repeats" in str(refused("x: &x [*x]"))
    assert "must refer to a mapping" in str(refused("x: {<<: [1]}"))


@pytest.mark.parametrize(
    "value", ["!!python/object/apply:os.system ['x']", "!!python/name:os.system", "!mine {a: 1}"]
)
@pytest.mark.parametrize("key", ["model", "hooks", "x"])
def test_a_tag_creates_no_object(key: str, value: str) -> None:
    assert "tag" in str(refused(f"{key}: {value}"))


@pytest.mark.parametrize("opening", ["[", "- ", "{", "? ", "{a: ["])
def test_deep_nesting_is_refused(opening: str) -> None:
    with pytest.raises((AgentFileError, InvalidDefinitionError)):
        AgentDefinition.loads("---\nname: a\ndescription: b\nx:\n  " + opening * 30_000 + "\n---\n")


def test_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "MAX_NODES", 100)

    assert "more than 100 values" in str(refused("x: [" + "a," * 100 + "]"))


def test_a_key_that_is_not_text_is_refused() -> None:
    assert "a key is not text" in str(refused("? [a]\n: b"))


def test_an_error_in_a_known_field_names_the_field() -> None:
    assert refused("hooks: {<<: 1}").problems == ("hooks: the merge key '<<' must refer to a mapping",)


def test_an_alias_without_an_anchor_is_read_as_text() -> None:
    read = agent("model: *quick", "hooks: x")

    assert (read.model, read.hooks) == ("*quick", "x")
    assert read.is_repaired


def test_a_second_document_is_read_as_part_of_the_first() -> None:
    read = AgentDefinition.loads("---\nname: a\n...\ndescription: b\n---\n")

    assert (read.name, read.description) == ("a", "b")
    assert "not valid YAML" in read.repairs[0].message


def test_a_line_of_dashes_followed_by_text_does_not_end_the_frontmatter() -> None:
    read = AgentDefinition.loads("---\nname: a\ndescription: b\n--- and more\nmodel: opus\n---\n")

    assert (read.description, read.model) == ("b\n--- and more", "opus")
    assert read.is_repaired


def test_a_frontmatter_that_is_too_long_is_refused_and_a_long_prompt_is_not() -> None:
    long = "x" * MAX_FRONTMATTER_CHARS

    for text in (f"---\nname: a\ndescription: {long}\n---\n", f"---\nname: a\ndescription: {long}"):
        with pytest.raises(AgentFileError, match="line 2: its frontmatter is longer than 256 kB"):
            AgentDefinition.loads(text)
    assert agent(prompt=long).system_prompt == long
    assert AgentDefinition.loads(f"---\nname: a\ndescription: b\n\nP\n\n{long}").system_prompt.endswith("x")


def test_a_repair_refuses_too_many_fields() -> None:
    assert "more than 1000 fields" in str(refused("model: [x", *["model: x"] * 1000))
    assert "longer than 10000 lines" in str(refused("model: [x", *["- x"] * 10_000))


def test_many_entries_and_lines_are_read_and_fixed() -> None:
    numbers = range(5000)
    read = agent(
        f"tools: {','.join(f'a{n}' for n in numbers)}", f"allowedTools: {','.join(f'a{n}' for n in numbers)}"
    )
    blank = "\n" * 9_000

    assert len(read.tools) == len(numbers)
    assert fixed_text(f"---\nname: a\ndescription: b: c{blank}x\n\nmodel: y\n---\n") is not None
    assert fixed_text(f"---\nname: a\ndescription: b: c{' ' * 20_000}x\n---\n") is not None
