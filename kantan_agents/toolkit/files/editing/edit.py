"""``Edit`` and ``MultiEdit``: replaces texts in a file, and keeps everything else as it is."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from agents import FunctionTool
from agents.tool_context import ToolContext

from kantan_agents.errors import EditRefusedError, FileChangedError, FileForbiddenError, FileNotUsableError
from kantan_agents.toolkit.files.editing.folders import locked_folder, parts_of_file
from kantan_agents.toolkit.files.editing.replace import replace_file, state_of
from kantan_agents.toolkit.files.editing.steps import EditStep, edited
from kantan_agents.toolkit.files.making import file_tool
from kantan_agents.toolkit.files.names import shown_path
from kantan_agents.toolkit.files.opening import Parts, open_file
from kantan_agents.toolkit.files.read_rules import ReadRules
from kantan_agents.toolkit.files.root import Root
from kantan_agents.toolkit.files.stop import to_its_end
from kantan_agents.toolkit.files.text import BinaryFileError, FileText
from kantan_agents.toolkit.files.walk import MayRead

MAX_SIZE = 16 << 20
MAX_STEPS = 200


def edit_tool(root: Root, rules: ReadRules, *, approval: bool) -> FunctionTool:
    """Return the tool ``Edit``."""

    async def edit(
        _context: ToolContext[Any],
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,
    ) -> str:
        """Replace a text in a file. Encoding and line ends of the file are kept.

        Args:
            file_path: Path of the file, relative to the root folder.
            old_string: The text to replace, exactly as it is in the file. It must occur once.
            new_string: The text in its place.
            replace_all: Whether to replace every occurrence.
        """
        step = EditStep(old_string=old_string, new_string=new_string, replace_all=replace_all)
        may_read = rules.in_force(_context, "Edit")
        return await to_its_end(partial(edit_file, root, file_path, [step], may_read))

    return file_tool(edit, "Edit", root, parameter="file_path", needs_approval=approval)


def multi_edit_tool(root: Root, rules: ReadRules, *, approval: bool) -> FunctionTool:
    """Return the tool ``MultiEdit``."""

    async def multi_edit(_context: ToolContext[Any], file_path: str, edits: list[EditStep]) -> str:
        """Replace several texts in a file, one after the other: all of them, or none if one does not fit.

        Args:
            file_path: Path of the file, relative to the root folder.
            edits: The replacements, each with old_string, new_string and optionally replace_all, as for Edit.
        """
        may_read = rules.in_force(_context, "MultiEdit")
        return await to_its_end(partial(edit_file, root, file_path, edits, may_read, is_numbered=True))

    return file_tool(multi_edit, "MultiEdit", root, parameter="file_path", needs_approval=approval)


def edit_file(
    root: Root,
    file_path: str,
    steps: list[EditStep],
    may_read: MayRead | None,
    *,
    is_numbered: bool = False,
) -> str:
    """Replace texts in a file; return what was done.

    Raises:
        OutsideRootError, FileNotUsableError: E160, E161.
        EditRefusedError: E162, a replacement does not fit; the file is unchanged.
        FileChangedError: E163, another program changed the file at the same time.
        FileForbiddenError: E166, the rules do not permit to read the file.
    """
    parts = parts_of_file(root, file_path)
    path = shown_path(parts)
    if may_read is not None and not may_read("/".join(parts)):
        raise FileForbiddenError(path=path)
    if not 0 < len(steps) <= MAX_STEPS:
        raise EditRefusedError(path=path, reason=f"edits must have 1 to {MAX_STEPS:,} items")
    with locked_folder(root, parts) as folder:
        text, before = _read(root, folder, parts)
        lines: list[int] = []
        done = 0
        try:
            for step in steps:
                text, lines = _applied(text, path, step)
                done += 1
        except EditRefusedError as error:
            if not is_numbered:
                raise
            reason = f"edit {done + 1} of {len(steps)}: {error.reason} (nothing was changed)"
            raise EditRefusedError(path=path, reason=reason) from error
        replace_file(folder, parts, _encoded(text, path), before)
    if is_numbered:
        return f"Made {len(steps)} edits in {path}."
    where = f"line {lines[0]}" if len(lines) == 1 else f"{len(lines):,} places"
    return f"Replaced the text in {where} of {path}."


def _applied(text: FileText, path: str, step: EditStep) -> tuple[FileText, list[int]]:
    return edited(
        text, path, step["old_string"], step["new_string"], replace_all=step.get("replace_all", False)
    )


def _read(root: Root, folder: int, parts: Parts) -> tuple[FileText, os.stat_result]:
    file = open_file(root, folder, parts, os.O_RDWR)
    path = shown_path(parts)
    try:
        before = os.fstat(file)
        if before.st_size > MAX_SIZE:
            reason = f"it has {before.st_size:,} bytes, and at most {MAX_SIZE:,} can be edited"
            raise FileNotUsableError(path=path, reason=reason)
        data = b""
        while len(data) <= before.st_size and (more := os.read(file, before.st_size - len(data) + 1)):
            data += more
        if len(data) != before.st_size or state_of(os.fstat(file)) != state_of(before):
            raise FileChangedError(path=path)
        return FileText.decode(data), before
    except BinaryFileError as error:
        raise FileNotUsableError(path=path, reason="it is a binary file") from error
    except OSError as error:
        raise FileNotUsableError(path=path, reason=error.strerror or str(error)) from error
    finally:
        os.close(file)


def _encoded(text: FileText, path: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        missing = error.object[error.start : error.end]
        reason = f"the file is encoded in {text.encoding}, which has no code for {missing!a}"
        raise EditRefusedError(path=path, reason=reason) from error
