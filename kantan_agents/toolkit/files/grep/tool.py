"""``Grep``: searches the files below a folder."""

from __future__ import annotations

import os
from contextlib import closing
from functools import partial
from itertools import accumulate
from typing import Any, Literal

import attrs
from agents import FunctionTool
from agents.tool_context import ToolContext
from typing_extensions import Self

from kantan_agents.errors import FileNotUsableError
from kantan_agents.toolkit.files.blocks import text_blocks
from kantan_agents.toolkit.files.file_tool import file_tool
from kantan_agents.toolkit.files.globs import Glob, compiled_glob
from kantan_agents.toolkit.files.grep.lines import EnoughError, LineSearch
from kantan_agents.toolkit.files.grep.output import GrepOutput
from kantan_agents.toolkit.files.grep.pattern import SearchPattern, compiled_pattern
from kantan_agents.toolkit.files.names import shown, shown_path
from kantan_agents.toolkit.files.opening import (
    Parts,
    check_regular,
    is_folder,
    is_same_mount,
    open_file,
    open_folder,
    open_found,
    opened_root,
)
from kantan_agents.toolkit.files.read_rules import ReadRules
from kantan_agents.toolkit.files.root import Root
from kantan_agents.toolkit.files.text import BinaryFileError
from kantan_agents.toolkit.files.threads import SCAN_SECONDS, SearchStop, in_thread
from kantan_agents.toolkit.files.walk import MayRead, Walk, skipped_notice

USUAL_LIMIT = 200
MAX_LIMIT = 2_000
MAX_CONTEXT = 100
OutputMode = Literal["files_with_matches", "content", "count"]

_NOT = "!"


def grep_tool(root: Root, rules: ReadRules) -> FunctionTool:
    """Return the tool ``Grep``."""

    async def grep(
        _context: ToolContext[Any],
        pattern: str,
        path: str | None = None,
        glob: str | None = None,
        output_mode: OutputMode = "files_with_matches",
        ignore_case: bool = False,
        line_numbers: bool = True,
        before: int | None = None,
        after: int | None = None,
        context: int | None = None,
        multiline: bool = False,
        head_limit: int | None = None,
        offset: int | None = None,
    ) -> str:
        """Search files with a regular expression, line by line.

        Files that .gitignore excludes are not searched, unless path names them or their folder.

        Args:
            pattern: The expression in the syntax of RE2, as for ripgrep: no look-around, no back-references.
            path: The file or folder to search, relative to the root folder, which is the default.
            glob: Which files to search, such as "*.py" or "src/**/*.{ts,tsx}"; "!vendor" searches all others.
            output_mode: "files_with_matches" gives paths, "content" gives lines, "count" gives the number of
                matching lines of each file.
            ignore_case: Whether to ignore case.
            line_numbers: Whether lines have their numbers.
            before: How many lines to show before each match, with "content".
            after: How many lines to show after each match.
            context: How many lines to show before and after each match.
            multiline: Whether a match may span lines; . then matches line ends too.
            head_limit: How many lines, files or counts to give, 200 by default.
            offset: How many of them to skip first.
        """
        around = _within(context, 0, MAX_CONTEXT)
        search = GrepSearch(
            compiled_pattern(pattern, ignore_case=ignore_case, multiline=multiline),
            output_mode,
            ChosenFiles.of(glob) if glob else None,
            _within(before, around, MAX_CONTEXT),
            _within(after, around, MAX_CONTEXT),
        )
        has_gaps = bool(search.before or search.after)
        limit = max(1, _within(head_limit, USUAL_LIMIT, MAX_LIMIT))
        answer = GrepOutput(max(0, offset or 0), limit, line_numbers, has_gaps)
        may_read = rules.in_force(_context, "Grep")
        walk = await in_thread(partial(search_files, root, search, path or ".", may_read, answer))
        return _text(answer, walk)

    return file_tool(grep, "Grep", root)


def _within(value: int | None, default: int, most: int) -> int:
    return default if value is None else min(max(0, value), most)


def _text(answer: GrepOutput, walk: Walk) -> str:
    notes = [note for note in (skipped_notice(walk.skipped),) if note]
    if answer.is_full:
        notes.append(
            f"[there is more: go on with offset={answer.next_offset}, or narrow the pattern, path or glob]"
        )
    if walk.skipped["late"]:
        notes.append(f"[stopped after {SCAN_SECONDS:.0f} seconds: search a narrower path or glob]")
    if not answer.entries:
        notes.insert(0, "[nothing found]" if not answer.skip else "[nothing more found]")
    return "\n".join((*answer.entries, *notes))


@attrs.frozen
class GrepSearch:
    """The options of a search."""

    pattern: SearchPattern
    mode: OutputMode = "files_with_matches"
    files: ChosenFiles | None = None
    before: int = 0
    after: int = 0


def search_files(
    root: Root, search: GrepSearch, path: str, may_read: MayRead | None, answer: GrepOutput, stop: SearchStop
) -> Walk:
    """Add the matches in a file or folder to the answer."""
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
    search: GrepSearch
    answer: GrepOutput
    walk: Walk

    def named(self, parts: Parts) -> None:
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


@attrs.frozen
class ChosenFiles:
    """The files that a glob pattern matches.

    With ``are_others``, the files that match neither themselves nor by a parent folder.
    """

    glob: Glob
    are_others: bool

    @classmethod
    def of(cls, pattern: str) -> Self:
        """Parse the ``glob`` of a call, which a leading ``!`` inverts."""
        text = pattern.removeprefix(_NOT)
        return cls(compiled_glob(text, any_depth=True), text != pattern)

    def has(self, path: str) -> bool:
        """Match a path relative to the searched folder."""
        if not self.are_others:
            return self.glob.matches(path)
        return not any(map(self.glob.matches, accumulate(path.split("/"), "{}/{}".format)))
