"""``LS``: the entries of one folder."""

from __future__ import annotations

import os
from collections import Counter
from functools import partial
from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext

from kantan_agents.toolkit.files.file_tool import file_tool
from kantan_agents.toolkit.files.globs import Glob, compiled_glob
from kantan_agents.toolkit.files.names import fitting, shown, shown_path
from kantan_agents.toolkit.files.opening import open_folder, opened_root
from kantan_agents.toolkit.files.read_rules import ReadRules
from kantan_agents.toolkit.files.root import Root
from kantan_agents.toolkit.files.threads import SearchStop, in_thread
from kantan_agents.toolkit.files.walk import MAX_ENTRIES, MayRead, skipped_notice

MAX_LISTED = 1_000
MAX_OUTPUT = 50_000


def ls_tool(root: Root, rules: ReadRules) -> FunctionTool:
    """Return the tool ``LS``."""

    async def ls(_context: ToolContext[Any], path: str | None = None, ignore: list[str] | None = None) -> str:
        """List a folder: its folders, which end with a slash, its files with their sizes, its links.

        Args:
            path: Path of the folder, relative to the root folder, which is the default.
            ignore: Glob patterns of names to omit.
        """
        patterns = [compiled_glob(pattern) for pattern in ignore or ()]
        may_read = rules.in_force(_context, "LS")
        return await in_thread(partial(list_folder, root, path or ".", patterns, may_read))

    return file_tool(ls, "LS", root)


def list_folder(root: Root, path: str, ignore: list[Glob], may_read: MayRead | None, stop: SearchStop) -> str:
    """Return the entries of a folder."""
    parts = root.parts(path)
    skipped: Counter[str] = Counter()
    with opened_root(root) as top:
        folder = open_folder(root, top, parts, is_listed=True)
        try:
            lines = _lines(folder, "/".join(parts), ignore, may_read, skipped, stop)
        finally:
            os.close(folder)
    notes = [note for note in (skipped_notice(skipped),) if note]
    count = fitting(lines[:MAX_LISTED], MAX_OUTPUT)
    if len(lines) > count:
        left = len(lines) - count
        notes.append(f"[{left:,} more entries: find some of them with Glob, or leave some out with ignore]")
    if not lines:
        notes.insert(0, f"[{shown_path(parts)} has nothing to list]")
    return "\n".join((*lines[:count], *notes))


def _lines(
    folder: int,
    path: str,
    ignore: list[Glob],
    may_read: MayRead | None,
    skipped: Counter[str],
    stop: SearchStop,
) -> list[str]:
    entries: list[tuple[bool, str, os.DirEntry[str]]] = []
    with os.scandir(folder) as listing:
        for entry in listing:
            stop.check()
            if len(entries) == MAX_ENTRIES:
                skipped["crowded"] += 1
                break
            if not any(pattern.matches(entry.name) for pattern in ignore):
                entries.append((not entry.is_dir(follow_symlinks=False), entry.name, entry))
    lines: list[str] = []
    for _, name, entry in sorted(entries, key=lambda one: one[:2]):
        stop.check()
        whole = f"{path}/{name}" if path else name
        if may_read is not None and entry.is_file(follow_symlinks=False) and not may_read(whole):
            skipped["forbidden"] += 1
        elif len(lines) <= MAX_LISTED:
            lines.append(_line(entry))
        else:
            lines.append("")  # only counted
    return lines


def _line(entry: os.DirEntry[str]) -> str:
    name = shown(entry.name)
    if entry.is_symlink():
        return f"{name} (a symbolic link, not followed)"
    if entry.is_dir(follow_symlinks=False):
        return f"{name}/"
    if not entry.is_file(follow_symlinks=False):
        return f"{name} (not a regular file)"
    try:
        size = entry.stat(follow_symlinks=False).st_size
    except OSError:
        return name
    return f"{name} ({size:,} bytes)"
