"""Completion of what is typed in a chat."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from kantan_agents.cli.chat.completer import ChatCompleter


@pytest.fixture
def completer(tmp_path: Path) -> ChatCompleter:
    root = Path(os.path.realpath(tmp_path)) / "in"
    (root / "sub").mkdir(parents=True)
    for name in (
        "notes.txt",
        "my notes.txt",
        ".hidden",
        "sub/more.txt",
        "evil\x1b[31m",
        "evil\u3164",
        'quo"te',
    ):
        (root / name).write_text("")
    (root / "up").symlink_to("..")
    (root.parent / "secret").write_text("")
    commands = {"help": "List.", "model": "Show.", "evil\x1b[31m": "x\x1b[31m"}
    return ChatCompleter(lambda: commands, {"help": lambda: commands}, root)


def completed(completer: ChatCompleter, typed: str) -> list[str]:
    """The whole texts that the completions of a text give."""
    found = completer.get_completions(Document(typed), CompleteEvent())
    return [typed[: len(typed) + one.start_position] + one.text for one in found]


def test_commands_and_their_arguments(completer: ChatCompleter) -> None:
    assert completed(completer, "/") == ["/help", "/model"]
    assert completed(completer, "/mo") == ["/model"]
    assert completed(completer, "/help mo") == ["/help model"]
    assert completed(completer, "/model mo") == []
    assert completed(completer, " /mo") == []


def test_files_of_the_folder(completer: ChatCompleter) -> None:
    assert completed(completer, "see @") == ['see @"my notes.txt"', "see @notes.txt", "see @sub/"]
    assert completed(completer, "@sub/") == ["@sub/more.txt"]
    assert completed(completer, "@no") == ["@notes.txt"]
    assert completed(completer, '@"my n') == ['@"my notes.txt"']
    assert completed(completer, "@.h") == ["@.hidden"]


@pytest.mark.parametrize(
    "typed", ["aiko@no", "@up/", "@../", "@/", "@/etc/", "@sub/../../", "@no such", "@\0/"]
)
def test_nothing_outside_is_listed(completer: ChatCompleter, typed: str) -> None:
    assert completed(completer, typed) == []
