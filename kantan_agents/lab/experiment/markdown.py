"""Markdown in which strings from models are only text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kantan_agents.support.invisible import by_code

_MOST: Final = 200
_PUNCTUATION: Final = re.compile(r"[\\`*_\[\]<>#|~&$]")
_OF_A_LIST: Final = re.compile(r"^(\d{0,9})([-+=.)])(?=[-=\s]|$)")
# A host makes links of mentions, issues and addresses even where Markdown does not. A zero-width character
# between them is invisible.
_LINKED: Final = re.compile(
    r"(?<=@)(?=\w)|(?<=[#!])(?=\d)|(?<=\bGH-)(?=\d)|(?<=:)(?=//)|(?<=www)(?=\.)", re.IGNORECASE
)


def markdown_text(text: str, most: int = _MOST) -> str:
    """Return one line that Markdown shows unchanged, cut after ``most`` characters."""
    line = " ".join(by_code(" ".join(text.split())).split())
    line = line if len(line) <= most else f"{line[: most - 3].rstrip()}..."
    escaped = _OF_A_LIST.sub(r"\1\\\2", _PUNCTUATION.sub(r"\\\g<0>", line))
    return _LINKED.sub("&#8203;", escaped)


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a table whose columns after the first are right-aligned."""
    yield _line(map(markdown_text, columns))
    yield _line(["---", *["---:"] * (len(columns) - 1)])
    for row in rows:
        yield _line(map(markdown_text, row))


def markdown_list(lines: Sequence[str], most: int, longest: int = _MOST) -> Iterator[str]:
    """Yield at most ``most`` lines, and the number of the others."""
    for line in lines[:most]:
        yield f"- {markdown_text(line, longest)}"
    if len(lines) > most:
        yield f"- and {len(lines) - most} more"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
