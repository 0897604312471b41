"""``HeldOutDataset``: a test set that can only be read after it was opened with a reason."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.errors import DatasetFileError, HeldOutDatasetError, InvalidOptionError
from kantan_agents.lab import Case, Dataset, HeldOutDataset

CASES = [Case("one", id="1"), Case("two", id="2", expected="2")]


@pytest.fixture
def sealed() -> HeldOutDataset:
    return HeldOutDataset(Dataset("support-test", CASES))


def test_size_name_and_hash_can_be_read(sealed: HeldOutDataset) -> None:
    assert (len(sealed), sealed.name) == (2, "support-test")
    assert sealed.hash == Dataset("d", CASES).hash
    assert repr(sealed) == "<HeldOutDataset 'support-test', 2 cases>"


READS: list[Callable[[Any], Any]] = [
    list,
    lambda sealed: sealed.cases,
    lambda sealed: sealed["1"],
    lambda sealed: "1" in sealed,
    lambda sealed: [case.input for case in sealed],
]


@pytest.mark.parametrize("read", READS)
def test_reading_cases_is_an_error_that_says_how_to_open_it(sealed: HeldOutDataset, read: Any) -> None:
    with pytest.raises(HeldOutDatasetError, match=r"E106\].*'support-test' is held out: .*\.open\(reason\)"):
        read(sealed)


def test_opening_it_returns_the_dataset_and_logs_the_reason(
    sealed: HeldOutDataset, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "kantan_agents"):
        assert [*sealed.open("final evaluation of v2")] == CASES
    (record,) = caplog.records
    assert (record.name, record.getMessage()) == ("kantan_agents.evaluation", "test set opened")
    said = vars(record)
    assert (said["dataset"], said["cases"], said["reason"]) == ("support-test", 2, "final evaluation of v2")
    assert said["hash"] == sealed.hash


@pytest.mark.parametrize("reason", ["", " ", None])
def test_opening_it_needs_a_reason(sealed: HeldOutDataset, reason: Any) -> None:
    with pytest.raises(InvalidOptionError, match="reason"):
        sealed.open(reason)


def test_a_file_stays_sealed(sealed: HeldOutDataset, tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    sealed.save(path)
    with pytest.raises(
        HeldOutDatasetError, match=r"E106\].*'support-test' is held out: load it with HeldOutDataset"
    ):
        Dataset.load(path)
    loaded = HeldOutDataset.load(path)
    assert (loaded.name, loaded.hash, len(loaded)) == (sealed.name, sealed.hash, 2)
    assert [*loaded.open("a test")] == CASES
    written = path.read_bytes()
    loaded.save(path)
    assert path.read_bytes() == written


def test_a_checkout_with_other_line_ends_is_the_same_test_set(sealed: HeldOutDataset, tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    sealed.save(path)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert HeldOutDataset.load(path).hash == sealed.hash


def test_a_test_set_that_was_changed_is_refused(sealed: HeldOutDataset, tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    sealed.save(path)
    lines = path.read_text().splitlines(keepends=True)
    for changed in (lines[:-1], [*lines, '{"input": "new"}\n'], [line.replace("two", "2") for line in lines]):
        path.write_text("".join(changed))
        with pytest.raises(DatasetFileError, match=r"E100.*changed after it was held out"):
            HeldOutDataset.load(path)
        with pytest.raises(DatasetFileError, match=r"E100.*changed after it was held out"):
            Dataset.load(path)


@pytest.mark.parametrize("lines", [[1, 0, 2], [0, 0, 1, 2]])
def test_a_damaged_seal_is_refused(sealed: HeldOutDataset, tmp_path: Path, lines: list[int]) -> None:
    path = tmp_path / "test.jsonl"
    sealed.save(path)
    written = path.read_text().splitlines(keepends=True)
    path.write_text("".join(written[line] for line in lines))
    with pytest.raises(DatasetFileError, match="line 2: it is a damaged first line of a held-out test set"):
        HeldOutDataset.load(path)


def test_only_a_sealed_file_is_a_sealed_dataset(sealed: HeldOutDataset, tmp_path: Path) -> None:
    Dataset("d", CASES).save(tmp_path / "open.jsonl")
    with pytest.raises(DatasetFileError, match=r"it is not held out; read it with Dataset\.load"):
        HeldOutDataset.load(tmp_path / "open.jsonl")
    for use in (sealed.save, HeldOutDataset.load):
        with pytest.raises(DatasetFileError, match=r"a held-out test set is a \.jsonl file"):
            use(tmp_path / "test.csv")
