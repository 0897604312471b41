"""The tool ``Glob``."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext

from kantan_agents.toolkit.files.file_tool import file_tool
from kantan_agents.toolkit.files.globs import Glob, compiled_glob
from kantan_agents.toolkit.files.names import fitting, shown
from kantan_agents.toolkit.files.opening import Parts, opened_root
from kantan_agents.toolkit.files.read_rules import ReadRules
from kantan_agents.toolkit.files.root import Root
from kantan_agents.toolkit.files.threads import SCAN_SECONDS, SearchStop, in_thread
from kantan_agents.toolkit.files.walk import MayRead, Walk, skipped_notice

MAX_FOUND = 200
MAX_OUTPUT = 50_000


def glob_tool(root: Root, rules: ReadRules) -> FunctionTool:
    """Return the tool ``Glob``."""

    async def glob(_context: ToolContext[Any], pattern: str, path: str | None = None) -> str:
        """Find files by their paths, the one changed last first.

        Files that .gitignore excludes are not found, unless path names their folder.

        Args:
            pattern: A glob pattern such as "src/**/*.py" or "*.{md,txt}". * and ? match no slash, ** matches
                any number of folders.
            path: The folder that the pattern starts in, relative to the root folder, which is the default.
        """
        wanted = compiled_glob(_inside(root, pattern, path))
        may_read = rules.in_force(_context, "Glob")
        return await in_thread(partial(find_files, root, wanted, path or ".", may_read))

    return file_tool(glob, "Glob", root)


def _inside(root: Root, pattern: str, path: str | None) -> str:
    prefix = f"{root.path.rstrip('/')}/"
    return pattern[len(prefix) :] if pattern.startswith(prefix) and not path else pattern


def find_files(root: Root, wanted: Glob, path: str, may_read: MayRead | None, stop: SearchStop) -> str:
    """Return the paths of matching files."""
    base = root.parts(path)
    start = root.parts("/".join((*base, *wanted.folder))) if wanted.folder else base
    with opened_root(root) as top:
        depth = None if wanted.depth is None else wanted.depth - len(wanted.folder)
        walk = Walk(root, top, stop, may_read, depth)
        count = [0]
        # Ties by name; only this many are in memory.
        newest = heapq.nsmallest(MAX_FOUND, _matching(walk, wanted, base, start, count))
    lines = [shown(found) for _, found in newest]
    lines = lines[: fitting(lines, MAX_OUTPUT)]
    notes = _notes(walk, count[0] - len(lines))
    if not newest:
        notes.insert(0, "[no file matches]")
    return "\n".join((*lines, *notes))


def _matching(
    walk: Walk, wanted: Glob, base: Parts, start: Parts, count: list[int]
) -> Iterator[tuple[int, str]]:
    skipped = len("/".join(base)) + 1 if base else 0
    with closing(walk.files(start)) as files:
        for found in files:
            if not wanted.matches(found.path[skipped:]):
                continue
            try:
                changed = found.entry.stat(follow_symlinks=False).st_mtime_ns
            except OSError:  # removed in the meantime
                continue
            count[0] += 1
            yield -changed, found.path


def _notes(walk: Walk, left: int) -> list[str]:
    notes = [note for note in (skipped_notice(walk.skipped),) if note]
    if left:
        notes.append(f"[{left:,} more files: use a narrower pattern or a path]")
    if walk.skipped["late"]:
        notes.append(f"[stopped after {SCAN_SECONDS:.0f} seconds: use a narrower pattern or a path]")
    return notes
