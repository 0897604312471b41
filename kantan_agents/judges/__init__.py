"""LLM-as-a-judge: decide which rule an output meets, and score how well an answer follows its prompt."""

from kantan_agents.judges.instructions import ENGLISH, JAPANESE, JudgeTemplates
from kantan_agents.judges.rubric_agent import judge_agent
from kantan_agents.judges.rules import StatusRule
from kantan_agents.judges.status_judge import StatusJudge, detect_matched_rule, judge_status
from kantan_agents.judges.tags import find_tag
from kantan_agents.judges.verdict import StageAttempt, StatusVerdict

__all__ = [
    "ENGLISH",
    "JAPANESE",
    "JudgeTemplates",
    "StageAttempt",
    "StatusJudge",
    "StatusRule",
    "StatusVerdict",
    "detect_matched_rule",
    "find_tag",
    "judge_agent",
    "judge_status",
]
