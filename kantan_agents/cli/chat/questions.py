"""Asks the user the questions of ``AskUserQuestion``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

import anyio

from kantan_agents.cli.chat.editor import Editor
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.terminal.console import NOTICE
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.toolkit.ask_user_question import Question

_ONE: Final = "Number or other words: "
_SEVERAL: Final = "Numbers or other words: "
_NUMBERS = re.compile(r"\d{1,9}([\s,]+\d{1,9})*,?")


class Questions:
    """Asks one question at a time."""

    def __init__(self) -> None:
        self._terminal: tuple[Editor, Screen, Callable[[], None]] | None = None

    def ask_at(self, editor: Editor, screen: Screen, stop: Callable[[], None]) -> None:
        """Set the editor and screen; ``stop`` cancels the current answer."""
        self._terminal = editor, screen, stop

    async def __call__(self, questions: Sequence[Question]) -> list[list[str]] | None:
        """Return the answers, "" for none."""
        if self._terminal is None:
            return None
        editor, screen, stop = self._terminal
        async with screen.lock:
            try:
                return [await _answer(question, editor, screen) for question in questions]
            except (KeyboardInterrupt, EOFError):
                stop()
        await anyio.sleep_forever()  # until the run is canceled
        return None


async def _answer(question: Question, editor: Editor, screen: Screen) -> list[str]:
    _show(question, screen)
    while True:
        typed = one_line(await editor.ask(_SEVERAL if question.multiple else _ONE))
        if not _NUMBERS.fullmatch(typed):
            return [typed] if typed else []
        numbers = dict.fromkeys(int(number) for number in re.findall(r"\d+", typed))
        labels = [option.label for option in question.options]
        is_one = question.multiple or len(numbers) == 1
        if is_one and all(1 <= number <= len(labels) for number in numbers):
            return [labels[number - 1] for number in numbers]
        most = "numbers" if question.multiple else "one number"
        screen.line(f"Type {most} from 1 to {len(labels)}, other words, or nothing to give no answer.")


def _show(question: Question, screen: Screen) -> None:
    header = one_line(question.header)
    text = question.text.strip()
    screen.block(f"{header}: {text}" if header else text, NOTICE)
    for number, option in enumerate(question.options, 1):
        description = one_line(option.description)
        label = one_line(option.label)
        screen.block(f"  {number}. {label}: {description}" if description else f"  {number}. {label}")
