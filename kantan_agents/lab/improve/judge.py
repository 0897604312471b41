"""``judge_of``: the evaluator of a search, on a scale."""

from __future__ import annotations

from typing import Any

import attrs

from kantan_agents.agent import Agent
from kantan_agents.core.prompt import Prompt
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.evaluators import judged
from kantan_agents.lab.evaluation.evaluators.evaluator import Evaluator, as_evaluator
from kantan_agents.support.arguments import checked_number


def judge_of(given: Any, agent: Agent[Any], perfect: float | None) -> tuple[Evaluator, float]:
    """Return the evaluator with its scale, and the best score; E75 if one is unusable."""
    if given is None:
        reason = "say what gives the scores: an evaluator, a judge's agent, or a function of a FinishedCase"
        raise InvalidOptionError(option="judge", reason=reason)
    wanted = None if perfect is None else checked_number("perfect", perfect, above_zero=True)
    if isinstance(given, Prompt):
        judge = judged(given, model=agent.given.model, scale=None if wanted is None else (0.0, wanted))
    elif isinstance(given, Agent):
        judge = _judged_on_scale(given, 1.0 if wanted is None else wanted)
    else:
        judge = as_evaluator(given)
    low, high = judge.scale or (0.0, 1.0 if wanted is None else wanted)
    best = high if wanted is None else wanted
    if low < 0:
        reason = f"the scale of {judge.name!r}, {low:g} to {high:g}, must begin at 0 or above"
        raise InvalidOptionError(option="judge", reason=reason)
    if not low < best <= high:
        reason = f"must be on the scale of {judge.name!r}, {low:g} to {high:g}, not {best:g}"
        raise InvalidOptionError(option="perfect", reason=reason)
    if judge.better != "higher":
        reason = (
            f"of {judge.name!r} a lower score is better; the best version is the one with the highest score"
        )
        raise InvalidOptionError(option="judge", reason=reason)
    return attrs.evolve(judge, scale=(low, high)), best


def _judged_on_scale(agent: Agent[Any], best: float) -> Evaluator:
    """Return a judge whose schema has the scale if possible; its version ignores the scale."""
    judge = judged(agent)
    if judge.scale is not None:
        return judge
    try:
        return judged(agent, version=judge.version, scale=(0.0, best))
    except InvalidOptionError:
        return judge
