"""``changes_noted``: who is notified before a tool changes a file, such as a chat that can undo it."""

from __future__ import annotations

import os
from contextvars import ContextVar
from typing import Protocol


class ChangeNotes(Protocol):
    """Notes what tools do. Its methods raise nothing; those about files are called in threads."""

    def folder_made(self, root: str, parts: tuple[str, ...]) -> None:
        """Note that a folder was created, by the names on the way from the root of the tool."""
        ...

    def file_changes(
        self, root: str, parts: tuple[str, ...], folder: int, before: os.stat_result | None, data: bytes
    ) -> None:
        """Note that a file is about to get new content.

        Args:
            root: The root folder of the tool, without symbolic links.
            parts: The names on the way from there to the file.
            folder: Descriptor of the folder that the file is in.
            before: The state of the file; None if it does not exist.
            data: Its new content.
        """
        ...

    def command_starts(self, command: str) -> None:
        """Note that a command is about to run."""
        ...


changes_noted: ContextVar[ChangeNotes | None] = ContextVar("kantan_agents_changes_noted", default=None)
"""Where tools note what they do, also in threads and in runs inside of a run; None for nowhere."""
