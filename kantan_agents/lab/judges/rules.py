"""The rules of a ``StatusJudge``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from kantan_agents.errors import InvalidJudgeRulesError


@attrs.frozen
class StatusRule:
    """One of the rules a ``StatusJudge`` chooses from.

    Args:
        condition: When the rule is met, in words for the judge: ``"All tests pass"``.
        name: A name for your code, such as the next step. The judge does not see it.

    Raises:
        InvalidJudgeRulesError: E45, ``condition`` is empty or not a str, or ``name`` is not a str.
    """

    condition: str
    name: str | None = None

    def __attrs_post_init__(self) -> None:
        problems = []
        if not _is_text(self.condition):
            problems.append(f"condition: must be a text, not {self.condition!r}")
        if self.name is not None and not isinstance(self.name, str):
            problems.append(f"name: must be a str or None, not {self.name!r}")
        if problems:
            raise InvalidJudgeRulesError(problems=problems)


def checked_rules(rules: Any) -> tuple[StatusRule, ...]:
    """Return the rules; E45 with all problems."""
    if not isinstance(rules, Iterable) or isinstance(rules, (str, bytes, Mapping)):
        raise InvalidJudgeRulesError(problems=[f"rules: must be a list, not {rules!r}"])
    given = list(rules)
    problems = [
        f"rules[{index}]: must be a text or a StatusRule, not {rule!r}"
        for index, rule in enumerate(given)
        if not isinstance(rule, StatusRule) and not _is_text(rule)
    ]
    if not given:
        problems = ["rules: must have at least one rule"]
    if problems:
        raise InvalidJudgeRulesError(problems=problems)
    return tuple(rule if isinstance(rule, StatusRule) else StatusRule(rule) for rule in given)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
