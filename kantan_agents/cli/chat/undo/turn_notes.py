"""Stores files before tools change them."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from kantan_agents.cli.chat.undo.snapshots import NotedChange, Snapshots, Turn
from kantan_agents.cli.terminal.show_quantities import size_text


class TurnNotes:
    """Notes the changes of one turn. A failed snapshot stops no tool."""

    def __init__(self, snapshots: Snapshots, turn: Turn) -> None:
        self.lost: list[str] = []
        self.has_files = False
        self._snapshots = snapshots
        self._turn = turn
        self._commands: list[str] = []

    def folder_made(self, root: str, parts: tuple[str, ...]) -> None:
        """Note a folder, to remove it once empty."""
        with self._noting(path := "/".join(parts)):
            self._snapshots.add(self._turn, NotedChange("folder", root, path))

    def file_changes(
        self, root: str, parts: tuple[str, ...], folder: int, before: os.stat_result | None, data: bytes
    ) -> None:
        """Store the current file."""
        most = self._snapshots.limits.file_bytes
        with self._noting(path := "/".join(parts)):
            mode = None if before is None else stat.S_IMODE(before.st_mode)
            content = None if before is None else _content(folder, parts[-1], most)
            is_kept = self._snapshots.keep(self._turn, NotedChange("file", root, path, mode, content), data)
            self.has_files = True
            if not is_kept:
                total = size_text(self._snapshots.limits.total_bytes)
                self.lost.append(f"{path}: at most {size_text(most)} a file are stored, and {total} in all")

    def command_starts(self, command: str) -> None:
        """Note a command."""
        self._commands.append(command)

    def end(self) -> None:
        """Store the commands. Blocks on the disk."""
        for command in self._commands:
            with self._noting("commands"):
                self._snapshots.add(self._turn, NotedChange("command", command))

    @contextmanager
    def _noting(self, what: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            self.lost.append(f"{what}: {error}")


def _content(folder: int, name: str, most: int) -> bytes | None:
    # The tool that changes the file has already imported it.
    from kantan_agents.toolkit.files.opening import open_found

    with open(open_found(folder, name), "rb") as file:  # noqa: PTH123 - a descriptor
        content = file.read(most + 1)
    return content if len(content) <= most else None
