"""Ctrl-C, SIGTERM and a closed terminal in a chat."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_ENDING: Final = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class ChatEnding:
    """Receives the signals of a chat. Create it on the event loop, in the main thread.

    SIGINT interrupts the current work, or ends a chat that is not interactive. SIGTERM and SIGHUP (a closed
    terminal) end the chat; a second one ends the process.
    """

    def __init__(self, *, is_interactive: bool) -> None:
        self.number: int | None = None
        self._loop = asyncio.get_running_loop()
        self._interrupts: list[Callable[[], object]] = []
        self._before = {number: signal.signal(number, self._end) for number in _ENDING}
        of_interrupt = self._stop if is_interactive else self._end
        self._before[signal.SIGINT] = signal.signal(signal.SIGINT, of_interrupt)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._loop.call_soon_threadsafe(self.interrupt)

    def _end(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.number = number
        for one in {*_ENDING, number}:
            signal.signal(one, signal.SIG_DFL)
        self._loop.call_soon_threadsafe(self.interrupt)

    def interrupt(self) -> None:
        """Interrupt the current work, if any."""
        if self._interrupts:
            self._interrupts[-1]()

    @property
    def is_requested(self) -> bool:
        """Whether a signal has ended the chat."""
        return self.number is not None

    @contextmanager
    def interrupting(self, interrupt: Callable[[], object]) -> Iterator[None]:
        """Call ``interrupt`` on a signal in the block, or at its start if the chat is ending.

        The last entered block counts. Blocks of subagents end in any order.
        """
        self._interrupts.append(interrupt)
        if self.is_requested:
            interrupt()
        try:
            yield
        finally:
            self._interrupts.remove(interrupt)

    def restore(self) -> None:
        """Restore the previous handlers."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
