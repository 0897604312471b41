"""Rows of a file, a data frame or any other table, as JSON data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.dataset.json_data import NotJSONDataError, read_json
from kantan_agents.lab.evaluation.dataset.located_cases import LocatedCases
from kantan_agents.support.arguments import shown

Row: TypeAlias = tuple[int, Mapping[str, Any]]
TABLES: Final = (".csv", ".tsv", ".txt")
_MISSING: Final = ("NAType", "NaTType")


def rows_of_json(found: LocatedCases, path: Path, text: str) -> list[tuple[int, Any]]:
    """Return what is in a file of JSON or JSON Lines: each line, or the one value of the file, as line 1.

    Raises:
        DatasetFileError: E100, it is not JSON.
    """
    if path.suffix.lower() == ".json":
        return [(1, _read(found, 1, text))]
    lines = enumerate(text.split("\n"), 1)
    return [(number, _read(found, number, line)) for number, line in lines if line.strip()]


def listed_rows(found: LocatedCases, values: Iterable[tuple[int, Any]], *keys: str) -> list[Row]:
    """Return rows, those of a list in place of the list, each of which must be a dict.

    Args:
        found: Makes the errors.
        values: Rows, lists of rows, or dicts with such a list.
        *keys: Names that such a list may have.

    Raises:
        DatasetFileError: E100, something is no dict.
    """
    rows: list[Row] = []
    for line, value in values:
        inner = value
        while isinstance(inner, Mapping) and (key := next((one for one in keys if _holds(inner, one)), None)):
            inner = inner[key]
        several = inner if isinstance(inner, list) else [inner]
        for place, row in enumerate(several, 1):
            if not isinstance(row, Mapping):
                raise found.error(line, f"row {place} is {shown(row)}, and not an object with columns")
            rows.append((place if isinstance(inner, list) else line, row))
    return rows


def _holds(value: Mapping[str, Any], key: str) -> bool:
    return isinstance(value.get(key), (list, dict))


def rows_of_parquet(found: LocatedCases, path: Path) -> list[Row]:
    """Return the rows of a Parquet file, if pyarrow is installed.

    Raises:
        DatasetFileError: E100, it is not, or the file cannot be read.
    """
    try:
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError as error:
        reason = "a Parquet file needs pyarrow: python -m pip install pyarrow; or save it as .jsonl"
        raise found.error(None, reason) from error
    try:
        rows = parquet.read_table(path).to_pylist()
    except (OSError, ValueError) as error:  # those of pyarrow are ValueErrors
        raise found.error(None, f"it is not a Parquet file that can be read: {error}") from error
    return list(enumerate(map(plain_row, rows), 1))


def rows_of_frame(source: Any) -> list[Row]:
    """Return the rows of a data frame of pandas or polars, an Arrow table, or any iterable of dicts.

    Raises:
        InvalidOptionError: E75, it is something else.
    """
    if hasattr(source, "to_dicts"):
        rows = source.to_dicts()
    elif hasattr(source, "to_pylist"):
        rows = source.to_pylist()
    elif hasattr(source, "to_dict") and hasattr(source, "columns"):
        rows = source.to_dict(orient="records")
    else:
        rows = source
    is_listed = isinstance(rows, Iterable) and not isinstance(rows, (str, bytes, Mapping))
    listed: list[Any] = list(rows) if is_listed else [rows]
    if not is_listed or not all(isinstance(row, Mapping) for row in listed):
        reason = f"must be a file, a data frame or rows as dicts, not {shown(source)}"
        raise InvalidOptionError(option="source", reason=reason)
    return list(enumerate(map(plain_row, listed), 1))


def plain_row(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a row as JSON data where that is possible: missing values as None, dates as texts."""
    return {str(column): _plain(value) for column, value in row.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return plain_row(value)
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return None if math.isnan(value) else float(value)
    if type(value).__name__ in _MISSING:
        return None
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if hasattr(value, "tolist"):  # an array, or a number of one
        return _plain(value.tolist())
    return value


def _read(found: LocatedCases, line: int, text: str) -> Any:
    try:
        return read_json(text)
    except NotJSONDataError as error:
        raise found.error(line, str(error)) from error
