"""LLM-as-a-judge: decide which rule an output meets, and score how well an answer follows its prompt."""

from kantan_agents.lab.judges.instructions import ENGLISH, JAPANESE, JudgeTemplates
from kantan_agents.lab.judges.rubric_agent import judge_agent
from kantan_agents.lab.judges.rules import StatusRule
from kantan_agents.lab.judges.status_judge import StatusJudge, detect_matched_rule, judge_status
from kantan_agents.lab.judges.tags import find_tag
from kantan_agents.lab.judges.verdict import StageAttempt, StatusVerdict

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
