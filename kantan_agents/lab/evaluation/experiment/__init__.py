"""Runs agents on the cases of a dataset, and keeps the results in the trace database."""

from kantan_agents.lab.evaluation.experiment.evaluate import evaluate, evaluate_async
from kantan_agents.lab.evaluation.experiment.evaluation import Evaluation
from kantan_agents.lab.evaluation.experiment.progress import Progress
from kantan_agents.lab.evaluation.experiment.results import CaseResult, VariantResults

__all__ = ["CaseResult", "Evaluation", "Progress", "VariantResults", "evaluate", "evaluate_async"]
