"""Reads input with completion."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import Completer, ThreadedCompleter
from prompt_toolkit.filters import is_searching
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent

from kantan_agents.cli.chat.ending import ChatEnding
from kantan_agents.cli.chat.input_history import InputHistory

try:
    import termios
except ImportError:  # Windows
    termios = None  # type: ignore[assignment]

PROMPT = "> "


class Editor:
    """A chat's input line. The chat's end also ends a question."""

    def __init__(self, ending: ChatEnding, history: InputHistory) -> None:
        self._ending = ending
        self._history = history
        self._lines: PromptSession[str] = PromptSession(
            history=history,
            key_bindings=_bindings(),
            multiline=True,
            prompt_continuation="  ",
            search_ignore_case=True,
            reserve_space_for_menu=4,
        )
        self._questions: PromptSession[str] = PromptSession()

    def complete_with(self, completer: Completer) -> None:
        """Set the completer. It runs in a thread."""
        self._lines.completer = ThreadedCompleter(completer)

    async def read(self, prompt: str = PROMPT) -> str:
        """Return the input after a prompt.

        Raises:
            KeyboardInterrupt: Ctrl-C on an empty line.
            EOFError: Ctrl-D, the terminal is closed, or the chat is ending.
        """
        await self._history.refresh()
        typed = await self._ask(self._lines, prompt)
        await self._history.keep(typed)
        return typed

    async def ask(self, question: str) -> str:
        """Ask a short question. Earlier keystrokes do not count; raises like ``read``."""
        discard_input()
        clear_typeahead(self._questions.app.input)
        return await self._ask(self._questions, question)

    async def _ask(self, session: PromptSession[str], text: str) -> str:
        def end() -> None:
            if self._ending.is_requested:
                _exit(session.app, EOFError)
            else:
                _exit(session.app, KeyboardInterrupt)

        with self._ending.interrupting(end):
            if self._ending.is_requested:
                raise EOFError
            # As fragments: a name in it must not be read as markup.
            return await session.prompt_async(
                FormattedText([("", text)]), handle_sigint=False, set_exception_handler=False
            )


def discard_input() -> None:
    """Discard typed but unread input."""
    if termios is not None:
        with suppress(termios.error, OSError, ValueError):
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


class Silence:
    """Turns off the echo, so that typing does not mix with an answer."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None

    def __enter__(self) -> None:
        if termios is None:
            return
        with suppress(termios.error, OSError, ValueError):
            self._before = termios.tcgetattr(sys.stdin.fileno())
            changed = termios.tcgetattr(sys.stdin.fileno())
            changed[3] &= ~termios.ECHO
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, changed)

    def __exit__(self, *_: object) -> None:
        if termios is not None and self._before is not None:
            with suppress(termios.error, OSError, ValueError):
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._before)


def _exit(app: Any, error: type[BaseException]) -> None:
    with suppress(Exception):  # it does not run yet, or has just returned
        app.exit(exception=error)


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter", filter=~is_searching)
    def _accept(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @bindings.add("escape", "enter")
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @bindings.add("c-c", filter=~is_searching)
    def _clear(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            _exit(event.app, KeyboardInterrupt)

    return bindings
