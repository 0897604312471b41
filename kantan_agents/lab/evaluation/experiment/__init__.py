"""Runs agents on the cases of a dataset, and keeps the results in the trace database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kantan_agents.support.package_names import lazy_names

if TYPE_CHECKING:
    from kantan_agents.lab.evaluation.experiment.evaluating import evaluate, evaluate_async
    from kantan_agents.lab.evaluation.experiment.evaluation import Evaluation
    from kantan_agents.lab.evaluation.experiment.progress import Progress
    from kantan_agents.lab.evaluation.experiment.results import CaseResult, VariantResults

__all__ = [
    "CaseResult",
    "Evaluation",
    "Progress",
    "VariantResults",
    "evaluate",
    "evaluate_async",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kantan_agents.lab.evaluation.experiment.evaluating": ("evaluate", "evaluate_async"),
        "kantan_agents.lab.evaluation.experiment.evaluation": ("Evaluation",),
        "kantan_agents.lab.evaluation.experiment.progress": ("Progress",),
        "kantan_agents.lab.evaluation.experiment.results": ("CaseResult", "VariantResults"),
    },
)
