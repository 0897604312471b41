"""Rows for CSV and data frames."""

from __future__ import annotations

import csv
import io
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.experiment.flat_rows import Row, Tabular, csv_of, flat


@attrs.frozen
class Table(Tabular):
    """Two rows, of which one has another column."""

    def rows(self) -> list[Row]:
        """Return them."""
        return [{"a": 1, "b": "x"}, {"a": 2, "c": None}]


def test_names_are_those_of_json() -> None:
    data = {"id": "c", "scores": {"kind": {"value": 1.0}}, "calls": [{"x": 1}], "output": {"y": "日本"}}
    assert flat(data, texts=("output",)) == {
        "id": "c",
        "scores.kind.value": 1.0,
        "calls": '[{"x": 1}]',
        "output": '{"y": "日本"}',
    }


def test_a_row_without_a_column_has_an_empty_cell() -> None:
    assert Table().to_csv() == '"a","b","c"\n1,"x",""\n2,"",""\n'


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\rx", " =1", "\n=1", "\uff1d1", "-5"])
def test_no_spreadsheet_takes_a_text_for_a_formula(text: str) -> None:
    (header, row) = csv.reader(io.StringIO(csv_of([{text: text}]), newline=""))
    assert header == row == [f"'{text}"]


def test_numbers_are_numbers() -> None:
    assert csv_of([{"a": -0.5, "b": True, "c": None}]).splitlines()[1] == '-0.5,True,""'


@given(st.lists(st.lists(st.text(), min_size=2, max_size=2), max_size=4))
def test_any_text_can_be_read_back(rows: list[list[str]]) -> None:
    written = csv_of([dict(zip("ab", row, strict=True)) for row in rows])
    written.encode()
    read = list(csv.reader(io.StringIO(written, newline="")))[1:]
    assert [[cell.removeprefix("'") for cell in row] for row in read] == [
        [cell.replace("\0", "\ufffd").removeprefix("'") for cell in row] for row in rows
    ]


def test_without_pandas_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(InvalidOptionError, match=r"needs pandas: python -m pip install pandas; or use rows"):
        Table().to_frame()


def test_with_pandas_it_is_a_data_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pandas:
        """Stands for pandas, which is not installed here."""

        @staticmethod
        def DataFrame(rows: Any) -> Any:
            return ("frame", rows)

    monkeypatch.setitem(__import__("sys").modules, "pandas", Pandas)
    assert Table().to_frame() == ("frame", Table().rows())
