"""Datasets: cases from files and from recorded runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kantan_agents.support.package_names import lazy_names

if TYPE_CHECKING:
    from kantan_agents.lab.evaluation.dataset.case import Case
    from kantan_agents.lab.evaluation.dataset.dataset import Dataset, HeldOutDataset, Split
    from kantan_agents.lab.evaluation.dataset.diff import ChangedCase, DatasetDiff
    from kantan_agents.lab.evaluation.dataset.importing.import_dataset import import_dataset

__all__ = ["Case", "ChangedCase", "Dataset", "DatasetDiff", "HeldOutDataset", "Split", "import_dataset"]

# Reading an evaluation needs no dataset.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kantan_agents.lab.evaluation.dataset.case": ("Case",),
        "kantan_agents.lab.evaluation.dataset.dataset": ("Dataset", "HeldOutDataset", "Split"),
        "kantan_agents.lab.evaluation.dataset.diff": ("ChangedCase", "DatasetDiff"),
        "kantan_agents.lab.evaluation.dataset.importing.import_dataset": ("import_dataset",),
    },
)
