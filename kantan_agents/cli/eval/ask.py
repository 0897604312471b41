"""``Asker``: shows one result after the other and reads what a person says about each."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.console import Console

from kantan_agents.cli.eval.show_item import show_answer, show_item
from kantan_agents.cli.terminal.console import LABEL, NOTICE, plain
from kantan_agents.cli.terminal.inputs import STDIN
from kantan_agents.cli.terminal.plain import whole
from kantan_agents.errors import FileArgumentError, InvalidOptionError

if TYPE_CHECKING:
    from kantan_agents.lab.evaluation import LabelItem, LabelQueue


class Asker:
    """Asks about the results of a queue.

    Args:
        queue: The queue.
        console: Where the questions are printed.
    """

    def __init__(self, queue: LabelQueue, console: Console) -> None:
        self._queue = queue
        self._console = console
        self._comment: str | None = None

    def ask_all(self) -> None:
        """Ask until all results are answered, the person quits, or the input ends.

        Raises:
            FileArgumentError: E79, standard input is not text.
            TraceDatabaseError: E60, the database cannot be read or changed.
        """
        while (item := self._queue.current) is not None:
            self._comment = None
            show_item(self._console, item, self._queue.total)
            if not self._ask(item):
                return

    def _ask(self, item: LabelItem) -> bool:
        """Read lines until one of them ends the question; return whether to go on with another."""
        while True:
            line = self._read(f"{self._queue.scale.text}; c comment, s skip, u undo, q quit > ")
            if line is None or line.lower() in ("q", "quit"):
                return False
            command, _, rest = line.partition(" ")
            if command.lower() in ("c", "comment"):
                self._comment = rest.strip() or self._read("comment > ")
            elif line.lower() in ("s", "skip"):
                self._queue.skip(item)
                return True
            elif line.lower() in ("u", "undo"):
                if self._queue.undo() is not None:
                    return True
                self._say("There is nothing to undo.")
            elif line and self._label(item, line):
                return True

    def _label(self, item: LabelItem, line: str) -> bool:
        value = _value(line)
        if value is None:
            self._say(f"The answer must be {self._queue.scale.text}.")
            return False
        try:
            answered = self._queue.label(item, value, comment=self._comment)
        except InvalidOptionError as error:
            if error.option == "item":
                self._say("Its run was deleted meanwhile.")
                self._queue.skip(item)
                return True
            self._say(f"The answer {error.reason}.")
            return False
        show_answer(self._console, answered, self._queue.metric)
        return True

    def _say(self, text: str) -> None:
        self._console.print(plain(text, NOTICE))

    def _read(self, prompt: str) -> str | None:
        """Return a line without its end; None at the end of the input."""
        self._console.print(plain(prompt, LABEL), end="", soft_wrap=True)
        self._console.file.flush()
        try:
            line = "" if sys.stdin is None else sys.stdin.readline()
        except UnicodeDecodeError as error:
            raise FileArgumentError(path=STDIN, reason="it is not UTF-8 text") from error
        if not line or not sys.stdin.isatty():
            self._console.print()  # nobody has typed the end of the line
        return whole(line).strip() if line else None


def _value(line: str) -> float | None:
    """Return what was answered; None if it is neither yes, no nor a number."""
    answer = line.lower()
    if answer in ("y", "yes", "n", "no"):
        return answer.startswith("y")
    try:
        return float(answer)
    except ValueError:
        return None
