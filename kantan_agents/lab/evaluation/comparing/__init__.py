"""Compares the scores of two variants, paired by case."""

from kantan_agents.lab.evaluation.comparing.compare import compare
from kantan_agents.lab.evaluation.comparing.comparison import Comparison, MetricComparison
from kantan_agents.lab.evaluation.comparing.preferred import preferred

__all__ = ["Comparison", "MetricComparison", "compare", "preferred"]
