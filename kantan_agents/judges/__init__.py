"""Judging: which of several rules an output meets, and how well it follows the prompt it came from."""

from kantan_agents.judges.detect import detect_matched_rule, judge_status
from kantan_agents.judges.instructions import ENGLISH, JAPANESE, JudgingTemplates
from kantan_agents.judges.rubric_agent import judge_agent
from kantan_agents.judges.rules import StatusRule
from kantan_agents.judges.status_judge import StatusJudge
from kantan_agents.judges.tags import find_tag
from kantan_agents.judges.verdict import StageAttempt, StatusVerdict

__all__ = [
    "ENGLISH",
    "JAPANESE",
    "JudgingTemplates",
    "StageAttempt",
    "StatusJudge",
    "StatusRule",
    "StatusVerdict",
    "detect_matched_rule",
    "find_tag",
    "judge_agent",
    "judge_status",
]
