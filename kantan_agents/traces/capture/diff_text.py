"""Formats how two values differ."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from difflib import unified_diff
from typing import Any, Final

_MOST_LINES: Final = 12
_LONGEST_LINE: Final = 160
_BEFORE_THE_CHANGE: Final = 40
_HEAD_LINES: Final = 2
_DOTS: Final = "..."

ABSENT: Final = object()


def text_diff(before: str, after: str, before_name: str, after_name: str) -> str:
    """Return the unified diff, without a trailing line break."""
    return "\n".join(
        unified_diff(before.split("\n"), after.split("\n"), before_name, after_name, lineterm="")
    )


def short_diff(before: Any, after: Any) -> str:
    """Return the differing lines, each after ``-`` or ``+``, shortened.

    The values are strings, JSON data (shown indented) or ``ABSENT``.
    """
    old, new = _lines(before), _lines(after)
    changed = list(unified_diff(old, new, lineterm="", n=0))[_HEAD_LINES:]
    lines = list(_shortened(line for line in changed if not line.startswith("@@")))
    if len(lines) > _MOST_LINES:
        lines[_MOST_LINES:] = [f"{_DOTS} {len(lines) - _MOST_LINES} more lines"]
    return "\n".join(lines)


def _lines(value: Any) -> list[str]:
    if value is ABSENT:
        return []
    if not isinstance(value, str):
        value = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, default=_plain)
    return str(value).split("\n")


def _plain(value: Any) -> Any:
    return dict(value) if hasattr(value, "keys") else str(value)


def _shortened(lines: Iterable[str]) -> Iterator[str]:
    block: list[str] = []
    for line in lines:
        # A block is removed lines and their replacements.
        if block and block[-1][0] == "+" and line[0] == "-":
            yield from _shortened_block(block)
            block = []
        block.append(line)
    yield from _shortened_block(block)


def _shortened_block(block: list[str]) -> Iterator[str]:
    removed = [line[1:] for line in block if line[0] == "-"]
    added = [line[1:] for line in block if line[0] == "+"]
    equal = [_equal_beginning(old, new) for old, new in zip(removed, added, strict=False)]
    for sign, lines in (("-", removed), ("+", added)):
        for number, line in enumerate(lines):
            yield sign + _cut(line, equal[number] if number < len(equal) else 0)


def _equal_beginning(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _cut(line: str, differs_at: int) -> str:
    if len(line) <= _LONGEST_LINE:
        return line
    begin = max(differs_at - _BEFORE_THE_CHANGE, 0)
    shown = line[begin : begin + _LONGEST_LINE]
    end = _DOTS if begin + _LONGEST_LINE < len(line) else ""
    return f"{_DOTS if begin else ''}{shown}{end}"
