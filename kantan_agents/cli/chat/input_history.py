"""The input history across chats."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Iterable
from itertools import groupby
from typing import Final, TypeVar

import anyio
import anyio.to_thread
from prompt_toolkit.history import History

from kantan_agents.cli.chat.history_file import MOST, Entry, HistoryFile

_PATIENCE: Final = 2.0
T = TypeVar("T")


class InputHistory(History):
    """The history of a prompt, read in a thread: first while the prompt waits, later before each prompt.

    Input that the file does not accept, such as a secret, stays in memory.
    """

    def __init__(self, file: HistoryFile | None, warn: Callable[[str], None]) -> None:
        super().__init__()
        self.file = file
        self._warn = warn
        self._problem = ""
        self._has_prompted = False
        self._own: list[Entry] = []

    async def refresh(self) -> None:
        """Read the entries before a later prompt."""
        if self._has_prompted:
            await self._read()
        self._has_prompted = True

    async def load(self) -> AsyncGenerator[str, None]:
        """Yield the entries, latest first."""
        if not self._loaded:
            await self._read()
        for text in self._loaded_strings:
            yield text

    async def _read(self) -> None:
        entries = sorted([*(await self._on_disk(HistoryFile.read) or ()), *self._own], key=_moment)
        self._loaded_strings = [text for text, _ in groupby(one.text for one in reversed(entries))]
        self._loaded = True

    async def keep(self, text: str) -> None:
        """Store an input, and warn on failure."""
        if not text.strip():
            return
        entry = Entry(time.time(), text)
        if not await self._on_disk(lambda file: file.add(entry)):
            self._own = [*self._own[-MOST:], entry]
        if self._problem:
            self._warn(self._problem)
            self._problem = ""

    async def clear(self) -> None:
        """Remove all entries."""
        if self.file is not None:
            await anyio.to_thread.run_sync(self.file.clear)
        self._own = []

    async def _on_disk(self, work: Callable[[HistoryFile], T]) -> T | None:
        """Call ``work`` with the file, if any. After a failure, it is no longer used."""
        if self.file is None:
            return None
        try:
            with anyio.fail_after(_PATIENCE):  # another chat may lock it, and a disk may hang
                return await anyio.to_thread.run_sync(work, self.file, abandon_on_cancel=True)
        except OSError as error:
            reason = error.strerror or str(error) or "it takes too long"
            self._problem = f"What you type is not kept for later chats ({reason}): {self.file.path}"
            self.file = None
            return None

    def load_history_strings(self) -> Iterable[str]:
        """Return nothing: ``load`` does not block."""
        return ()

    def store_string(self, string: str) -> None:
        """Do nothing: ``keep`` does not block."""


def _moment(entry: Entry) -> float:
    return entry.at
