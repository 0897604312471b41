"""Imports datasets of other tools."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.dataset.dataset import Dataset
from kantan_agents.lab.evaluation.dataset.files import read_text
from kantan_agents.lab.evaluation.dataset.importing import langfuse, promptfoo
from kantan_agents.lab.evaluation.dataset.importing.columns import (
    check_header,
    checked_columns,
    inputs_of,
    values_of,
)
from kantan_agents.lab.evaluation.dataset.importing.rows import (
    DATA,
    TABLES,
    Row,
    rows_of_data,
    rows_of_frame,
    rows_of_parquet,
)
from kantan_agents.lab.evaluation.dataset.located_cases import LocatedCases
from kantan_agents.lab.evaluation.dataset.separated import read_table
from kantan_agents.support.arguments import shown

Format = Literal["rows", "langfuse", "promptfoo"]

_FORMATS: Final = {
    "rows": (("data", "rows"), values_of),
    "langfuse": (langfuse.KEYS, langfuse.langfuse_values),
    "promptfoo": (promptfoo.KEYS, promptfoo.promptfoo_values),
}
"""The keys around the rows, and the function that turns a row into a case."""


def import_dataset(
    source: Any,
    *,
    format: Format = "rows",
    columns: Mapping[str, str | None] | None = None,
    separator: str | None = None,
    name: str | None = None,
) -> Dataset:
    """Return a dataset from a table with any columns, a data frame, or an export of Langfuse or promptfoo.

        import_dataset("faq.csv", columns={"question": "input", "answer": "expected"})
        import_dataset(frame, columns={"question": "input"})
        import_dataset("items.json", format="langfuse")

    Save it afterwards, in the format that ``Dataset.load`` and the commands read. Nothing is downloaded,
    executed or used as a path.

    Args:
        source: A file with rows: ``.csv``, ``.tsv``, ``.txt``, ``.jsonl``, ``.json``, ``.yaml``, or
            ``.parquet`` with pyarrow; a data frame of pandas or polars, an Arrow table, or dicts.
        format: ``"rows"``; ``"langfuse"`` for items of a dataset, without archived ones; or ``"promptfoo"``
            for results, test cases or a configuration. Each test of promptfoo becomes one case for each
            combination of list variables, ``equals`` becomes ``expected``, and other assertions are in
            ``metadata["assert"]``. The second id of tests with the same variables ends in ``-2``. The log
            names parts that are not imported, such as prompts.
        columns: The part of a case in each column: ``"input"``, ``"expected"``, ``"id"``, ``"conversation"``,
            ``"earlier"``, ``"context.NAME"`` or ``"metadata.NAME"``; None omits it. Columns with these names
            need no entry, and all others are metadata. In an export, it names the field or variable that is
            the input, and the others are context.
        separator: The separator of cells. By default the one of comma, semicolon, tab and ``|`` that divides
            the header and gives each row as many cells; two of them are an error.
        name: Name of the dataset; by default the file name.

    Raises:
        DatasetFileError: E100, the file cannot be read or has another format, a column is missing, or the
            input is unknown. The error names the line or row.
        InvalidOptionError: E75, an argument is invalid.
    """
    if format not in _FORMATS:
        reason = f"must be one of {', '.join(_FORMATS)}, not {shown(format)}"
        raise InvalidOptionError(option="format", reason=reason)
    if separator is not None and (
        not isinstance(separator, str) or len(separator) != 1 or separator in '"\r\n'
    ):
        reason = f"must be one character, and neither a quote nor a line break, not {shown(separator)}"
        raise InvalidOptionError(option="separator", reason=reason)
    parts = checked_columns(columns)
    if format != "rows" and {*parts.values()} - {"input"}:
        reason = 'can only name the input of an export, such as {"question": "input"}'
        raise InvalidOptionError(option="columns", reason=reason)
    is_file = isinstance(source, (str, os.PathLike))
    path = Path(source) if is_file else Path("the data frame")
    is_text = is_file and path.suffix.lower() in (*TABLES, ".jsonl")
    found = LocatedCases(path, "line" if is_text else "row")
    rows = _rows(found, path, format, parts, separator) if is_file else rows_of_frame(source)
    if format == "rows":
        check_header(found, (column for _, row in rows for column in row), parts)
    elif format == "promptfoo":
        rows = promptfoo.expanded(found, rows)
    seen: set[str] = set()
    for line, row in rows:
        if format == "promptfoo" and _is_repeated(row, seen):
            continue
        values = _FORMATS[format][1](found, line, row, parts)
        if values is None:
            continue
        if values.get("input") in (None, ""):
            raise found.error(line, "the input is empty")
        found.add(line, values, may_repeat=format == "promptfoo")
    return Dataset(name or path.stem, found.cases)


def _rows(
    found: LocatedCases, path: Path, format: Format, columns: Mapping[str, str | None], separator: str | None
) -> Iterable[Row]:
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return rows_of_parquet(found, path)
    if suffix in TABLES:
        inputs = inputs_of(columns) if format == "rows" else ()
        table = read_table(found, read_text(path), inputs, separator)
        return () if table is None else table.rows
    if suffix in DATA:
        inside = partial(promptfoo.tests_of, found) if format == "promptfoo" else None
        return rows_of_data(found, path, read_text(path), _FORMATS[format][0], inside)
    raise found.error(None, f"its name must end in {', '.join((*TABLES, *DATA))} or .parquet")


def _is_repeated(row: Mapping[str, Any], seen: set[str]) -> bool:
    if "response" not in row and "testIdx" not in row:
        return False
    key = str(row.get("testIdx", (row.get("vars"), row.get("testCase"))))
    is_repeated = key in seen
    seen.add(key)
    return is_repeated
