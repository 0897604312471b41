"""Datasets as CSV: cells are texts, and what a cell cannot hold is refused."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.errors import DatasetFileError
from kantan_agents.lab import Case, Dataset

_CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12)
_NAMES = st.from_regex(r"[a-z][a-z .\"',]{0,6}[a-z]", fullmatch=True)
_TABLES = st.dictionaries(_NAMES, _CELLS, max_size=3)
_CASES = st.builds(
    Case,
    _CELLS,
    id=_CELLS,
    context=_TABLES,
    expected=st.none() | _CELLS,
    metadata=_TABLES,
    conversation=st.none() | _CELLS.filter(str.strip),
)


@given(st.lists(_CASES, max_size=6, unique_by=lambda case: case.id))
def test_a_dataset_of_texts_survives_a_file(cases: list[Case]) -> None:
    dataset = Dataset("d", cases)
    with tempfile.TemporaryDirectory() as folder:
        dataset.save(Path(folder, "cases.csv"))
        assert Dataset.load(Path(folder, "cases.csv")) == dataset


def test_columns_in_any_order_become_the_parts_of_a_case(tmp_path: Path) -> None:
    path = tmp_path / "cases.csv"
    path.write_bytes(
        b"\xef\xbb\xbf expected,input,context.name,metadata.a.b,id,conversation\r\n\r\n"
        b'"yes, ""really""","two\r\nlines",Ada,x,1,c1\r\n,plain,,,,\r\n,,,,,\r\n'
    )
    assert [*Dataset.load(path)] == [
        Case("two\r\nlines", "1", {"name": "Ada"}, 'yes, "really"', {"a.b": "x"}, "c1"),
        Case("plain"),
    ]


HI = Case("hi", expected="a;b, c")
WRITTEN: dict[str, tuple[str, str, list[Case]]] = {
    "semicolons": ("c.csv", 'input;expected\nhi;"a;b, c"\n', [HI]),
    "tabs": ("c.csv", "input\texpected\nhi\ta;b, c\n", [HI]),
    "tabs by name": ("c.tsv", "input\texpected\nhi\ta;b, c\n", [HI]),
    "Excel, semicolons": ("c.csv", '\ufeffinput;expected\r\nhi;"a;b, c"\r\n', [HI]),
    "the separator said": ("c.csv", "sep=|\ninput|expected\nhi|a;b, c\n", [HI]),
    "a name with a comma": ("c.csv", 'input;"metadata.a,b"\nhi;x\n', [Case("hi", metadata={"a,b": "x"})]),
    "empty columns": ("c.csv", "input,id,,\nhi,1,,\n,,,\nho,2,, \n", [Case("hi", "1"), Case("ho", "2")]),
    "no value, empty columns": ("c.csv", "input,expected,,\nhi,,,\n", [Case("hi")]),
    "ideal": ("c.csv", "input,ideal\nhi,x\n", [Case("hi", expected="x")]),
    "target": ("c.csv", "target,input\nx,hi\n", [Case("hi", expected="x")]),
    "a long cell": (
        "c.csv",
        f"input,expected\n{'a b ' * 100_000},y\n",
        [Case("a b " * 100_000, expected="y")],
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_is_read_as_spreadsheets_and_other_tools_write_it(tmp_path: Path, name: str) -> None:
    file, content, cases = WRITTEN[name]
    limit = csv.field_size_limit()
    path = tmp_path / file
    path.write_text(content, encoding="utf-8", newline="")
    assert [*Dataset.load(path)] == cases
    assert csv.field_size_limit() == limit
    Dataset("again", cases).save(path)
    assert [*Dataset.load(path)] == cases


BAD: dict[str, tuple[str, str]] = {
    "empty": ("", "it has no header; its columns are input"),
    "no input": ("expected,id\nx,1\n", "line 1: it has no input; import_dataset.path, columns=..expected"),
    "unknown column": ("input,expectd\n", "line 1: the column 'expectd' is unknown; did you mean 'expected'"),
    "foreign column": ("input,zzz\n", "line 1: the column 'zzz' is unknown; the columns are"),
    "a column without a name": ("input,,id\n", "line 1: a column has no name"),
    "semicolons without input": ("expected;id\nx;1\n", "line 1: it has no input"),
    "two references": ("input,expected,ideal\n", "line 1: the column 'expected' occurs twice"),
    "a group without a name": ("input,context.\n", "line 1: the column 'context.' is unknown"),
    "a column twice": ("input,id, input\n", "line 1: the column 'input' occurs twice"),
    "surplus cells": ("input,id\na,1\nb,2,3\n", "line 3: it has 3 cells, and the header has 2; put a cell"),
    "missing cells": ("input,id\n\na\n", "line 3: it has 1 cells, and the header has 2"),
    "no input in a row": ("input,id\n,1\n", "line 2: the input is empty"),
    "same id": ('input,id\n"a\nb",1\nc,1\n', "line 4: the id '1' is also in line 2"),
    "open quote": ('input\n"a\n', "line 2: it is not CSV that can be read"),
    "text after a quote": ('input\n"a"b\n', "line 2: it is not CSV that can be read"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_not_a_dataset_is_refused_with_the_line_and_the_reason(
    tmp_path: Path, name: str
) -> None:
    content, reason = BAD[name]
    path = tmp_path / "cases.CSV"
    path.write_text(content, encoding="utf-8", newline="")
    with pytest.raises(DatasetFileError, match=reason) as raised:
        Dataset.load(path)
    assert raised.value.code == "E100"


UNSAVABLE: dict[str, tuple[dict[str, Any], str]] = {
    "items": ({"input": [{"role": "user"}]}, "input is not a text"),
    "number": ({"context": {"a": 1}}, "context.a is not a text"),
    "empty text": ({"expected": ""}, "expected is an empty text"),
    "NUL": ({"expected": "\0"}, "expected has a NUL character"),
    "half a character": ({"expected": "\ud800"}, "not valid Unicode"),
    "name": ({"context": {"": "x"}}, "cannot be a column"),
}


@pytest.mark.parametrize("name", UNSAVABLE)
def test_what_a_cell_cannot_hold_is_refused_and_no_file_is_written(tmp_path: Path, name: str) -> None:
    values, reason = UNSAVABLE[name]
    dataset = Dataset("d", [Case(**{"input": "a", **values})])
    with pytest.raises(DatasetFileError, match=rf"E100.*{reason}.*save it as \.jsonl"):
        dataset.save(tmp_path / "cases.csv")
    assert [*tmp_path.iterdir()] == []
    dataset.save(tmp_path / "cases.jsonl")
    assert Dataset.load(tmp_path / "cases.jsonl") == dataset
