"""Searches the files below a folder."""

from __future__ import annotations

import os
from contextlib import closing
from functools import partial
from typing import Literal

import attrs

from kantan_agents.errors import FileNotUsableError
from kantan_agents.toolkit.files.blocks import text_blocks
from kantan_agents.toolkit.files.grep.answer import Answer
from kantan_agents.toolkit.files.grep.chosen_files import ChosenFiles
from kantan_agents.toolkit.files.grep.lines import EnoughError, LineSearch
from kantan_agents.toolkit.files.grep.pattern import SearchPattern
from kantan_agents.toolkit.files.mounts import is_same_mount
from kantan_agents.toolkit.files.names import shown, shown_path
from kantan_agents.toolkit.files.opening import (
    Parts,
    check_regular,
    is_folder,
    open_file,
    open_folder,
    open_found,
    opened_root,
)
from kantan_agents.toolkit.files.root import Root
from kantan_agents.toolkit.files.stop import Stop
from kantan_agents.toolkit.files.text import BinaryFileError
from kantan_agents.toolkit.files.walk import MayRead, Walk

OutputMode = Literal["files_with_matches", "content", "count"]


@attrs.frozen
class Search:
    """What is searched for.

    Attributes:
        pattern: The pattern.
        mode: What the answer has.
        files: Which files are searched; None for all.
        before: How many lines before each match are shown.
        after: How many lines after it.
    """

    pattern: SearchPattern
    mode: OutputMode = "files_with_matches"
    files: ChosenFiles | None = None
    before: int = 0
    after: int = 0


def search_files(
    root: Root, search: Search, path: str, may_read: MayRead | None, answer: Answer, stop: Stop
) -> Walk:
    """Search a file, or the files below a folder, and add what is found to the answer.

    Returns:
        The walk, which knows what was left out.

    Raises:
        OutsideRootError, FileNotUsableError: E160, E161, about ``path``.
    """
    parts = root.parts(path)
    with opened_root(root) as top:
        walk = Walk(root, top, stop, may_read)
        each = _Files(search, answer, walk)
        try:
            if not parts or is_folder(root, top, parts):
                each.below(parts)
            else:
                each.named(parts)
        except EnoughError:
            pass
    return walk


@attrs.frozen(eq=False)
class _Files:
    search: Search
    answer: Answer
    walk: Walk

    def named(self, parts: Parts) -> None:
        """Search the one file that was asked for."""
        path, walk = "/".join(parts), self.walk
        if walk.may_read is not None and not walk.may_read(path):
            walk.skipped["forbidden"] += 1
            return
        folder = open_folder(walk.root, walk.top, parts[:-1])
        try:
            file = open_file(walk.root, folder, parts)
        finally:
            os.close(folder)
        try:
            self._search(file, path, os.fstat(file).st_size)
        except OSError as error:
            raise FileNotUsableError(path=shown_path(parts), reason=error.strerror or str(error)) from error
        finally:
            os.close(file)

    def below(self, parts: Parts) -> None:
        """Search the files below a folder."""
        chosen, walk = self.search.files, self.walk
        skipped = len("/".join(parts)) + 1 if parts else 0
        with closing(walk.files(parts)) as files:
            for found in files:
                if chosen is not None and not chosen.has(found.path[skipped:]):
                    continue
                self._check()
                try:
                    self._found(found.folder, found.entry.name, found.path)
                except OSError:
                    walk.skipped["unreadable"] += 1

    def _check(self) -> None:
        """Raise if the call was cancelled, or if the time for it is over."""
        self.walk.stop.check()
        if self.walk.stop.is_late:
            self.walk.skipped["late"] += 1
            raise EnoughError

    def _found(self, folder: int, name: str, path: str) -> None:
        file = open_found(folder, name)
        try:
            state = os.fstat(file)
            check_regular((path,), state)
            if state.st_dev != self.walk.root.device and not is_same_mount(file, folder):
                self.walk.skipped["mounted"] += 1
            else:
                self._search(file, path, state.st_size)
        except FileNotUsableError:  # replaced by something else since it was listed
            self.walk.skipped["unreadable"] += 1
        finally:
            os.close(file)

    def _search(self, file: int, path: str, size: int) -> None:
        search, pattern, stop = self.search, self.search.pattern, self.walk.stop
        largest = pattern.largest_file
        if largest is not None and size > largest:
            self.walk.skipped["large"] += 1
            return
        shows = search.mode == "content"
        lines = LineSearch(
            pattern,
            self._check,
            partial(self.answer.add_line, path) if shows else None,
            search.before,
            search.after,
        )
        only_first = search.mode == "files_with_matches"
        try:
            for block in text_blocks(file, size, stop, largest or pattern.block):
                self._check()
                lines.feed(block, only_first=only_first)
                if only_first and lines.matches:
                    break
        except BinaryFileError:
            self.walk.skipped["binary"] += 1
        if lines.matches and not shows:
            self.answer.add(shown(path) if only_first else f"{shown(path)}:{lines.matches}")
