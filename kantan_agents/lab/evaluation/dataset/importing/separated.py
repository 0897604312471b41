"""Tables in which a character separates the cells: which one is found out, and never guessed."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection
from typing import Final, TypeAlias

from kantan_agents.errors import DatasetFileError
from kantan_agents.lab.evaluation.dataset.csv_file import SEP_LINE, cells_up_to
from kantan_agents.lab.evaluation.dataset.located_cases import LocatedCases

Row: TypeAlias = tuple[int, dict[str, str | None]]
"""Number of its first line, and its cells by column; None for an empty one."""

_SEPARATORS: Final = (",", ";", "\t", "|")
_NONE: Final = "\x1f"
"""For a table with one column, in which nothing separates."""
_SHOWN: Final = {"\t": "a tab"}


def read_separated(
    found: LocatedCases, text: str, separator: str | None, inputs: Collection[str]
) -> list[Row]:
    """Return the rows of a table with a header.

    A separator is right if it divides the header, and each row has as many cells. If several are, the header
    must name the input with exactly one of them.

    Args:
        found: Makes the errors.
        text: The table. Blank lines are ignored.
        separator: What separates the cells; None to find out.
        inputs: Columns that may be the input.

    Raises:
        DatasetFileError: E100, it is not a table, or more than one separator would be right.
    """
    said = SEP_LINE.match(text)
    if said is not None:
        text, separator = f"\n{text[said.end() :]}", separator or said[1]
    with cells_up_to(len(text)):
        if separator is not None:
            return _rows(found, text, separator)
        return _rows(found, text, _separator_of(found, text, inputs))


def _separator_of(found: LocatedCases, text: str, inputs: Collection[str]) -> str:
    header = next((line for line in text.splitlines() if line.strip()), "")
    dividing = [each for each in _SEPARATORS if len(next(csv.reader([header], delimiter=each), [])) > 1]
    if not dividing:
        return _NONE
    tried = {each: _tried(found, text, each) for each in dividing}
    fitting = [each for each, error in tried.items() if error is None]
    if not fitting:
        raise next(error for error in tried.values() if error is not None)
    if len(fitting) == 1:
        return fitting[0]
    named = [
        each for each in fitting if {*inputs} & {*map(str.strip, next(csv.reader([header], delimiter=each)))}
    ]
    if len(named) == 1:
        return named[0]
    both = " and ".join(_SHOWN.get(each, repr(each)) for each in fitting)
    reason = f"{both} both give a table; say which separates the cells: separator={fitting[0]!r}"
    raise found.error(None, reason)


def _tried(found: LocatedCases, text: str, separator: str) -> DatasetFileError | None:
    """Return why a character does not separate the cells; None if it may."""
    try:
        _rows(found, text, separator)
    except DatasetFileError as error:
        return error
    return None


def _rows(found: LocatedCases, text: str, separator: str) -> list[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
    header: list[str] | None = None
    rows: list[Row] = []
    before = 0
    try:
        for cells in reader:
            line, before = before + 1, reader.line_num
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = _header(found, line, cells)
                continue
            if any(cell.strip() for cell in cells[len(header) :]) or len(cells) < len(header):
                shown = _SHOWN.get(separator, repr(separator))
                reason = f"separated by {shown}, it has {len(cells)} cells, and the header has {len(header)}"
                raise found.error(line, f"{reason}; put a cell with separators in quotes")
            rows.append((line, {name: cell or None for name, cell in zip(header, cells, strict=False)}))
    except csv.Error as error:
        raise found.error(reader.line_num, f"it is not a table that can be read: {error}") from error
    return rows


def _header(found: LocatedCases, line: int, cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    while names and not names[-1]:
        names.pop()
    for name in names:
        if not name or names.count(name) > 1:
            what = f"the column {name!r} occurs twice" if name else "a column has no name"
            raise found.error(line, what)
    return names
