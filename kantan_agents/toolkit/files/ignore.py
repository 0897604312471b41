"""Reads ``.gitignore`` files as git does."""

from __future__ import annotations

import os
import re
from typing import Any

import attrs

from kantan_agents.toolkit.files.glob_syntax import translated
from kantan_agents.toolkit.files.linear import compiled_set
from kantan_agents.toolkit.files.opening import check_regular, open_found

FILE = ".gitignore"
_MOST_BYTES = 1 << 18
_MOST_LINES = 5_000
_LAST_SPACES = re.compile(r"(?<!\\)[ \t]+$")


@attrs.frozen
class IgnorePattern:
    """A line of a ``.gitignore`` file; ``is_included`` re-includes paths."""

    expression: str
    is_included: bool
    is_of_folders: bool

    @classmethod
    def parse(cls, line: str) -> IgnorePattern | None:
        """Return the pattern of a line, or None."""
        text = _LAST_SPACES.sub("", line)
        if text.startswith("#"):
            return None
        is_included = text.startswith("!")
        text = text[is_included:]
        is_of_folders = text.endswith("/")
        text = text.removesuffix("/")
        if not text:
            return None
        step = text.removeprefix("/")
        try:
            expression = translated(step if "/" in text else f"**/{step}", braces=False)
        except ValueError:
            return None
        return cls(expression, is_included, is_of_folders)


@attrs.frozen(eq=False)
class IgnoreFile:
    """The compiled lines of a file, for paths without their first ``skipped`` bytes."""

    skipped: int
    patterns: tuple[IgnorePattern, ...]
    expressions: Any

    def verdict(self, path: bytes, *, is_folder: bool) -> bool | None:
        """Return whether the file excludes a path; None if no pattern matches."""
        found = self.expressions.Match(path[self.skipped :]) or []
        if not is_folder:
            found = [place for place in found if not self.patterns[place].is_of_folders]
        return not self.patterns[max(found)].is_included if found else None


@attrs.frozen(eq=False)
class IgnoreRules:
    """The ``.gitignore`` files from a folder up to the root, innermost first."""

    files: tuple[IgnoreFile, ...] = ()

    def within(self, folder: int, path: str) -> IgnoreRules:
        """Return the rules inside a folder."""
        patterns = _read(folder)
        if not patterns:
            return self
        skipped = len(as_bytes(path)) + 1 if path else 0
        expressions = compiled_set([pattern.expression for pattern in patterns])
        return IgnoreRules((IgnoreFile(skipped, patterns, expressions), *self.files))

    def ignores(self, path: str, *, is_folder: bool = False) -> bool:
        """Return whether a relative path is excluded, if its parents are not."""
        if not self.files:
            return False
        data = as_bytes(path)
        for file in self.files:
            verdict = file.verdict(data, is_folder=is_folder)
            if verdict is not None:
                return verdict
        return False


def as_bytes(path: str) -> bytes:
    """Return a path as UTF-8, with question marks for other bytes."""
    return path.encode("utf-8", "replace")


def _read(folder: int) -> tuple[IgnorePattern, ...]:
    try:
        file = open_found(folder, FILE)
    except OSError:
        return ()
    try:
        check_regular((FILE,), os.fstat(file))
        data = os.read(file, _MOST_BYTES)
    except (OSError, ValueError):
        return ()
    finally:
        os.close(file)
    lines = data.decode("utf-8-sig", "replace").replace("\r\n", "\n").split("\n")[:_MOST_LINES]
    return tuple(pattern for line in lines if (pattern := IgnorePattern.parse(line)) is not None)
