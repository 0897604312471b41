"""An evaluator that lets a ``StatusJudge`` find the rule that the output meets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.evaluators.evaluator import Evaluator
from kantan_agents.lab.evaluation.evaluators.judge_runs import (
    judge_config,
    judge_context,
    judge_options,
    judged_metadata,
)
from kantan_agents.lab.evaluation.evaluators.versions import version_of_options
from kantan_agents.lab.evaluation.finished_case import FinishedCase
from kantan_agents.lab.evaluation.scores import Score
from kantan_agents.lab.judges import StatusJudge, StatusRule
from kantan_agents.support.arguments import checked_list


def status(
    rules: Iterable[str | StatusRule] | StatusJudge,
    *,
    passing: Iterable[str],
    name: str = "status",
    version: str | None = None,
    **options: Any,
) -> Evaluator:
    """Return an evaluator that finds which of several rules the output meets.

    The score is 1.0 if it is one of ``passing``, otherwise 0.0. Its label is the name of the rule, or the
    condition of a rule without a name.

    Args:
        rules: Conditions or ``StatusRule`` objects; or a ``StatusJudge``.
        passing: Names of the rules that count as 1.0, or their conditions.
        name: Name of the metric.
        version: By default a hash of the rules, and of the judge's instructions, model and settings.
        **options: For ``StatusJudge``: ``model``, ``language``, ``mode``, ...

    Raises:
        InvalidJudgeRulesError: E45, the rules are invalid.
        InvalidOptionError: E75, ``passing`` names a rule that does not exist, or an option is invalid.
    """
    judge = _checked_judge(rules, options)
    wanted = frozenset(_checked_passing(passing, judge))

    async def score(finished: FinishedCase) -> Score:
        config = judge_config("status", judged_metadata(finished))
        verdict = await judge.judge(finished.text, judge_context(finished.case), run_config=config)
        label = _label(verdict.rule)
        return Score(float(label in wanted), label, verdict.reason, "model")

    if version is None:
        described = {
            "names": [rule.name for rule in judge.rules],
            "passing": sorted(wanted),
            "stages": [judge_options(stage.agent) for stage in judge._stages],
        }
        version = version_of_options("status", described)
    return Evaluator(name, version, score, source="model")


def _checked_judge(rules: Any, options: dict[str, Any]) -> StatusJudge:
    if not isinstance(rules, StatusJudge):
        return StatusJudge(rules, **options)
    if options:
        reason = "belongs to the StatusJudge, which exists already; set it there"
        raise InvalidOptionError(option=next(iter(options)), reason=reason)
    return rules


def _checked_passing(passing: Iterable[str], judge: StatusJudge) -> list[str]:
    known = {key: _label(rule) for rule in judge.rules for key in (rule.condition, _label(rule))}
    names = checked_list("passing", passing)
    for one in names:
        if not isinstance(one, str) or one not in known:
            listed = ", ".join(repr(_label(rule)) for rule in judge.rules)
            raise InvalidOptionError(option="passing", reason=f"there is no rule {one!r}; there are {listed}")
    if not names:
        raise InvalidOptionError(option="passing", reason="name at least one rule that counts as 1.0")
    return [known[one] for one in names]


def _label(rule: StatusRule) -> str:
    return rule.condition if rule.name is None else rule.name
