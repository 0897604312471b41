"""The help of every command: it fits 80 columns, and shows flags and arguments without types."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from kantan_agents.cli.app import app


def commands(group: Any, name: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command and group with its words."""
    yield name, group
    for command in vars(group).get("commands", {}).values():
        yield from commands(command, (*name, command.name))


COMMANDS = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_help_of_every_command_reads_well_at_80_columns(
    kantan_agents: Any, words: tuple[str, ...]
) -> None:
    outcome = kantan_agents(*words, "--help")
    assert (outcome.code, outcome.stderr) == (0, "")
    assert max(map(len, outcome.stdout.splitlines())) <= 80
    assert not re.search(r"<(bool|str|path|list)\b", outcome.stdout)
    assert "BOOLEAN" not in outcome.stdout
    for paragraph in inspect.cleandoc(COMMANDS[words].help).split("\n\n"):
        for line in paragraph.splitlines()[:-1]:
            assert len(line) <= 78, f"is wrapped in the middle of its paragraph: {line}"


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_option_of_every_command_is_described(kantan_agents: Any, words: tuple[str, ...]) -> None:
    shown = kantan_agents(*words, "--help").stdout
    for parameter in COMMANDS[words].params:
        assert parameter.help
        for option in parameter.opts:
            assert not option.startswith("--") or re.search(rf"{option}\s", shown)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_without_a_terminal_or_with_no_color_there_are_no_colours(
    kantan_agents: Any, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    assert "\x1b" not in kantan_agents(*words, "--help").stdout
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[(?:\d+;)*(?:3|4|9|10)[0-8]", kantan_agents(*words, "--help").stdout)


@pytest.mark.parametrize("name", COMMANDS[()].homes)
def test_the_list_of_commands_has_the_first_paragraph_of_each(name: str) -> None:
    described = " ".join(inspect.cleandoc(COMMANDS[name,].help).split("\n\n")[0].split())
    assert COMMANDS[()].homes[name].summary == described
