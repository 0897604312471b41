from __future__ import annotations

from typing import Any

import pytest

from kantan_agents.errors import CommandSyntaxError, InvalidOptionError, UnknownCommandError
from kantan_agents.tools.commands import (
    Command,
    CommandRegistry,
    checked_prefix,
    explanation,
    kind_of,
    overview,
    split_line,
)

READ = Command("read_file", "Read a file.\nAll of it.", aliases=("mcp__files__read_file",))
WRITE = Command("write_file", "Write a file.")
SHELL = Command("shell", "Run a command.")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("/read", "command"),
        ("/", "command"),
        ("//read", "escaped"),
        ("///", "escaped"),
        (" /read", "text"),
        ("", "text"),
    ],
)
def test_kind_of_a_text(text: str, kind: str) -> None:
    assert kind_of(text) == kind


@pytest.mark.parametrize(
    ("text", "name", "rest"),
    [
        ("/read a b", "read", "a b"),
        ("/read\n", "read", ""),
        ("/read\ta\n", "read", "a"),
        ("/読む　メモ", "読む", "メモ"),
        ("/etc/hosts is what?", "etc/hosts", "is what?"),
    ],
)
def test_a_line_has_a_name_and_a_rest(text: str, name: str, rest: str) -> None:
    line = split_line(text)
    assert (line.name, line.rest) == (name, rest)


@pytest.mark.parametrize("text", ["/", "/ ", "/\n", "/ read", "/read a\0b", "/read \ud800", "/\0"])
def test_invalid_command_lines_raise_e55(text: str) -> None:
    with pytest.raises(CommandSyntaxError) as caught:
        split_line(text)
    str(caught.value).encode()


def test_commands_are_found_by_name_alias_and_other_spellings() -> None:
    registry = CommandRegistry([READ, WRITE], {"r": "read_file", "cat": "r"})
    for name in ("read_file", "read-file", "mcp__files__read_file", "r", "cat"):
        assert registry.find(name) is READ
    assert registry.find("Read_File") is None
    assert registry.names_of(READ) == ("r", "cat", "mcp__files__read_file")
    assert (len(registry), list(registry)) == (2, [READ, WRITE])


def test_a_name_takes_precedence_over_the_aliases_of_other_commands() -> None:
    other = Command("read", aliases=("write_file", "both"))
    third = Command("third", aliases=("both",))
    registry = CommandRegistry([other, WRITE, third])
    assert registry.find("write_file") is WRITE
    assert registry.find("both") is None


def test_only_the_nearest_visible_names_are_suggested() -> None:
    registry = CommandRegistry([READ, WRITE, SHELL], {"sh": "shell"})
    with pytest.raises(UnknownCommandError) as caught:
        registry.require("read_fiel")
    assert caught.value.nearest[0] == "read_file"
    assert "Did you mean /read_file" in str(caught.value)
    assert "//" in str(caught.value)
    with pytest.raises(UnknownCommandError) as caught:
        registry.require("shel", lambda command: command is not SHELL)
    assert "shell" not in caught.value.nearest
    assert "shell" not in str(caught.value)


@pytest.mark.parametrize("name", ["x" * 100_000, "\x1b[2J", "{name}", "読む", "../../etc"])
def test_unusual_names_are_shown_safely(name: str) -> None:
    with pytest.raises(UnknownCommandError) as caught:
        CommandRegistry([READ]).require(name)
    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("aliases", "reason"),
    [
        ({"a": "b", "b": "a"}, "refers to itself"),
        ({"a": "a"}, "refers to itself"),
        ({"r": "nothing"}, "not a command"),
        ({"shell": "read_file"}, "the name of a command"),
        ({"help": "read_file"}, "always lists"),
        ({"a b": "shell"}, "not a valid name"),
        ({"": "shell"}, "not a valid name"),
        ({"a": 5}, "not a valid name"),
        ("r", "must be a dict"),
    ],
)
def test_invalid_aliases_raise_errors(aliases: Any, reason: str) -> None:
    with pytest.raises(InvalidOptionError, match=reason):
        CommandRegistry([READ, SHELL], aliases)


def test_two_commands_with_one_name_raise_an_error() -> None:
    with pytest.raises(InvalidOptionError, match="two commands 'shell'"):
        CommandRegistry([SHELL, SHELL])


@pytest.mark.parametrize("prefix", ["", "a", "1", " ", "/ ", '"', None, 5, "\0"])
def test_invalid_prefixes_raise_errors(prefix: Any) -> None:
    with pytest.raises(InvalidOptionError):
        checked_prefix(prefix)
    assert checked_prefix("!") == "!"


def test_help_has_one_line_per_command_without_control_characters() -> None:
    evil = Command(
        "evil", "\x1b[2Jgone\n/shell: not listed", {"properties": {"x\x1b[1m": {"type": "string"}}}
    )
    assert overview([WRITE, evil, READ]) == (
        "/help [COMMAND]: List the commands, or explain one.\n"
        "/evil [X[1M]: [2Jgone\n"
        "/read_file: Read a file.\n"
        "/write_file: Write a file."
    )
    assert "\x1b" not in explanation(evil)


def test_one_command_is_explained() -> None:
    unit = {"enum": ["c", "f"], "default": "c"}
    city = {"type": "string", "description": "Where.\nA name."}
    days = {"type": "array", "items": {"type": "integer"}}
    schema = {"properties": {"city": city, "unit": unit, "days": days}, "required": ["city", "unit", "days"]}
    command = Command("weather", "Tell the weather.\n\nNow.", schema)
    assert explanation(command, ["w"]) == (
        "/weather CITY [--unit c|f] DAYS...\n"
        "\n"
        "Tell the weather.\n\nNow.\n"
        "\n"
        "  city (text, required): Where. A name.\n"
        '  unit (c | f, default "c")\n'
        "  days (list, required)\n"
        "\n"
        "Also: /w"
    )
