"""Datasets of tables with any columns, data frames, and exports of other tools."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.errors import DatasetFileError, InvalidOptionError
from kantan_agents.lab import Case, Dataset, import_dataset

FAQ = {"question": "input", "answer": "expected"}


def file(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def reason_for(path: Any, **options: Any) -> str:
    """Return what is said about a file that cannot be imported."""
    with pytest.raises(DatasetFileError) as caught:
        import_dataset(path, **options)
    return caught.value.reason


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_of_a_table_is_found(separator: str, tmp_path: Path) -> None:
    text = f'\ufeffquestion{separator}answer{separator}topic\r\n"a,b;c\td|e"{separator}1{separator}\r\n'
    (case,) = import_dataset(file(tmp_path, "faq.csv", text), columns=FAQ)
    assert case == Case("a,b;c\td|e", expected="1")


@given(
    st.lists(st.tuples(st.text('a,;|x \n"', min_size=1), st.text("a,;|x")), min_size=1),
    st.sampled_from(",;\t|"),
)
def test_what_a_spreadsheet_writes_is_read_or_refused_and_never_read_wrongly(
    rows: list[tuple[str, str]], separator: str
) -> None:
    import csv
    import io
    import tempfile

    written = io.StringIO(newline="")
    csv.writer(written, delimiter=separator).writerows([("question", "answer"), *rows])
    inputs = [one for one, other in rows if (one + other).strip()]
    with tempfile.TemporaryDirectory() as folder:
        path = file(Path(folder), "t.csv", written.getvalue())
        if len({*rows}) < len(rows) or not inputs:
            return  # two cases with one id, or no rows at all
        found = import_dataset(path, columns=FAQ)
    wanted = [(one, other or None) for one, other in rows if (one + other).strip()]
    assert [(case.input, case.expected) for case in found] == wanted


def test_a_separator_is_not_guessed(tmp_path: Path) -> None:
    path = file(tmp_path, "t.csv", "input;x,y\n1;2,3\n")
    (case,) = import_dataset(path)  # only one separator gives a column input
    assert case.metadata == {"x,y": "2,3"}
    path = file(tmp_path, "t.csv", "input,x;input\n1,2;3\n")
    assert "',' and ';' both give a table; say which separates the cells: separator=','" in reason_for(path)
    assert import_dataset(path, separator=";").cases[0].input == "3"


def test_a_table_with_one_column_and_one_that_names_its_separator_are_read(tmp_path: Path) -> None:
    assert (
        import_dataset(file(tmp_path, "t.csv", "input\nHello, you; there\n")).cases[0].input
        == "Hello, you; there"
    )
    assert import_dataset(file(tmp_path, "t.csv", "sep=;\ninput;x\na,b;c\n")).cases[0].input == "a,b"


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        (
            "question;answer\na;b;c\n",
            {"columns": FAQ},
            "line 2: it has 3 cells, and the header has 2",
        ),
        (
            "question;answer\na;b\n",
            {},
            'say which column is the input, such as columns={"question": "input"}',
        ),
        (
            "question;answer\na;b\n",
            {"columns": {"questoin": "input"}},
            "no column 'questoin'; did you mean 'question'?",
        ),
        (
            "input;ideal;target\na;b;c\n",
            {},
            "line 2: two columns are expected; leave one out: columns={'target': None}",
        ),
        ("input;x\n;b\n", {}, "line 2: the input is empty"),
        ("input;x;x\na;b;c\n", {}, "line 1: the column 'x' occurs twice"),
        ("input;;x\na;b;c\n", {}, "line 1: a column has no name"),
        ("input;id\na;1\nb;1\n", {}, "line 3: the id '1' is also in line 2"),
        ("", {}, "it has no rows"),
        ("input;x\n", {}, "it has no rows"),
        ('input;x\n"a;b\n', {}, "it is not CSV that can be read"),
    ],
)
def test_a_table_that_is_wrong_is_refused_with_its_line(
    text: str, options: Mapping[str, Any], says: str, tmp_path: Path
) -> None:
    assert says in reason_for(file(tmp_path, "t.csv", text), **options)


def test_columns_are_parts_of_cases_and_others_are_metadata(tmp_path: Path) -> None:
    row = {"q": "Hi", "name": "Ada", "n": 7, "topic": "x", "old": 1, "context": {"a": 1}, "id": 3}
    path = file(tmp_path, "t.jsonl", json.dumps(row) + "\n\n")
    columns = {"q": "input", "name": "context.name", "old": None}
    (case,) = import_dataset(path, columns=columns)
    assert case == Case("Hi", id="3", context={"a": 1, "name": "Ada"}, metadata={"n": 7, "topic": "x"})
    again = tmp_path / "saved.jsonl"
    import_dataset(path, columns=columns).save(again)
    assert Dataset.load(again).cases == (case,)


@pytest.mark.parametrize("content", ['[{"input": "a"}]', '{"data": [{"input": "a"}]}', '{"input": "a"}'])
def test_json_has_rows_in_a_list(content: str, tmp_path: Path) -> None:
    assert [case.input for case in import_dataset(file(tmp_path, "t.json", content))] == ["a"]
    assert "row 1: it is 7, and not an object" in reason_for(file(tmp_path, "t.json", "[7]"))
    row = {"input": "a", "data": {"x": [1]}, "rows": [{"input": "b"}]}
    for name in ("t.json", "t.jsonl"):
        assert import_dataset(file(tmp_path, name, json.dumps(row))).cases[0].metadata["data"] == {"x": [1]}
    assert "it is not JSON" in reason_for(file(tmp_path, "t.jsonl", "{"))


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    assert "its name must end in .csv, .tsv, .txt, .jsonl, .json, .yaml, .yml or .parquet" in reason_for(
        tmp_path / "t.xlsx"
    )
    assert "No such file" in reason_for(tmp_path / "t.csv")
    assert "it is UTF-16" in reason_for(file(tmp_path, "t.csv", "input\na\n".encode("utf-16")))


def test_parquet_needs_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "a Parquet file needs pyarrow: python -m pip install pyarrow" in reason_for(
        file(tmp_path, "t.parquet", "x")
    )


class NAType:
    """What pandas has where a value is missing."""


class PandasFrame:
    """As much of a frame of pandas as is used."""

    columns = ("question", "score", "day", "tags", "id")

    def to_dict(self, orient: str) -> list[dict[str, Any]]:
        assert orient == "records"
        day, tags = date(2026, 1, 2), np.array(["a", "b"])
        return [
            {"question": "Hi", "score": np.float64(0.5), "day": day, "tags": tags, "id": 7.0},
            {"question": "Ho", "score": float("nan"), "day": NAType(), "tags": None, "id": np.int64(8)},
        ]


class PolarsFrame:
    """As much of a frame of polars as is used."""

    def to_dicts(self) -> list[dict[str, Any]]:
        return PandasFrame().to_dict(orient="records")


@pytest.mark.parametrize("source", [PandasFrame(), PolarsFrame(), PolarsFrame().to_dicts()])
def test_a_data_frame_is_read_without_its_library(source: Any) -> None:
    first, second = import_dataset(source, columns={"question": "input"}, name="faq")
    assert first == Case("Hi", id="7", metadata={"score": 0.5, "day": "2026-01-02", "tags": ["a", "b"]})
    assert second == Case("Ho", id="8")


def test_columns_of_a_frame_may_be_numbers() -> None:
    assert import_dataset([{0: "Hi", 1: "x"}], columns={0: "input"}).cases == (  # type: ignore[dict-item]
        Case("Hi", metadata={"1": "x"}),
    )


def test_what_is_no_table_is_refused() -> None:
    for source in (7, [1], {"input": "x"}, None):
        with pytest.raises(InvalidOptionError, match="source: must be a file, a data frame or rows as dicts"):
            import_dataset(source)
    for options in (
        *({"format": "x"}, {"separator": ";;"}, {"columns": {"a": "inptu"}}, {"columns": ["a"]}),
        *({"separator": '"'}, {"separator": "\r"}),
        {"format": "langfuse", "columns": {"input": "input", "a": "expected"}},
    ):
        with pytest.raises(InvalidOptionError):
            import_dataset([{"input": "a"}], **options)
    with pytest.raises(DatasetFileError, match="row 2: the input is empty"):
        import_dataset([{"input": "a"}, {"input": None}])


ITEM = {
    "id": "i1", "status": "ACTIVE", "input": {"question": "Hi", "lang": "en"}, "expectedOutput": {"a": 1},
    "metadata": {"topic": "x"}, "sourceTraceId": "t1", "sourceObservationId": None, "datasetId": "d",
    "datasetName": "faq", "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z",
}  # fmt: skip


def test_items_of_langfuse_are_read_from_its_api_and_from_its_csv(tmp_path: Path) -> None:
    wanted = Case(
        "Hi",
        id="i1",
        context={"lang": "en"},
        expected={"a": 1},
        metadata={"topic": "x", "source_trace_id": "t1"},
    )
    answer = {"data": [ITEM, {**ITEM, "id": "i2", "status": "ARCHIVED"}], "meta": {"page": 1}}
    columns = {"question": "input"}
    path = file(tmp_path, "items.json", json.dumps(answer))
    assert import_dataset(path, format="langfuse", columns=columns).cases == (wanted,)
    cells = [
        "i1",
        json.dumps(ITEM["input"]),
        json.dumps(ITEM["expectedOutput"]),
        json.dumps(ITEM["metadata"]),
        "t1",
    ]
    row = ",".join('"' + cell.replace('"', '""') + '"' for cell in cells)
    path = file(tmp_path, "items.csv", f"id,input,expected_output,metadata,source_trace_id\n{row}\n")
    assert import_dataset(path, format="langfuse", columns=columns).cases == (wanted,)
    assert "say which of 'question', 'lang' is the input" in reason_for(path, format="langfuse")


@pytest.mark.parametrize(
    ("given", "becomes"),
    [
        ("Hi", "Hi"),
        ([{"role": "user", "content": "Hi"}], [{"role": "user", "content": "Hi"}]),
        ({"q": "Hi"}, "Hi"),
        ("[1, 2]", "[1, 2]"),
        (7, "7"),
    ],
)
def test_each_kind_of_input_of_langfuse_becomes_one(given: Any, becomes: Any, tmp_path: Path) -> None:
    path = file(tmp_path, "i.jsonl", json.dumps({**ITEM, "input": given, "metadata": "note"}))
    (case,) = import_dataset(path, format="langfuse")
    assert case.input == becomes and case.metadata["langfuse"] == "note"
    assert "not an item of a Langfuse dataset" in reason_for(
        file(tmp_path, "j.jsonl", '{"a": 1}'), format="langfuse"
    )


TEST = {
    "vars": {"question": "2 + 2?", "lang": "en"}, "description": "sum", "metadata": {"topic": "math"},
    "assert": [{"type": "equals", "value": "4"}, {"type": "llm-rubric", "value": "is short"}],
}  # fmt: skip
MATH = Case(
    "2 + 2?",
    context={"lang": "en"},
    expected="4",
    metadata={
        "topic": "math", "description": "sum", "assert": [{"type": "llm-rubric", "value": "is short"}]
    },
)  # fmt: skip


def test_results_and_tests_of_promptfoo_are_read(tmp_path: Path) -> None:
    result = {
        "testIdx": 0,
        "promptIdx": 0,
        "vars": TEST["vars"],
        "testCase": TEST,
        "response": {"output": "4"},
    }
    results = {"version": 3, "results": {"results": [result, {**result, "promptIdx": 1}], "stats": {}}}
    columns = {"question": "input"}
    for name, content in (
        ("results.json", json.dumps({"evalId": "e", **results, "config": {"tests": []}})),
        ("shared.json", json.dumps({"data": results})),
        ("tests.json", json.dumps({"tests": [TEST]})),
        ("list.json", json.dumps([TEST])),
        ("rows.jsonl", "\n".join([json.dumps(result)] * 2)),
    ):
        (case,) = import_dataset(file(tmp_path, name, content), format="promptfoo", columns=columns)
        assert (case, case.metadata) == (MATH, MATH.metadata), name


def test_tests_of_promptfoo_in_another_file_are_not_cases_and_a_note_is_metadata(tmp_path: Path) -> None:
    for content in ('[{"vars": "file://v.json"}]', '{"prompts": ["p"], "tests": "file://v.json"}'):
        path = file(tmp_path, "t.json", content)
        assert "names another file, 'file://v.json'; import that one" in reason_for(path, format="promptfoo")
    path = file(tmp_path, "t.json", '[{"vars": {"q": "Hi"}, "metadata": "note"}]')
    assert import_dataset(path, format="promptfoo").cases[0].metadata == {"promptfoo": "note"}


def test_test_cases_of_promptfoo_in_a_table_are_read(tmp_path: Path) -> None:
    table = (
        "question,lang,__expected1,__expected2,__description,__metadata:topic\n"
        '2 + 2?,en,equals: 4,"llm-rubric: is short",sum,math\n'
    )
    (case,) = import_dataset(
        file(tmp_path, "t.csv", table), format="promptfoo", columns={"question": "input"}
    )
    assert (case, case.metadata) == (MATH, MATH.metadata)


@pytest.mark.parametrize(
    ("cell", "expected", "kind"),
    [
        ("4", "4", None),
        ("Note: it is 4", "Note: it is 4", None),
        ("cost", "cost", None),
        ("contains: 4", None, "contains"),
        ("is-json", None, "is-json"),
        ("not-contains: x", None, "not-contains"),
        ("similar(0.8): four", None, "similar"),
        ("javascript: output.length < 9", None, "javascript"),
    ],
)
def test_what_the_output_must_equal_is_expected_and_other_assertions_are_kept(
    cell: str, expected: str | None, kind: str | None, tmp_path: Path
) -> None:
    (case,) = import_dataset(file(tmp_path, "t.csv", f"q,__expected\nx,{cell}\n"), format="promptfoo")
    assert case.expected == expected
    assert [one["type"] for one in case.metadata.get("assert", ())] == ([kind] if kind else [])


CONFIG = """\
description: FAQ
prompts: [file://prompt.txt, "Answer {{question}}"]
providers: [openai:gpt-6.1-terra]
defaultTest:
  vars: {lang: en}
  metadata: {topic: math}
  assert: [{type: llm-rubric, value: is short}]
tests:
  - description: sum
    vars: {question: 2 + 2?}
    assert: [{type: equals, value: 4}]
  - vars: &many
      question: [a, b]
      lang: [de, no]
      day: 2026-11-30
      time: 12:30:00
    threshold: 0.5
  - vars: {<<: *many, lang: "1", question: c}
scenarios:
  - config: [vars: {lang: fr}, vars: {lang: es}]
    tests: [vars: {question: d}]
"""


def test_a_configuration_of_promptfoo_is_read_and_what_is_not_taken_over_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = file(tmp_path, "promptfooconfig.yaml", CONFIG)
    dataset = import_dataset(path, format="promptfoo", columns={"question": "input"})
    first, *others = dataset.cases
    assert (first, first.metadata) == (MATH, MATH.metadata)
    assert sorted((case.input, case.context["lang"]) for case in others) == [
        ("a", "de"), ("a", "no"), ("b", "de"), ("b", "no"), ("c", "1"), ("d", "es"), ("d", "fr"),
    ]  # fmt: skip
    assert others[0].context == {"lang": "de", "day": "2026-11-30", "time": "12:30:00"}
    assert others[0].metadata["assert"] == [{"type": "llm-rubric", "value": "is short"}]
    assert "prompts, providers" in str(vars(caplog.records[0]))
    assert "threshold" in str(vars(caplog.records[1]))


DEFAULT = "defaultTest: {vars: {q: z}, assert: [{type: x}]}\n"


@pytest.mark.parametrize(
    ("text", "inputs", "assertions"),
    [
        ("scenarios: [config: [vars: {q: a}, vars: {q: b}]]", ["a", "b"], [None, None]),
        (f"{DEFAULT}tests: [{{assert: }}]", ["z"], [[{"type": "x"}]]),
        (f"{DEFAULT}tests: [{{vars: , assert: {{type: y}}}}]", ["z"], [[{"type": "x"}, {"type": "y"}]]),
        (f"{DEFAULT}tests: [options: {{disableDefaultAsserts: true}}]", ["z"], [None]),
        ("- {vars: {q: a}, assert: [file://a.yaml, 5]}", ["a"], [["file://a.yaml", 5]]),
        ("- {vars: {q: -.INF}}", ["-inf"], [None]),
    ],
)
def test_what_a_test_inherits_is_that_of_promptfoo_and_no_assertion_is_lost(
    text: str, inputs: list[str], assertions: list[Any], tmp_path: Path
) -> None:
    cases = import_dataset(file(tmp_path, "c.yaml", text), format="promptfoo").cases
    assert [case.input for case in cases] == inputs
    assert [case.metadata.get("assert") for case in cases] == assertions


def test_tests_of_promptfoo_with_the_same_variables_are_separate_cases(tmp_path: Path) -> None:
    tests = [{"vars": {"q": "a"}, "assert": [one]} for one in ("x", "y", "y")]
    results = [{"response": {}, "vars": one["vars"], "testCase": one} for one in tests[:2] * 2]
    for name, rows, expected in (("t.json", tests, ["x", "y", "y"]), ("r.json", results, ["x", "y"])):
        dataset = import_dataset(file(tmp_path, name, json.dumps(rows)), format="promptfoo")
        first = dataset.cases[0].id
        assert [case.metadata["assert"] for case in dataset] == [[one] for one in expected]
        assert [case.id for case in dataset] == [first, f"{first}-2", f"{first}-3"][: len(expected)]
        dataset.save(tmp_path / "saved.jsonl")
        assert Dataset.load(tmp_path / "saved.jsonl").cases == dataset.cases


def test_a_list_of_tests_is_expanded_in_every_form_and_the_number_is_that_of_its_place(
    tmp_path: Path,
) -> None:
    tests: list[dict[str, Any]] = [{"vars": {"q": ["a", "b"]}}, {"vars": {"q": "c"}}]
    lines = "\n\n".join(map(json.dumps, tests))
    for name, text in (("t.json", json.dumps(tests)), ("t.yml", json.dumps(tests)), ("t.jsonl", lines)):
        cases = import_dataset(file(tmp_path, name, text), format="promptfoo").cases
        assert [case.input for case in cases] == ["a", "b", "c"]
    off = {**tests[0], "options": {"disableVarExpansion": True}}
    assert "input must be" in reason_for(file(tmp_path, "o.json", json.dumps(off)), format="promptfoo")
    path = file(tmp_path, "l.jsonl", f'{lines}\n{{"vars": {{"q": ""}}}}')
    assert reason_for(path, format="promptfoo") == "line 4: the input is empty"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tests: [{vars: {q: a}", "line 2: it is not YAML: did not find"),
        ("tests:\n- vars: {q: a, q: b}", "line 2: the key 'q' is there twice"),
        ("tests: [vars: {q: !!python/object/apply:os.getcwd []}]", "os.getcwd' is not data that JSON has"),
        ("tests: [vars: {q: !env HOME}]", "line 1: '!env' is not data that JSON has"),
        ("tests: [vars: {? [a] : b}]", "a key is not a text"),
        ("tests: [vars: {<<: 1}]", "<< must name a mapping"),
        ("tests: &a [vars: {q: *a}]", "nested more than 200 levels"),
        ("a: 1\n---\nb: 2\nc: 3", "line 2: it is not YAML: but found another document"),
        ("tests:\n- vars:\n    <<:\n    - 1\n    - 2\nx: 1", "line 4: << must name a mapping"),
        ("a: 1\n?\n  - b\n  - c\n: 1", "line 3: a key is not a text"),
        ("[" * 300, "nested more than 200 levels"),
        ("tests: file://tests.csv", "'tests' names another file, 'file://tests.csv'; import that one"),
        ("tests:\n- vars: {q: a}\n- file://t.yaml", "row 2: 'tests' names another file"),
        (
            "- vars: {q: file://long.txt}",
            "row 1: the variable 'q' is in another file, 'file://long.txt'; write",
        ),
        (
            "- {vars: {q: a}, assert: [{type: equals, value: file://x.txt}]}",
            "the value of equals is in another",
        ),
        (
            "tests: [{path: file://t.py, config: {a: 1}}]",
            "row 1: 'tests' names another file, 'file://t.py'; import that one",
        ),
        ("- vars: [file://v.yaml]", "'vars' names another file, ['file://v.yaml']"),
        ("- vars: {q: [-.INF]}\n  a: !!float x", "'x' is not a number that can be read"),
        (
            "defaultTest: file://d.yaml\ntests: []",
            "'defaultTest' names another file, 'file://d.yaml'; write its content",
        ),
        ("tests: [7]", "row 1: tests must be objects, not 7"),
        (f"tests: [vars: {{a: &a {list(range(101))}, b: *a}}]", "more than 10,000 combinations"),
        (
            "x: &a [" + "1," * 999 + "]\ny: &b [" + "*a," * 999 + "]\nz: [*b, *b]",
            "more than 1,000,000 values",
        ),
        ("", "row 1: it is None"),
    ],
)
def test_a_configuration_that_cannot_be_read_says_where_and_why(text: str, says: str, tmp_path: Path) -> None:
    assert says in reason_for(file(tmp_path, "c.yml", text), format="promptfoo")


def test_types_in_yaml_are_those_of_json_and_nothing_else_becomes_another_value(tmp_path: Path) -> None:
    values = "[no, y, 0o10, 0x1F, 1_000, 1e3, '1', ~, true, 1:30, .5, !!str 7, 007]"
    path = file(tmp_path, "rows.yaml", f"- input: Hi\n  values: {values}\n")
    assert import_dataset(path).cases[0].metadata["values"] == [
        "no", "y", 8, 31, "1_000", 1000.0, "1", None, True, "1:30", 0.5, "7", 7,
    ]  # fmt: skip
