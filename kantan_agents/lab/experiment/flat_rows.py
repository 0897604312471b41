"""``Tabular``: rows for JSON, CSV and data frames."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from kantan_agents.errors import InvalidOptionError

Row = dict[str, Any]
"""Strings, numbers, bools and None by column."""

# A spreadsheet takes such a prefix for a formula.
_FORMULA: Final = re.compile(r"\s*[=+\-@\uff0b\uff0d\uff1d\uff20]|[\t\r\n]")
_NOT_IN_CSV: Final = re.compile("[\0\ud800-\udfff]")


class Tabular:
    """A value with rows."""

    __slots__ = ()

    def rows(self) -> list[Row]:
        """Return the rows, with the names of ``to_dict``: ``scores.kind.value`` is ``["scores"]["kind"]``.

        Lists are JSON strings. ``polars.DataFrame(found.rows())`` is a data frame of polars.
        """
        raise NotImplementedError

    def to_csv(self) -> str:
        """Return the rows as CSV with a header.

        Strings that a spreadsheet would take for a formula get a leading apostrophe.
        """
        return csv_of(self.rows())

    def to_frame(self) -> Any:
        """Return the rows as a ``pandas.DataFrame``.

        Raises:
            InvalidOptionError: E75, pandas is not installed.
        """
        try:
            pandas: Any = import_module("pandas")
        except ImportError as error:
            reason = "needs pandas: python -m pip install pandas; or use rows() or to_csv()"
            raise InvalidOptionError(option="to_frame", reason=reason) from error
        return pandas.DataFrame(self.rows())


def flat(data: Mapping[str, Any], texts: Iterable[str] = ()) -> Row:
    """Return JSON data as a row with dotted names."""
    whole = frozenset(texts)
    return dict(_flat(data, "", whole))


def csv_of(rows: Sequence[Row]) -> str:
    """Return rows as CSV; a missing column is an empty cell."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow([_cell(column) for column in columns])
    writer.writerows([_cell(row.get(column)) for column in columns] for row in rows)
    return written.getvalue()


def _flat(data: Mapping[str, Any], before: str, whole: frozenset[str]) -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping) and name not in whole:
            yield from _flat(value, f"{name}.", whole)
        elif isinstance(value, (Mapping, list, tuple)):
            yield name, json.dumps(value, ensure_ascii=False, default=str)
        else:
            yield name, value if isinstance(value, (str, int, float, type(None))) else str(value)


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = _NOT_IN_CSV.sub("\ufffd", value)
    return f"'{text}" if _FORMULA.match(text) else text
