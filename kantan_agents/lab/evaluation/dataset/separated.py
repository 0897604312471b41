"""Tables with separated cells, whose separator is detected and never guessed."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Final

import attrs

from kantan_agents.errors import DatasetFileError
from kantan_agents.lab.evaluation.dataset.located_cases import LocatedCases

SEPARATORS: Final = (",", ";", "\t", "|")
_NONE: Final = "\x1f"
"""For a table with one column."""
_SHOWN: Final = {"\t": "a tab"}
# Excel reads and writes it as the first line.
_SEP_LINE: Final = re.compile(r'"?sep=(.)"?\r?\n')
_limit_of_cells: Final = Lock()


@attrs.frozen
class Table:
    """A table by line number, with None for empty cells."""

    line: int
    columns: Sequence[str]
    rows: Sequence[tuple[int, dict[str, str | None]]]


def read_table(
    found: LocatedCases,
    text: str,
    inputs: Collection[str],
    separator: str | None = None,
    separators: Sequence[str] = SEPARATORS,
) -> Table | None:
    """Return a table with a header; None if all lines are blank.

    A separator is right if it divides the header and each row has as many cells. If several are, the header
    must name one of ``inputs`` with exactly one of them.
    """
    marked = _SEP_LINE.match(text)
    if marked is not None:
        # A blank line instead, so that line numbers remain.
        text, separator = f"\n{text[marked.end() :]}", separator or marked[1]
    with _cells_up_to(len(text)):
        return _read(found, text, separator or _separator_of(found, text, inputs, separators))


@contextmanager
def _cells_up_to(length: int) -> Iterator[None]:
    """The limit is process-wide."""
    with _limit_of_cells:
        before = csv.field_size_limit()
        csv.field_size_limit(max(before, length))
        try:
            yield
        finally:
            csv.field_size_limit(before)


def _separator_of(found: LocatedCases, text: str, inputs: Collection[str], separators: Sequence[str]) -> str:
    header = next((line for line in io.StringIO(text, newline=None) if line.strip()), "")
    names = {each: _names(next(csv.reader([header], delimiter=each), [])) for each in separators}
    dividing = [each for each in separators if len(names[each]) > 1]
    if len(dividing) < 2:  # noqa: PLR2004 - with two there is a choice
        return dividing[0] if dividing else _NONE
    tried = {each: _tried(found, text, each) for each in dividing}
    fitting = [each for each, error in tried.items() if error is None] or dividing
    named = [each for each in fitting if {*inputs} & {*names[each]}]
    if len(fitting) == 1 or len(named) == 1:
        return (named or fitting)[0]
    both = " and ".join(_SHOWN.get(each, repr(each)) for each in fitting)
    reason = f"{both} both give a table; say which separates the cells: separator={fitting[0]!r}"
    raise found.error(None, reason)


def _tried(found: LocatedCases, text: str, separator: str) -> DatasetFileError | None:
    """Return why a character does not separate the cells."""
    try:
        _read(found, text, separator)
    except DatasetFileError as error:
        return error
    return None


def _names(cells: Sequence[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    while names and not names[-1]:
        names.pop()
    return names


def _read(found: LocatedCases, text: str, separator: str) -> Table | None:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
    columns: list[str] = []
    header_line = before = 0
    rows: list[tuple[int, dict[str, str | None]]] = []
    try:
        for cells in reader:
            line, before = before + 1, reader.line_num
            if not any(cell.strip() for cell in cells):
                continue
            if not columns:
                columns, header_line = _header(found, line, cells), line
            else:
                rows.append((line, _row(found, line, columns, cells)))
    except csv.Error as error:
        raise found.error(reader.line_num, f"it is not CSV that can be read: {error}") from error
    return Table(header_line, columns, rows) if columns else None


def _header(found: LocatedCases, line: int, cells: Sequence[str]) -> list[str]:
    names = _names(cells)
    for name in names:
        if not name or names.count(name) > 1:
            what = f"the column {name!r} occurs twice" if name else "a column has no name"
            raise found.error(line, what)
    return names


def _row(
    found: LocatedCases, line: int, columns: Sequence[str], cells: Sequence[str]
) -> dict[str, str | None]:
    given = min(len(cells), max(len(columns), len(_names(cells))))
    if given != len(columns):
        reason = f"it has {given} cells, and the header has {len(columns)}"
        raise found.error(line, f"{reason}; put a cell with separators in quotes")
    return {name: cell or None for name, cell in zip(columns, cells, strict=False)}
