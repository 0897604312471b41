"""Human labels of results, to compare reviewers and to correct a judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kantan_agents.support.package_names import lazy_names

if TYPE_CHECKING:
    from kantan_agents.lab.evaluation.labels.corrected_means import corrected_compare, corrected_score
    from kantan_agents.lab.evaluation.labels.corrected_values import CorrectedComparison, CorrectedScore
    from kantan_agents.lab.evaluation.labels.item import LabelItem, LabelledItem
    from kantan_agents.lab.evaluation.labels.label import Label
    from kantan_agents.lab.evaluation.labels.label_agreement import LabelAgreement, agreement
    from kantan_agents.lab.evaluation.labels.measure import Measure
    from kantan_agents.lab.evaluation.labels.quality import JudgeQuality, judge_quality
    from kantan_agents.lab.evaluation.labels.queue import LabelQueue
    from kantan_agents.lab.evaluation.labels.scale import LabelScale
    from kantan_agents.lab.evaluation.labels.stored_labels import add_label, labels_of, remove_label

__all__ = [
    "CorrectedComparison",
    "CorrectedScore",
    "JudgeQuality",
    "Label",
    "LabelAgreement",
    "LabelItem",
    "LabelQueue",
    "LabelScale",
    "LabelledItem",
    "Measure",
    "add_label",
    "agreement",
    "corrected_compare",
    "corrected_score",
    "judge_quality",
    "labels_of",
    "remove_label",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kantan_agents.lab.evaluation.labels.corrected_means": ("corrected_compare", "corrected_score"),
        "kantan_agents.lab.evaluation.labels.corrected_values": ("CorrectedComparison", "CorrectedScore"),
        "kantan_agents.lab.evaluation.labels.item": ("LabelItem", "LabelledItem"),
        "kantan_agents.lab.evaluation.labels.quality": ("JudgeQuality", "judge_quality"),
        "kantan_agents.lab.evaluation.labels.label": ("Label",),
        "kantan_agents.lab.evaluation.labels.label_agreement": ("LabelAgreement", "agreement"),
        "kantan_agents.lab.evaluation.labels.measure": ("Measure",),
        "kantan_agents.lab.evaluation.labels.queue": ("LabelQueue",),
        "kantan_agents.lab.evaluation.labels.scale": ("LabelScale",),
        "kantan_agents.lab.evaluation.labels.stored_labels": ("add_label", "labels_of", "remove_label"),
    },
)
