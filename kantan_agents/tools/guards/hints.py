"""Sentences for the model about a refused call: which rule refused it, and which calls are allowed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kantan_agents.errors import ToolNotAllowedError, ToolParameterError
from kantan_agents.tool_rules import Decision, ToolFacts, ToolRules

_LISTED: Final = 20
_LONGEST: Final = 200


def hint_for(decision: Decision, rules: ToolRules, facts: ToolFacts) -> str:
    """Return a hint, in addition to the error message, that helps the model correct its call.

    Args:
        decision: The refusal.
        rules: The rule set that refused the call.
        facts: The tool.
    """
    error = decision.error
    if isinstance(error, ToolParameterError):
        return _about_value(error)
    if not isinstance(error, ToolNotAllowedError):
        reason = getattr(error, "reason", None)
        return f"The reason is: {_short(str(reason))}." if reason else ""
    if decision.key == "is_enabled":
        return "The tool is switched off."
    if decision.key not in ("allow", "deny"):
        return ""
    return " ".join([_about_rule(decision), *_about_other_calls(decision, rules, facts)])


def _about_value(error: ToolParameterError) -> str:
    if not isinstance(error.limit, (tuple, list)):
        return f"The rule is {error.keyword}: {_short(repr(error.limit))}."
    if not error.limit:
        return "The rule is about values of another type than the tool takes, so every value is refused."
    return f"The rule is {error.keyword}: {_listed(map(repr, error.limit))}."


def _about_rule(decision: Decision) -> str:
    if decision.entry is None:
        return f"The rule is: {decision.key} has no entry for it."
    return f"The rule is {decision.key}: {_short(decision.entry)}."


def _about_other_calls(decision: Decision, rules: ToolRules, facts: ToolFacts) -> list[str]:
    """Return what may be called instead, as far as the same rule set says."""
    if rules.denying(facts.names) is not None:
        return []
    allowed = rules.allowed_calls(facts.names, facts.origin)
    if allowed and rules.allowing(facts.names, facts.origin) is None:
        return [f"Calls that are allowed: {_listed(call.entry for call in allowed)}."]
    return ["Other calls of the tool may be allowed."] if decision.key == "deny" else []


def _listed(texts: Iterable[str]) -> str:
    every = list(texts)
    listed = ", ".join(map(_short, every[:_LISTED]))
    return f"{listed} and {len(every) - _LISTED} more" if len(every) > _LISTED else listed


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
