"""Completes commands and files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.support.invisible import by_code

_MENTION: Final = re.compile(r'(?:^|(?<=\s))@("?)([^"\n]*)$')
_COMMAND: Final = re.compile(r"^/(\S*)$")
_ARGUMENT: Final = re.compile(r"^(/\S+)\s+(\S*)$")
_MAX_FILES: Final = 50
_MAX_ENTRIES: Final = 5000
_MAX_HELP: Final = 60

Choices = Callable[[], Mapping[str, str]]
"""Returns names, each with a short explanation."""


class ChatCompleter(Completer):
    """Completes input. It blocks: run it in a thread."""

    def __init__(self, commands: Choices, arguments: Mapping[str, Choices], folder: Path) -> None:
        self._commands = commands
        self._arguments = arguments
        self._folder = folder

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield completions for the text before the cursor."""
        del complete_event
        before = document.text_before_cursor
        if mention := _MENTION.search(before):
            yield from self._files(mention[2], is_quoted=bool(mention[1]))
        elif command := _COMMAND.match(before):
            yield from _fitting(self._commands(), command[1])
        elif (argument := _ARGUMENT.match(before)) and argument[1][1:] in self._arguments:
            yield from _fitting(self._arguments[argument[1][1:]](), argument[2])

    def _files(self, typed: str, *, is_quoted: bool) -> Iterator[Completion]:
        if typed.startswith("/") or (not is_quoted and " " in typed):
            return
        folder, _, beginning = typed.rpartition("/")
        found = sorted(_names_in(self._folder, folder, beginning))[:_MAX_FILES]
        for name, is_folder in found:
            path = f"{folder}/{name}" if folder else name
            needs_quotes = is_quoted or " " in path
            text = f"{path}/" if is_folder else f'{path}"' if needs_quotes else path
            if needs_quotes and not is_quoted:
                text = f'"{text}'
            yield Completion(text, -len(typed), display=f"{name}/" if is_folder else name)


def _fitting(choices: Mapping[str, str], typed: str) -> Iterator[Completion]:
    for name, explanation in choices.items():
        if name.startswith(typed) and _is_visible(name):
            yield Completion(name, -len(typed), display_meta=one_line(explanation)[:_MAX_HELP])


def _is_visible(name: str) -> bool:
    return name.isprintable() and by_code(name, strict=True) == name


def _names_in(root: Path, folder: str, beginning: str) -> Iterator[tuple[str, bool]]:
    try:
        place = os.path.realpath(root / folder)
        if not Path(place).is_relative_to(root):
            return
        with os.scandir(place) as entries:
            for number, entry in enumerate(entries):
                if number == _MAX_ENTRIES:
                    return
                name = entry.name
                is_hidden = name.startswith(".") and not beginning.startswith(".")
                # Names that cannot be typed must not reach the terminal either.
                if is_hidden or not name.startswith(beginning) or not _is_visible(name) or '"' in name:
                    continue
                if not entry.is_symlink():
                    yield name, entry.is_dir(follow_symlinks=False)
    except (OSError, ValueError):
        return
