"""Ready-made judges: ``judges.correctness(model=...)`` and seven more, each an evaluator."""

from kantan_agents.lab.evaluation.evaluators.judges.criteria import (
    CRITERIA,
    answer_relevance,
    context_precision,
    context_recall,
    correctness,
    groundedness,
    harmlessness,
    task_completion,
    tool_choice,
)
from kantan_agents.lab.evaluation.evaluators.judges.criterion import Criterion
from kantan_agents.lab.evaluation.evaluators.judges.verdicts import CheckedPart, Decision, Parts

__all__ = [
    "CRITERIA",
    "CheckedPart",
    "Criterion",
    "Decision",
    "Parts",
    "answer_relevance",
    "context_precision",
    "context_recall",
    "correctness",
    "groundedness",
    "harmlessness",
    "task_completion",
    "tool_choice",
]
