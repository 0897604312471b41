"""Datasets as JSON Lines: they survive a file, and a file that is not a dataset is refused with a reason."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.errors import DatasetFileError, InvalidOptionError
from kantan_agents.lab import Case, Dataset
from tests.lab.evaluation.values import case_lists, cases


@given(case_lists(cases(), 4))
def test_a_dataset_survives_a_file(drawn: list[Case]) -> None:
    dataset = Dataset("d", drawn)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cases.jsonl")
        dataset.save(path)
        loaded = Dataset.load(path)
        assert loaded == dataset
        assert loaded.hash == dataset.hash
        written = path.read_bytes()
        loaded.save(path)
        assert path.read_bytes() == written
        assert written.count(b"\n") == len(dataset)
        assert b"\r" not in written
        assert os.listdir(folder) == ["cases.jsonl"]  # noqa: PTH208


@given(st.text(st.characters(min_codepoint=0xD7F0, max_codepoint=0xE010)))
def test_half_a_character_survives_a_file_that_is_utf_8(text: str) -> None:
    dataset = Dataset("d", [Case(text, expected={text: text})])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cases.jsonl")
        dataset.save(path)
        path.read_bytes().decode("utf-8")
        assert Dataset.load(path) == dataset


def test_a_line_has_sorted_keys_readable_text_and_only_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    cases = [Case("日本語\u2028\n", id="1"), Case("b", id="2", expected={"z": 1, "a": None})]
    Dataset("d", cases).save(path)
    assert path.read_text(encoding="utf-8") == (
        '{"id": "1", "input": "日本語\u2028\\n"}\n'
        '{"expected": {"a": null, "z": 1}, "id": "2", "input": "b"}\n'
    )


def test_the_name_is_that_of_the_file_unless_it_is_given(tmp_path: Path) -> None:
    path = tmp_path / "refunds.jsonl"
    Dataset("d", [Case("q")]).save(path)
    assert Dataset.load(path).name == "refunds"
    assert Dataset.load(str(path), name="mine").name == "mine"


def test_blank_lines_a_mark_and_other_line_ends_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(b'\xef\xbb\xbf\r\n{"input": "a", "id": null}\r\n   \n{"input": "b", "context": null}')
    assert [case.input for case in Dataset.load(path)] == ["a", "b"]


def test_an_empty_file_is_an_empty_dataset(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text("\n")
    assert len(Dataset.load(tmp_path / "cases.jsonl")) == 0


@pytest.mark.parametrize("name", ["ideal", "target"])
def test_the_reference_of_other_tools_is_the_expected_output(tmp_path: Path, name: str) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps({"input": "a", name: {"b": 1}}))
    assert [*Dataset.load(path)] == [Case("a", expected={"b": 1})]


GOOD = '{"input": "a", "id": "1"}\n'
BAD: dict[str, tuple[Any, str]] = {
    "not JSON": (GOOD + "{", "line 2: it is not JSON: .* at character 2"),
    "after a blank line": (GOOD + "\n{", "line 3: "),
    "nan": (GOOD + '{"input": "a", "expected": NaN}', "line 2: NaN is not a JSON number; write null"),
    "large": ('{"input": "a", "expected": 1e999}', "line 1: the number 1e999 is too large"),
    "digits": ('{"input": "a", "expected": ' + "9" * 5000 + "}", "line 1: it is not JSON that can be read"),
    "a key twice": ('{"input": "a", "input": "b"}', "line 1: the key 'input' occurs twice"),
    "list": ("[1]", "line 1: it is a list; a case is a JSON object with an input"),
    "text": ('"a"', "line 1: it is a text; "),
    "number": ("1", "line 1: it is a number; "),
    "null": ("null", "line 1: it is a null; "),
    "no input": (
        '{"question": "Hi"}',
        "line 1: it has no input; import_dataset.path, columns=..question.: .input... reads such a file",
    ),
    "input null": ('{"input": null}', "line 1: input must be a str or a list of dicts, not None"),
    "unknown key": (
        '{"input": "a", "expectd": "b"}',
        "the key 'expectd' is unknown; did you mean 'expected'?",
    ),
    "foreign key": ('{"input": "a", "zzz": "b"}', "the key 'zzz' is unknown; put it into metadata"),
    "two references": (
        '{"input": "a", "ideal": "b", "target": "c"}',
        "line 1: it has ideal, target; keep one",
    ),
    "both names": (
        '{"input": "a", "ideal": "b", "expected": null}',
        "line 1: it has expected, ideal; keep one",
    ),
    "several answers": ('{"input": "a", "target": ["b", "c"]}', "line 1: target is a list of answers; write"),
    "id": ('{"input": "a", "id": 5}', "line 1: id must be a str, not 5"),
    "same id": (GOOD + "\n" + GOOD, "line 3: the id '1' is also in line 1; give each case its own"),
    "same content": (
        '{"input": "a"}\n{"input": "a"}',
        "line 2: .*both have the same input, .*give each an id",
    ),
    "deep": ('{"input": "a", "expected": ' + "[" * 100_000 + "]" * 100_000 + "}", "line 1: .*nested"),
    "rather deep": (
        '{"input": "a", "expected": ' + "[" * 300 + "]" * 300 + "}",
        "line 1: expected is nested",
    ),
    "not UTF-8": (GOOD.encode() + b'{"input": "\xff"}', "line 2: it is not UTF-8 .*; save it as UTF-8"),
    "UTF-16": (GOOD.encode("utf-16"), "it is UTF-16; save it as UTF-8"),
    "binary": (b"SQLite format 3\x00\xff", "line 1: it is not UTF-8"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_not_a_dataset_is_refused_with_the_line_and_the_reason(
    tmp_path: Path, name: str
) -> None:
    content, reason = BAD[name]
    path = tmp_path / "cases.jsonl"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DatasetFileError, match=reason) as raised:
        Dataset.load(path)
    assert (raised.value.code, raised.value.path) == ("E100", str(path))
    assert len(str(raised.value)) < 500
    assert "\n" not in str(raised.value)


def test_missing_files_and_directories_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.jsonl").mkdir()
    with pytest.raises(DatasetFileError, match=r"E100.*No such file"):
        Dataset.load(tmp_path / "missing.jsonl")
    with pytest.raises(DatasetFileError, match=r"E100.*directory"):
        Dataset.load(tmp_path / "folder.jsonl")
    for path in (tmp_path / "nowhere" / "cases.jsonl", tmp_path / "folder.jsonl"):
        with pytest.raises(DatasetFileError, match="E100"):
            Dataset("d").save(path)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.jsonl"]


def test_a_suffix_that_names_no_format_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "cases.json", tmp_path / "cases", tmp_path):
        with pytest.raises(DatasetFileError, match=r"ends in \.jsonl, \.csv or \.tsv"):
            Dataset.load(path)
        with pytest.raises(DatasetFileError, match=r"ends in \.jsonl, \.csv or \.tsv"):
            Dataset("d").save(path)
    with pytest.raises(InvalidOptionError):
        Dataset.load(5)  # type: ignore[arg-type]


@given(st.binary(max_size=60), st.integers(0, 200))
def test_any_damage_is_refused_or_harmless(damage: bytes, place: int) -> None:
    whole = (
        b'{"id": "1", "input": "a"}\n{"expected": [1, 2.5, null], "id": "2", "input": [{"role": "user"}]}\n'
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cases.jsonl")
        path.write_bytes(whole[:place] + damage + whole[place + len(damage) :])
        try:
            loaded = Dataset.load(path)
        except DatasetFileError:
            return
        for case in loaded:
            json.dumps(case.input, allow_nan=False)


def test_names_in_a_file_are_not_paths_and_texts_are_not_templates(tmp_path: Path) -> None:
    texts = ["../../etc/passwd", "{{ $env.HOME }}", "=1+1", "!!python/object:os.system"]
    dataset = Dataset("d", [Case(text, id=text, context={text: text}) for text in texts])
    dataset.save(tmp_path / "cases.jsonl")
    assert [case.input for case in Dataset.load(tmp_path / "cases.jsonl")] == texts
