"""``SealedDataset``: a test set that can only be read after it was opened with a reason."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kantan_agents.errors import DatasetFileError, InvalidOptionError, SealedDatasetError
from kantan_agents.lab import Case, Dataset, SealedDataset

CASES = [Case("one", id="1"), Case("two", id="2", expected="2")]


@pytest.fixture
def sealed() -> SealedDataset:
    return SealedDataset(Dataset("support-test", CASES))


def test_size_name_and_hash_can_be_read(sealed: SealedDataset) -> None:
    assert (len(sealed), sealed.name) == (2, "support-test")
    assert sealed.hash == Dataset("d", CASES).hash
    assert repr(sealed) == "<SealedDataset 'support-test', 2 cases>"


READS: list[Callable[[Any], Any]] = [
    list,
    lambda sealed: sealed.cases,
    lambda sealed: sealed["1"],
    lambda sealed: "1" in sealed,
    lambda sealed: [case.input for case in sealed],
]


@pytest.mark.parametrize("read", READS)
def test_reading_cases_is_an_error_that_says_how_to_open_it(sealed: SealedDataset, read: Any) -> None:
    with pytest.raises(SealedDatasetError, match=r"E106\].*'support-test' is sealed: .*\.unseal\(reason\)"):
        read(sealed)


def test_opening_it_returns_the_dataset_and_logs_the_reason(
    sealed: SealedDataset, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "kantan_agents"):
        assert [*sealed.unseal("final evaluation of v2")] == CASES
    (record,) = caplog.records
    assert (record.name, record.getMessage()) == ("kantan_agents.evaluation", "test set unsealed")
    said = vars(record)
    assert (said["dataset"], said["cases"], said["reason"]) == ("support-test", 2, "final evaluation of v2")
    assert said["hash"] == sealed.hash


@pytest.mark.parametrize("reason", ["", " ", None])
def test_opening_it_needs_a_reason(sealed: SealedDataset, reason: Any) -> None:
    with pytest.raises(InvalidOptionError, match="reason"):
        sealed.unseal(reason)


def test_a_file_stays_sealed(sealed: SealedDataset, tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    sealed.save(path)
    with pytest.raises(
        SealedDatasetError, match=r"E106\].*'support-test' is sealed: load it with SealedDataset"
    ):
        Dataset.load(path)
    loaded = SealedDataset.load(path)
    assert (loaded.name, loaded.hash, len(loaded)) == (sealed.name, sealed.hash, 2)
    assert [*loaded.unseal("a test")] == CASES
    written = path.read_bytes()
    loaded.save(path)
    assert path.read_bytes() == written


def test_a_checkout_with_other_line_ends_is_the_same_test_set(sealed: SealedDataset, tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    sealed.save(path)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert SealedDataset.load(path).hash == sealed.hash


def test_a_test_set_that_was_changed_is_refused(sealed: SealedDataset, tmp_path: Path) -> None:
    path = tmp_path / "test.jsonl"
    sealed.save(path)
    lines = path.read_text().splitlines(keepends=True)
    for changed in (lines[:-1], [*lines, '{"input": "new"}\n'], [line.replace("two", "2") for line in lines]):
        path.write_text("".join(changed))
        with pytest.raises(DatasetFileError, match=r"E100.*changed after it was sealed"):
            SealedDataset.load(path)
        with pytest.raises(DatasetFileError, match=r"E100.*changed after it was sealed"):
            Dataset.load(path)


@pytest.mark.parametrize("lines", [[1, 0, 2], [0, 0, 1, 2]])
def test_a_damaged_seal_is_refused(sealed: SealedDataset, tmp_path: Path, lines: list[int]) -> None:
    path = tmp_path / "test.jsonl"
    sealed.save(path)
    written = path.read_text().splitlines(keepends=True)
    path.write_text("".join(written[line] for line in lines))
    with pytest.raises(DatasetFileError, match="line 2: it is a damaged seal"):
        SealedDataset.load(path)


def test_only_a_sealed_file_is_a_sealed_dataset(sealed: SealedDataset, tmp_path: Path) -> None:
    Dataset("d", CASES).save(tmp_path / "open.jsonl")
    with pytest.raises(DatasetFileError, match=r"it is not sealed; read it with Dataset\.load"):
        SealedDataset.load(tmp_path / "open.jsonl")
    for use in (sealed.save, SealedDataset.load):
        with pytest.raises(DatasetFileError, match=r"a sealed test set is a \.jsonl file"):
            use(tmp_path / "test.csv")
