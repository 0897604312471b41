"""Evaluators, which score the run of a case."""

from kantan_agents.lab.evaluation.evaluators.evaluator import Evaluator, as_evaluator, evaluator
from kantan_agents.lab.evaluation.evaluators.figures import cost, latency, tokens
from kantan_agents.lab.evaluation.evaluators.judged import judged
from kantan_agents.lab.evaluation.evaluators.outputs import contains, exact, json_fields, matches
from kantan_agents.lab.evaluation.evaluators.pairwise import (
    PairwiseJudge,
    PairwiseVerdict,
    Preference,
    pairwise,
)
from kantan_agents.lab.evaluation.evaluators.schemas import valid
from kantan_agents.lab.evaluation.evaluators.status import status
from kantan_agents.lab.evaluation.evaluators.texts import chrf, normalized, rouge_l, similar
from kantan_agents.lab.evaluation.evaluators.tool_use import ExpectedCall, call, not_used, used_tools

__all__ = [
    "Evaluator",
    "ExpectedCall",
    "PairwiseJudge",
    "PairwiseVerdict",
    "Preference",
    "as_evaluator",
    "call",
    "chrf",
    "contains",
    "cost",
    "evaluator",
    "exact",
    "json_fields",
    "judged",
    "latency",
    "matches",
    "normalized",
    "not_used",
    "pairwise",
    "rouge_l",
    "similar",
    "status",
    "tokens",
    "used_tools",
    "valid",
]
