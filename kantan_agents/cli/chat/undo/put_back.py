"""Restores files atomically, through no link."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress

import attrs

from kantan_agents.cli.chat.undo.snapshots import NotedChange
from kantan_agents.errors import FileChangedError, FileNotUsableError, KantanAgentsError
from kantan_agents.toolkit.files.editing.folders import locked_folder
from kantan_agents.toolkit.files.editing.replace import replace_file
from kantan_agents.toolkit.files.known_files import state_of
from kantan_agents.toolkit.files.names import shown_path
from kantan_agents.toolkit.files.opening import open_file
from kantan_agents.toolkit.files.root import Root
from kantan_agents.toolkit.protected import why_protected

_MOST = 64 << 20  # a longer file has changed since: no tool wrote it


@attrs.frozen(eq=False)
class PlannedFile:
    """A changed file; ``has_changed`` ignores changes by the tools."""

    file: NotedChange
    path: str
    now: os.stat_result | None = None
    content: bytes = attrs.field(default=b"", repr=False)
    has_changed: bool = False
    protected: str | None = None
    problem: str | None = None

    @property
    def is_as_written(self) -> bool:
        """Whether restoring it loses nothing else."""
        return self.problem is None and not self.has_changed


def plan(changes: Iterable[NotedChange], folder: str) -> list[PlannedFile]:
    """Return a plan for each changed file, protected files first: users must see them."""
    found = (_planned(change, folder) for change in changes if change.kind == "file")
    return sorted(filter(None, found), key=lambda one: one.protected is None)


def put_back(chosen: Iterable[PlannedFile], changes: Sequence[NotedChange]) -> list[tuple[PlannedFile, str]]:
    """Restore files, and remove new empty folders; return failures with reasons."""
    failed = [(one, problem) for one in chosen if (problem := _put_back(one)) is not None]
    folders = (change for change in changes if change.kind == "folder")
    for folder in sorted(folders, key=lambda folder: len(folder.parts), reverse=True):
        with suppress(KantanAgentsError, OSError), locked_folder(_root(folder), folder.parts) as above:
            os.rmdir(folder.parts[-1], dir_fd=above)
    return failed


def _put_back(planned: PlannedFile) -> str | None:
    file, now, parts = planned.file, planned.now, planned.file.parts
    try:
        with locked_folder(_root(file), parts, is_made=file.mode is not None) as folder:
            if file.mode is not None:
                replace_file(folder, parts, file.content or b"", now, file.mode)
            elif now is None or state_of(os.lstat(parts[-1], dir_fd=folder)) != state_of(now):
                return str(FileChangedError(path=planned.path))
            else:
                os.unlink(parts[-1], dir_fd=folder)
    except (KantanAgentsError, OSError) as error:
        return str(error)
    return None


def _planned(file: NotedChange, folder: str) -> PlannedFile | None:
    path = shown_path(file.parts if file.root == folder else (file.root, *file.parts))
    try:
        root = _root(file)
        now, content = _now(root, file.parts)
    except KantanAgentsError as error:
        return PlannedFile(file, path, problem=getattr(error, "reason", str(error)))
    is_as_before = file.mode is None if now is None else content == file.content
    if is_as_before:
        return None
    protected, problem = why_protected(root.path, file.parts), None
    if file.mode is not None and file.content is None:
        problem = "its old content was not kept"
    elif _has_writers("/".join((root.path, *file.parts))):
        problem = "a command is running that may not change it, and could then"
    has_changed = now is None or not file.has_written(content)
    return PlannedFile(file, path, now, content, has_changed, protected, problem)


def _root(change: NotedChange) -> Root:
    root = Root.at(change.root)
    if root.path != change.root:
        raise FileNotUsableError(path=change.root, reason="the folder was replaced by a link")
    return root


def _now(root: Root, parts: tuple[str, ...]) -> tuple[os.stat_result | None, bytes]:
    try:
        with (
            locked_folder(root, parts) as folder,
            open(open_file(root, folder, parts), "rb") as file,  # noqa: PTH123 - a descriptor
        ):
            return os.fstat(file.fileno()), file.read(_MOST)
    except FileNotUsableError as error:
        if isinstance(error.__cause__, FileNotFoundError):  # the file, or a folder on the way
            return None, b""
        raise


def _has_writers(path: str) -> bool:
    supervised = sys.modules.get("kantan_agents.toolkit.shell.supervised")  # else none was ever started
    return supervised is not None and supervised.has_writers(path)
