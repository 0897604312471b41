"""Rows of a file, a data frame or any other table, as JSON data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
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
DATA: Final = (".jsonl", ".json", ".yaml", ".yml")
_OF_A_ROW: Final = ("input", "vars")
_MISSING: Final = ("NAType", "NaTType")


def rows_of_data(
    found: LocatedCases, path: Path, text: str, keys: Sequence[str], inside: Callable[[Any], Any] | None
) -> list[Row]:
    """Return the rows in JSON Lines, or in JSON or YAML: a list of rows, one row, or a dict around them."""
    suffix = path.suffix.lower()
    if suffix == ".jsonl":
        lines = enumerate(text.split("\n"), 1)
        rows = [(number, _read(found, number, line)) for number, line in lines if line.strip()]
    else:
        value = _read(found, 1, text) if suffix == ".json" else _read_yaml(found, text)
        rows = list(enumerate(_unwrapped(value if inside is None else inside(value), keys), 1))
    for number, row in rows:
        if isinstance(row, str) and row.startswith("file://"):
            raise found.error(number, f"it is another file, {row!r}; import that one")
        if not isinstance(row, Mapping):
            raise found.error(number, f"it is {shown(row)}, and not an object with columns")
    return rows


def _unwrapped(value: Any, keys: Sequence[str]) -> list[Any]:
    while isinstance(value, Mapping) and not any(name in value for name in _OF_A_ROW):
        inner = [value[key] for key in keys if isinstance(value.get(key), (list, dict))]
        if not inner:
            break
        value = inner[0]
    return value if isinstance(value, list) else [value]


def rows_of_parquet(found: LocatedCases, path: Path) -> list[Row]:
    """Return the rows of a Parquet file."""
    try:
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError as error:
        reason = "a Parquet file needs pyarrow: python -m pip install pyarrow; or save it as .jsonl"
        raise found.error(None, reason) from error
    try:
        rows = parquet.read_table(path).to_pylist()
    except (OSError, ValueError) as error:  # pyarrow's errors are ValueErrors
        raise found.error(None, f"it is not a Parquet file that can be read: {error}") from error
    return list(enumerate(map(plain_row, rows), 1))


def rows_of_frame(source: Any) -> list[Row]:
    """Return the rows of a data frame, an Arrow table, or dicts."""
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
    """Return JSON data, with missing values as None."""
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


def _read_yaml(found: LocatedCases, text: str) -> Any:
    from kantan_agents.lab.evaluation.dataset.importing.yaml_data import read_yaml

    try:
        return read_yaml(text)
    except NotJSONDataError as error:
        raise found.error(None, str(error)) from error


def _read(found: LocatedCases, line: int, text: str) -> Any:
    try:
        return read_json(text)
    except NotJSONDataError as error:
        raise found.error(line, str(error)) from error
