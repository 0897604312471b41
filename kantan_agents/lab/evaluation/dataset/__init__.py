"""Datasets: cases from files and from recorded runs."""

from kantan_agents.lab.evaluation.dataset.case import Case
from kantan_agents.lab.evaluation.dataset.dataset import Dataset, SealedDataset, Split

__all__ = ["Case", "Dataset", "SealedDataset", "Split"]
