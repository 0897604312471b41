"""Judging: rubrics and verdicts."""

from kantan_agents.judging.judge import judge
from kantan_agents.judging.rubric import RUBRIC, Rubric, rubric_of

__all__ = ["RUBRIC", "Rubric", "judge", "rubric_of"]
