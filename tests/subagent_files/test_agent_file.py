"""Reads the bytes of a file; splits it into frontmatter and prompt (spec subagents, "解析 Agent 文件")."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kantan_agents import AgentDefinition
from kantan_agents.errors import AgentFileError, InvalidDefinitionError
from kantan_agents.subagent_files.frontmatter.document import MAX_BYTES

TEXT = "---\nname: a\ndescription: b\n---\n\nP\n"


def unreadable(content: str | bytes) -> AgentFileError:
    with pytest.raises(AgentFileError) as raised:
        AgentDefinition.loads(content)
    return raised.value


@pytest.mark.parametrize("text", ["", "# A heading\n", "name: a\ndescription: b\n", "--\nname: a\n--\n"])
def test_a_file_without_frontmatter_says_so(text: str) -> None:
    assert "has no frontmatter" in unreadable(text).reason


@pytest.mark.parametrize("front", ["---\n---\n", "---\n", "---", "---\n# only a comment\n---\n"])
def test_an_empty_frontmatter_lacks_name_and_description(front: str) -> None:
    with pytest.raises(InvalidDefinitionError, match="name: is missing; description: is missing"):
        AgentDefinition.loads(front)


def test_bytes_that_are_not_utf8_are_reported_with_line_and_position() -> None:
    error = unreadable(b"---\nname: a\ndescription: caf\xe9\n---\n")

    assert error.line == 3
    assert "byte 28" in error.reason


def test_a_text_with_a_lone_surrogate_is_reported_with_its_line() -> None:
    assert unreadable("---\nname: \ud800\n---\n").line == 2


def test_a_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"---\nname: a\n---\n" + b"x" * MAX_BYTES)

    with pytest.raises(AgentFileError, match="larger than 4 MiB"):
        AgentDefinition.load(path)


def test_a_file_is_loaded_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text(TEXT)

    assert AgentDefinition.load(path).path == path
    assert AgentDefinition.load(str(path)) == AgentDefinition.loads(TEXT)


def test_a_missing_file_is_an_agent_file_error(tmp_path: Path) -> None:
    with pytest.raises(AgentFileError, match="No such file"):
        AgentDefinition.load(tmp_path / "a.md")
    with pytest.raises(AgentFileError):
        AgentDefinition.load("a\0.md")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")
def test_a_file_that_is_not_regular_is_refused_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.md")

    for path in (tmp_path / "fifo.md", tmp_path, Path(os.devnull)):
        with pytest.raises(AgentFileError):
            AgentDefinition.load(path)


@pytest.mark.parametrize(
    ("after", "prompt"),
    [
        ("", ""),
        ("P", "P"),
        ("\nP\n", "P\n"),
        ("\n\nP", "\nP"),
        ("\r\nP\r\n", "P\r\n"),
        ("\n", ""),
        ("\n---\nname: c\n---\n", "---\nname: c\n---\n"),
        ("\n  # P  \n\t\n\n", "  # P  \n\t\n\n"),
        ("\n\x00\u2028\x85", "\x00\u2028\x85"),
    ],
)
def test_the_prompt_is_the_rest_of_the_file_byte_for_byte(after: str, prompt: str) -> None:
    """Scenario: 提取提示词."""
    read = AgentDefinition.loads(f"---\nname: a\ndescription: b\n---\n{after}")

    assert read.system_prompt == prompt
    assert AgentDefinition.loads(read.dump()).system_prompt == prompt


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff", "\n \n", "\ufeff\n"])
@pytest.mark.parametrize("dashes", ["---", "---  ", "--------\t"])
def test_a_bom_line_ends_and_long_lines_of_dashes_do_not_matter(
    newline: str, start: str, dashes: str
) -> None:
    text = start + newline.join([dashes, "name: a", "description: b é \U0001f600", dashes, "", "P", ""])

    read = AgentDefinition.loads(text.encode())

    assert (read.name, read.description, read.system_prompt) == ("a", "b é \U0001f600", f"P{newline}")
    assert read.notes == ()
