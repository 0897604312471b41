"""Evaluates agents on datasets, compares the results, and measures judges with human labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kantan_agents.support.extras import require_extra
from kantan_agents.support.package_names import lazy_names

require_extra("lab")

if TYPE_CHECKING:
    from kantan_agents.lab.evaluation.comparing import (
        Comparison,
        Comparisons,
        MetricComparison,
        PassesAll,
        compare,
        compare_all,
        passes_all,
        preferred,
    )
    from kantan_agents.lab.evaluation.dataset import (
        Case,
        ChangedCase,
        Dataset,
        DatasetDiff,
        HeldOutDataset,
        Split,
        import_dataset,
    )
    from kantan_agents.lab.evaluation.evaluators import Evaluator, evaluator
    from kantan_agents.lab.evaluation.experiment.evaluating import evaluate, evaluate_async
    from kantan_agents.lab.evaluation.experiment.evaluation import Evaluation
    from kantan_agents.lab.evaluation.experiment.results import CaseResult, VariantResults
    from kantan_agents.lab.evaluation.experiment.work import Progress
    from kantan_agents.lab.evaluation.finished_case import FinishedCase
    from kantan_agents.lab.evaluation.labels import (
        CorrectedComparison,
        CorrectedScore,
        JudgeQuality,
        Label,
        LabelAgreement,
        LabelItem,
        LabelledItem,
        LabelQueue,
        LabelScale,
        Measure,
        add_label,
        agreement,
        corrected_compare,
        corrected_score,
        judge_quality,
        labels_of,
        remove_label,
    )
    from kantan_agents.lab.evaluation.report import write_report, write_report_of_all
    from kantan_agents.lab.evaluation.scores import Score
    from kantan_agents.lab.evaluation.simulation import SimulatedUser, goal_met, simulated
    from kantan_agents.lab.experiment.tool_use import ToolUse

__all__ = [
    "Case",
    "CaseResult",
    "ChangedCase",
    "Comparison",
    "Comparisons",
    "CorrectedComparison",
    "CorrectedScore",
    "Dataset",
    "DatasetDiff",
    "Evaluation",
    "Evaluator",
    "FinishedCase",
    "HeldOutDataset",
    "JudgeQuality",
    "Label",
    "LabelAgreement",
    "LabelItem",
    "LabelQueue",
    "LabelScale",
    "LabelledItem",
    "Measure",
    "MetricComparison",
    "PassesAll",
    "Progress",
    "Score",
    "SimulatedUser",
    "Split",
    "ToolUse",
    "VariantResults",
    "add_label",
    "agreement",
    "compare",
    "compare_all",
    "corrected_compare",
    "corrected_score",
    "evaluate",
    "evaluate_async",
    "evaluator",
    "goal_met",
    "import_dataset",
    "judge_quality",
    "labels_of",
    "passes_all",
    "preferred",
    "remove_label",
    "simulated",
    "write_report",
    "write_report_of_all",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kantan_agents.lab.evaluation.comparing": (
            "Comparison",
            "Comparisons",
            "MetricComparison",
            "PassesAll",
            "compare",
            "compare_all",
            "passes_all",
            "preferred",
        ),
        "kantan_agents.lab.evaluation.dataset": (
            "Case",
            "ChangedCase",
            "Dataset",
            "DatasetDiff",
            "HeldOutDataset",
            "Split",
            "import_dataset",
        ),
        "kantan_agents.lab.evaluation.evaluators": ("Evaluator", "evaluator"),
        "kantan_agents.lab.evaluation.experiment.evaluating": ("evaluate", "evaluate_async"),
        "kantan_agents.lab.evaluation.experiment.evaluation": ("Evaluation",),
        "kantan_agents.lab.evaluation.experiment.results": ("CaseResult", "VariantResults"),
        "kantan_agents.lab.evaluation.experiment.work": ("Progress",),
        "kantan_agents.lab.evaluation.finished_case": ("FinishedCase",),
        "kantan_agents.lab.evaluation.labels": (
            "CorrectedComparison",
            "CorrectedScore",
            "JudgeQuality",
            "Label",
            "LabelAgreement",
            "LabelItem",
            "LabelledItem",
            "LabelQueue",
            "LabelScale",
            "Measure",
            "add_label",
            "agreement",
            "corrected_compare",
            "corrected_score",
            "judge_quality",
            "labels_of",
            "remove_label",
        ),
        "kantan_agents.lab.evaluation.report": ("write_report", "write_report_of_all"),
        "kantan_agents.lab.evaluation.scores": ("Score",),
        "kantan_agents.lab.experiment.tool_use": ("ToolUse",),
        "kantan_agents.lab.evaluation.simulation": ("SimulatedUser", "goal_met", "simulated"),
    },
)
