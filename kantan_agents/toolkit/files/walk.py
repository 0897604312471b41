"""Walks through the files below a folder, within bounded memory and time."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Generator, Iterator

import attrs

from kantan_agents.errors import KantanAgentsError
from kantan_agents.toolkit.files.ignore import IgnoreRules
from kantan_agents.toolkit.files.opening import Parts, open_folder
from kantan_agents.toolkit.files.root import MAX_DEPTH, Root
from kantan_agents.toolkit.files.threads import SearchStop

MayRead = Callable[[str], bool]

GIT = ".git"
MAX_ENTRIES = 200_000
"""Of one folder."""


@attrs.frozen(eq=False)
class WalkedFile:
    """A regular file; ``folder`` stays open until the next file."""

    path: str
    folder: int
    entry: os.DirEntry[str]


@attrs.define(eq=False)
class Walk:
    """One walk through the files that are neither ignored nor forbidden by the run's rules.

    ``depth`` counts path parts below ``start``.
    """

    root: Root
    top: int
    stop: SearchStop
    may_read: MayRead | None = None
    depth: int | None = None
    skipped: Counter[str] = attrs.field(factory=Counter)

    def files(self, start: Parts) -> Generator[WalkedFile, None, None]:
        """Yield a folder's files by name, then its folders' files."""
        most = min(MAX_DEPTH, len(start) + self.depth - 1) if self.depth is not None else MAX_DEPTH
        waiting = [(start, self._ignored_above(start))]
        while waiting:
            self.stop.check()
            if self.stop.is_late:
                self.skipped["late"] += 1
                return
            parts, ignored = waiting.pop()
            try:
                folder = open_folder(self.root, self.top, parts, is_listed=True, is_found=parts != start)
            except KantanAgentsError:
                if parts == start:
                    raise
                self.skipped["unreadable"] += 1
                continue
            try:
                path = "/".join(parts)
                inner: list[str] = []
                ignored = ignored.within(folder, path)
                yield from self._of_folder(folder, f"{path}/" if path else "", ignored, inner)
            finally:
                os.close(folder)
            if len(parts) < most:
                waiting += [((*parts, name), ignored) for name in reversed(inner)]
            elif inner and self.depth is None:
                self.skipped["deep"] += len(inner)

    def _of_folder(
        self, folder: int, prefix: str, ignored: IgnoreRules, inner: list[str]
    ) -> Iterator[WalkedFile]:
        for entry in self._listed(folder):
            name = entry.name
            if entry.is_symlink():
                self.skipped["links"] += 1
            elif entry.is_dir(follow_symlinks=False):
                if name != GIT and not ignored.ignores(prefix + name, is_folder=True):
                    inner.append(name)
            elif entry.is_file(follow_symlinks=False) and not ignored.ignores(prefix + name):
                if self.may_read is not None and not self.may_read(prefix + name):
                    self.skipped["forbidden"] += 1
                else:
                    yield WalkedFile(prefix + name, folder, entry)

    def _listed(self, folder: int) -> list[os.DirEntry[str]]:
        entries: list[os.DirEntry[str]] = []
        with os.scandir(folder) as listing:
            for entry in listing:
                if len(entries) == MAX_ENTRIES:
                    self.skipped["crowded"] += 1
                    break
                entries.append(entry)
        entries.sort(key=lambda entry: entry.name)
        return entries

    def _ignored_above(self, start: Parts) -> IgnoreRules:
        rules = IgnoreRules()
        for place in range(len(start)):
            try:
                folder = open_folder(self.root, self.top, start[:place])
            except KantanAgentsError:
                return rules  # opening `start` reports it
            try:
                rules = rules.within(folder, "/".join(start[:place]))
            finally:
                os.close(folder)
            if rules.ignores("/".join(start[: place + 1]), is_folder=True):
                rules = IgnoreRules()
        return rules


_REASONS = (
    ("forbidden", "{} files that the tool rules do not permit to read"),
    ("links", "{} symbolic links, which are not followed"),
    ("binary", "{} binary files"),
    ("large", "{} files too large for this search"),
    ("unreadable", "{} files or folders that cannot be opened"),
    ("mounted", "{} files on another file system"),
    ("deep", "{} folders nested too deeply"),
    ("crowded", "the rest of {} folders with very many entries"),
)


def skipped_notice(skipped: Counter[str]) -> str | None:
    """Return a line about omitted files, or None."""
    reasons = [text.format(f"{skipped[key]:,}") for key, text in _REASONS if skipped[key]]
    return f"[left out: {'; '.join(reasons)}]" if reasons else None
