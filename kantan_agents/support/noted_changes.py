"""Notifies of changes by tools."""

from __future__ import annotations

import os
from contextvars import ContextVar
from typing import Protocol


class ChangeNotes(Protocol):
    """Its methods raise nothing; those about files run in threads."""

    def folder_made(self, root: str, parts: tuple[str, ...]) -> None:
        """``parts`` are the names from the root of the tool to it."""
        ...

    def file_changes(
        self, root: str, parts: tuple[str, ...], folder: int, before: os.stat_result | None, data: bytes
    ) -> None:
        """A file is about to change; ``before`` is None for a new one."""
        ...

    def command_starts(self, command: str) -> None:
        """A command is about to run."""
        ...


changes_noted: ContextVar[ChangeNotes | None] = ContextVar("kantan_agents_changes_noted", default=None)
"""Applies in threads and nested runs."""
