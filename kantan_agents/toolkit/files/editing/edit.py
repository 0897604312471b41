"""``Edit`` and ``MultiEdit``: exact replacements in a file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from agents import FunctionTool
from agents.tool_context import ToolContext
from typing_extensions import NotRequired, TypedDict

from kantan_agents.errors import EditRejectedError, FileChangedError, FileForbiddenError, FileNotUsableError
from kantan_agents.support.nearest import most_similar
from kantan_agents.support.noted_changes import changes_noted
from kantan_agents.toolkit.files.editing.changes import FileChange, declare_change
from kantan_agents.toolkit.files.editing.consent import CallConsent, Consent
from kantan_agents.toolkit.files.editing.folders import locked_folder, parts_of_file
from kantan_agents.toolkit.files.editing.replace import replace_file
from kantan_agents.toolkit.files.file_tool import file_tool
from kantan_agents.toolkit.files.known_files import state_of
from kantan_agents.toolkit.files.names import shown_path
from kantan_agents.toolkit.files.opening import Parts, open_file
from kantan_agents.toolkit.files.read_rules import ReadRules
from kantan_agents.toolkit.files.root import Root
from kantan_agents.toolkit.files.text import BinaryFileError, FileText, unified
from kantan_agents.toolkit.files.threads import to_its_end
from kantan_agents.toolkit.files.walk import MayRead

MAX_SIZE = 16 << 20
MAX_STEPS = 200
_NUMBERED = re.compile(r" *\d+\t")
_MOST_LINES = 20_000
_LONGEST = 200
_NEAR = 0.6
_NEAREST = 3
_LISTED = 10
_MOST_WANTED = 200
_MOST_PLACES = 100_000
_LARGEST = 32 << 20  # characters of the new text


def edit_tool(root: Root, rules: ReadRules, consent: Consent) -> FunctionTool:
    """Return the tool ``Edit``."""

    async def edit(
        _context: ToolContext[Any],
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,
    ) -> str:
        """Replace a string in a file. The file's encoding and line endings do not change.

        Args:
            file_path: Path of the file, relative to the root folder.
            old_string: The text to replace, exactly as the file has it. It must occur once.
            new_string: The text to put there.
            replace_all: Whether to replace every occurrence.
        """
        step = EditStep(old_string=old_string, new_string=new_string, replace_all=replace_all)
        may_read = rules.in_force(_context, "Edit")
        agreed = consent.of_call(_context, "Edit")
        return await to_its_end(partial(edit_file, root, file_path, [step], may_read, agreed))

    tool = file_tool(edit, "Edit", root, parameter="file_path", needs_approval=consent.needs_approval)
    return declare_change(tool, partial(_change, root))


def multi_edit_tool(root: Root, rules: ReadRules, consent: Consent) -> FunctionTool:
    """Return the tool ``MultiEdit``."""

    async def multi_edit(_context: ToolContext[Any], file_path: str, edits: list[EditStep]) -> str:
        """Replace several strings in a file, one after the other: all of them, or none if one does not fit.

        Args:
            file_path: Path of the file, relative to the root folder.
            edits: The replacements, each with old_string, new_string and optionally replace_all, as for Edit.
        """
        may_read = rules.in_force(_context, "MultiEdit")
        agreed = consent.of_call(_context, "MultiEdit")
        work = partial(edit_file, root, file_path, edits, may_read, agreed, is_numbered=True)
        return await to_its_end(work)

    tool = file_tool(
        multi_edit, "MultiEdit", root, parameter="file_path", needs_approval=consent.needs_approval
    )
    return declare_change(tool, partial(_change, root))


def edit_file(
    root: Root,
    file_path: str,
    steps: list[EditStep],
    may_read: MayRead | None,
    agreed: CallConsent | None = None,
    *,
    is_numbered: bool = False,
) -> str:
    """Replace strings in a file, or raise and leave it unchanged; return a report."""
    parts = parts_of_file(root, file_path)
    path = shown_path(parts)
    if agreed is not None:
        agreed.check(parts)
    if may_read is not None and not may_read("/".join(parts)):
        raise FileForbiddenError(path=path)
    if not 0 < len(steps) <= MAX_STEPS:
        raise EditRejectedError(path=path, reason=f"edits must have 1 to {MAX_STEPS:,} items")
    with locked_folder(root, parts) as folder:
        text, before = _read(root, folder, parts)
        if agreed is not None:
            agreed.check_state(parts, before)
        text, lines = _all_applied(text, path, steps, is_numbered=is_numbered)
        data = _encoded(text, path)
        if (notes := changes_noted.get()) is not None:
            notes.file_changes(root.path, parts, folder, before, data)
        replace_file(folder, parts, data, before)
        if agreed is not None:
            agreed.note_written(parts, before, folder)
    if is_numbered:
        return f"Made {len(steps)} edits in {path}."
    where = f"line {lines[0]}" if len(lines) == 1 else f"{len(lines):,} places"
    return f"Replaced the text in {where} of {path}."


def _all_applied(
    text: FileText, path: str, steps: Sequence[EditStep], *, is_numbered: bool
) -> tuple[FileText, list[int]]:
    lines: list[int] = []
    done = 0
    try:
        for step in steps:
            text, lines = _applied(text, path, step)
            done += 1
    except EditRejectedError as error:
        if not is_numbered:
            raise
        reason = f"edit {done + 1} of {len(steps)}: {error.reason} (nothing was changed)"
        raise EditRejectedError(path=path, reason=reason) from error
    return text, lines


def _change(root: Root, arguments: Mapping[str, Any]) -> FileChange:
    parts = parts_of_file(root, str(arguments.get("file_path")))
    steps = [cast("EditStep", step) for step in arguments.get("edits", [arguments])]

    def texts() -> tuple[str, str]:
        with locked_folder(root, parts) as folder:
            text, _ = _read(root, folder, parts)
        return text.text, _all_applied(text, shown_path(parts), steps[:MAX_STEPS], is_numbered=False)[0].text

    return FileChange.of(root, parts, texts)


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
        raise EditRejectedError(path=path, reason=reason) from error


class EditStep(TypedDict):
    """One replacement."""

    old_string: str
    new_string: str
    replace_all: NotRequired[bool]


def edited(text: FileText, path: str, old: str, new: str, *, replace_all: bool) -> tuple[FileText, list[int]]:
    """Replace ``old``, and return the numbers of its lines; raise E162."""
    old, new = unified(old), unified(new)
    if not old:
        reason = "old_string is empty: name the text to replace, or use Write for the whole file"
        raise EditRejectedError(path=path, reason=reason)
    if old == new:
        raise EditRejectedError(path=path, reason="old_string and new_string are the same")
    starts = _starts(text.text, old)
    if not starts:
        raise EditRejectedError(path=path, reason=_not_found(text.text, old))
    lines = _line_numbers(text.text, starts)
    if len(starts) > 1 and not replace_all:
        reason = (
            f"old_string occurs {len(starts):,} times, in lines {_listed(lines)}: "
            "add lines around it so that it occurs once, or set replace_all"
        )
        raise EditRejectedError(path=path, reason=reason)
    if len(starts) > _MOST_PLACES or len(text.text) + len(starts) * (len(new) - len(old)) > _LARGEST:
        reason = f"old_string occurs too often for one edit: {len(starts):,} times or more"
        raise EditRejectedError(path=path, reason=reason)
    return text.replaced(starts, old, new), lines


def _starts(text: str, old: str) -> list[int]:
    starts: list[int] = []
    place = text.find(old)
    while place >= 0 and len(starts) <= _MOST_PLACES:
        starts.append(place)
        place = text.find(old, place + len(old))
    return starts


def _line_numbers(text: str, starts: list[int]) -> list[int]:
    numbers: list[int] = []
    place, line = 0, 1
    for start in starts:
        line += text.count("\n", place, start)
        place = start
        numbers.append(line)
    return numbers


def _listed(lines: list[int]) -> str:
    more = f" and {len(lines) - _LISTED:,} more" if len(lines) > _LISTED else ""
    return ", ".join(map(str, lines[:_LISTED])) + more


def _not_found(text: str, old: str) -> str:
    wanted = old.split("\n")
    if all(_NUMBERED.match(line) for line in wanted if line):
        return "old_string does not occur: leave out the line numbers that Read adds"
    lines = text.split("\n")[:_MOST_LINES]
    stripped = [line.strip() for line in wanted]
    found = _same_but_for_space([line.strip() for line in lines], stripped)
    if found is not None:
        shown = "\n".join(lines[found : found + len(wanted)][:_LISTED])
        return f"old_string does not occur, but line {found + 1} differs only in white space:\n{shown}"
    first = next((line for line in stripped if line), "")
    shortened = [line.strip()[:_LONGEST] for line in lines]
    near = most_similar(first[:_LONGEST], shortened, _NEAREST, _NEAR)
    if not near:
        return "old_string does not occur: read the file again"
    nearest = "\n".join(f"{place + 1:>6}\t{lines[place][:_LONGEST]}" for place in near)
    return f"old_string does not occur. The nearest lines to its first are:\n{nearest}"


def _same_but_for_space(lines: list[str], wanted: list[str]) -> int | None:
    if not any(wanted) or len(wanted) > _MOST_WANTED:
        return None
    first = wanted[0]
    for place, line in enumerate(lines):
        if line == first and lines[place : place + len(wanted)] == wanted:
            return place
    return None
