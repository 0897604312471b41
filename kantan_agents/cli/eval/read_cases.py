"""Reads the dataset of ``kantan-agents eval run``, which may be sealed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kantan_agents.errors import InvalidOptionError, SealedDatasetError
from kantan_agents.lab.evaluation import Dataset, SealedDataset

_OPTION: Final = "--unseal"


def read_cases(path: Path, reason: str | None) -> Dataset:
    """Return the dataset in a file.

    Args:
        path: The file.
        reason: Why a sealed test set is opened, which is logged; None to leave it sealed.

    Raises:
        DatasetFileError: E100, the file cannot be read, or is not a dataset.
        SealedDatasetError: E106, it is sealed, and there is no reason to open it.
        InvalidOptionError: E75, the reason is empty, or the file is not sealed.
    """
    if reason is not None and not reason.strip():
        raise InvalidOptionError(option=_OPTION, reason="must say why the test set is opened")
    try:
        dataset = Dataset.load(path)
    except SealedDatasetError as error:
        if reason is not None:
            return SealedDataset.load(path).unseal(reason)
        hint = f"keep it for the last evaluation, and then open it with {_OPTION} REASON"
        raise SealedDatasetError(dataset=error.dataset, reason=hint) from error
    if reason is not None:
        raise InvalidOptionError(option=_OPTION, reason=f"{path} is not sealed; leave the option out")
    return dataset
