"""Datasets as CSV, for spreadsheets: every cell is a string.

Spreadsheets use a semicolon where the comma is the decimal mark.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from kantan_agents.errors import DatasetFileError
from kantan_agents.lab.evaluation.dataset.case import Case
from kantan_agents.lab.evaluation.dataset.located_cases import REFERENCES, LocatedCases, without_input
from kantan_agents.lab.evaluation.dataset.separated import Table, read_table
from kantan_agents.support.nearest import nearest

_PLAIN: Final = ("id", "input", "expected", "conversation")
_GROUPS: Final = ("context", "metadata")
_LISTED: Final = "input, expected, id, conversation, context.NAME and metadata.NAME"
_USE_JSONL: Final = "save it as .jsonl"
_SEPARATORS: Final = {".csv": (",", ";", "\t"), ".tsv": ("\t",)}
SUFFIXES: Final = tuple(_SEPARATORS)


def read_csv(path: Path, text: str) -> list[Case]:
    """Return the cases in CSV text with a header."""
    found = LocatedCases(path)
    table = read_table(found, text, ("input",), separators=_SEPARATORS[path.suffix.lower()])
    if table is None:
        raise found.error(None, f"it has no header; its columns are {_LISTED}")
    columns = _checked_columns(found, table)
    for line, row in table.rows:
        found.add(line, _values(found, line, columns, row))
    return found.cases


def _checked_columns(found: LocatedCases, table: Table) -> list[str]:
    columns = ["expected" if column in REFERENCES else column for column in table.columns]
    if "input" not in columns:
        raise found.error(table.line, without_input(columns))
    for column in columns:
        group, _, name = column.partition(".")
        if column not in _PLAIN and not (group in _GROUPS and name):
            near = nearest(column, _PLAIN)
            hint = f"the columns are {_LISTED}" if near is None else f"did you mean {near!r}?"
            raise found.error(table.line, f"the column {column!r} is unknown; {hint}")
        if columns.count(column) > 1:
            raise found.error(table.line, f"the column {column!r} occurs twice")
    return columns


def _values(
    found: LocatedCases, line: int, columns: Sequence[str], row: Mapping[str, str | None]
) -> dict[str, Any]:
    values: dict[str, Any] = {group: {} for group in _GROUPS}
    for column, cell in zip(columns, row.values(), strict=True):
        group, _, name = column.partition(".")
        if cell and name:
            values[group][name] = cell
        elif cell:
            values[column] = cell
    if "input" not in values:
        raise found.error(line, "the input is empty")
    return values


def to_csv(path: Path, cases: Sequence[Case]) -> bytes:
    """Return cases as CSV in UTF-8."""
    rows = [_row(path, case) for case in cases]
    columns = [*_PLAIN, *sorted({column for row in rows for column in row} - {*_PLAIN})]
    written = io.StringIO(newline="")
    # Python before 3.13 does not quote a carriage return, and then reads it as the end of a row.
    has_return = any("\r" in value for row in rows for value in (*row, *row.values()))
    quoting: Literal[0, 1] = csv.QUOTE_ALL if has_return else csv.QUOTE_MINIMAL
    writer = csv.DictWriter(
        written,
        columns,
        restval="",
        delimiter=_SEPARATORS[path.suffix.lower()][0],
        lineterminator="\n",
        quoting=quoting,
    )
    writer.writeheader()
    writer.writerows(rows)
    try:
        return written.getvalue().encode()
    except UnicodeEncodeError as error:
        raise DatasetFileError(path=str(path), reason=f"a text is not valid Unicode; {_USE_JSONL}") from error


def _row(path: Path, case: Case) -> Mapping[str, str]:
    values: dict[str, Any] = {"id": case.id, "input": case.input}
    if case.expected is not None:
        values["expected"] = case.expected
    if case.conversation is not None:
        values["conversation"] = case.conversation
    if case.earlier:
        values["earlier"] = case.earlier  # not a string
    for group, entries in (("context", case.context), ("metadata", case.metadata)):
        values |= {f"{group}.{name}": value for name, value in entries.items()}
    for reason in _obstacles(values):
        raise DatasetFileError(path=str(path), reason=f"the case {case.id!r}: {reason}; {_USE_JSONL}")
    return values


def _obstacles(values: Mapping[str, Any]) -> Iterable[str]:
    """Yield why values would not survive a round trip."""
    for column, value in values.items():
        if not isinstance(value, str):
            yield f"{column} is not a text, and a CSV file has only texts"
        elif not value:
            yield f"{column} is an empty text, and an empty cell is a missing value"
        elif "\0" in value:
            yield f"{column} has a NUL character, which older readers of CSV refuse"
        elif column != column.strip() or column.endswith("."):
            yield f"the name {column!r} cannot be a column"
