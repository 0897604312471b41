"""One replacement in a text, and why it does not fit."""

from __future__ import annotations

import re

from rapidfuzz import fuzz, process
from typing_extensions import NotRequired, TypedDict

from kantan_agents.errors import EditRefusedError
from kantan_agents.toolkit.files.text import FileText, unified

_NUMBERED = re.compile(r" *\d+\t")
_MOST_LINES = 20_000
_LONGEST = 200
_NEAR = 60  # percent
_NEAREST = 3
_LISTED = 10
_MOST_WANTED = 200
_MOST_PLACES = 100_000
_LARGEST = 32 << 20  # characters of the new text


class EditStep(TypedDict):
    """One replacement."""

    old_string: str
    new_string: str
    replace_all: NotRequired[bool]


def edited(text: FileText, path: str, old: str, new: str, *, replace_all: bool) -> tuple[FileText, list[int]]:
    """Return a text with ``old`` replaced by ``new``, and the numbers of the lines where it was.

    Args:
        text: The text.
        path: Path of its file, for errors.
        old: The text to replace, which must occur once.
        new: The text in its place.
        replace_all: Whether it may occur more often.

    Raises:
        EditRefusedError: E162, it does not occur, or too often.
    """
    old, new = unified(old), unified(new)
    if not old:
        reason = "old_string is empty: name the text to replace, or use Write for the whole file"
        raise EditRefusedError(path=path, reason=reason)
    if old == new:
        raise EditRefusedError(path=path, reason="old_string and new_string are the same")
    starts = _starts(text.text, old)
    if not starts:
        raise EditRefusedError(path=path, reason=_not_found(text.text, old))
    lines = _line_numbers(text.text, starts)
    if len(starts) > 1 and not replace_all:
        reason = (
            f"old_string occurs {len(starts):,} times, in lines {_listed(lines)}: "
            "add lines around it so that it occurs once, or set replace_all"
        )
        raise EditRefusedError(path=path, reason=reason)
    if len(starts) > _MOST_PLACES or len(text.text) + len(starts) * (len(new) - len(old)) > _LARGEST:
        reason = f"old_string occurs too often for one edit: {len(starts):,} times or more"
        raise EditRefusedError(path=path, reason=reason)
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
    near = process.extract(
        first[:_LONGEST],
        [line.strip()[:_LONGEST] for line in lines],
        scorer=fuzz.ratio,
        score_cutoff=_NEAR,
        limit=_NEAREST,
    )
    if not near:
        return "old_string does not occur: read the file again"
    nearest = "\n".join(f"{place + 1:>6}\t{lines[place][:_LONGEST]}" for _, _, place in near)
    return f"old_string does not occur. The nearest lines to its first are:\n{nearest}"


def _same_but_for_space(lines: list[str], wanted: list[str]) -> int | None:
    if not any(wanted) or len(wanted) > _MOST_WANTED:
        return None
    first = wanted[0]
    for place, line in enumerate(lines):
        if line == first and lines[place : place + len(wanted)] == wanted:
            return place
    return None
