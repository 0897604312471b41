"""Judging once, without keeping a judge."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kantan_agents.context import Context
from kantan_agents.judges.rules import StatusRule
from kantan_agents.judges.status_judge import StatusJudge
from kantan_agents.judges.verdict import StatusVerdict


async def judge_status(
    content: str, rules: Iterable[str | StatusRule], *, context: Context | None = None, **options: Any
) -> StatusVerdict:
    """Say which of ``rules`` an output meets: ``StatusJudge(rules, **options).judge(content, context)``.

    Keep a ``StatusJudge`` instead to judge more than once: its agents are made once.

    Args:
        content: The output of an agent.
        rules: Conditions (str) or ``StatusRule`` objects, in order.
        context: As for ``StatusJudge.judge``.
        **options: As for ``StatusJudge``: ``model``, ``tag``, ``language``, ``mode``, ...

    Raises:
        InvalidJudgeRulesError: E45, something is wrong with the rules.
        JudgementError: E44, no question brought a valid answer.
        InvalidOptionError: E75, an option has a value it cannot have.

    Returns:
        The rule, and what decided.
    """
    return await StatusJudge(rules, **options).judge(content, context)


async def detect_matched_rule(
    content: str, rules: Iterable[str | StatusRule], *, context: Context | None = None, **options: Any
) -> StatusVerdict:
    """Say which of ``rules`` an output meets, by the tag it carries; ask a model only if it carries none.

    Arguments, errors and result are those of ``judge_status``; the method is ``phase1_tag`` or
    ``ai_judge_fallback``.
    """
    return await StatusJudge(rules, **options).detect_matched_rule(content, context)
