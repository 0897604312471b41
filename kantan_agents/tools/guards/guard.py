"""Applies the tool rules when a tool is called, whatever the model was shown.

A guard replaces the executor of a copied tool, so that approval, timeout, guardrails, deferred loading and
failure handling stay.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

import attrs

from kantan_agents.core.interception import capture_decision
from kantan_agents.core.pipeline import current_run
from kantan_agents.errors import KantanAgentsError, ToolInputError, ToolNotAllowedError, ToolParameterError
from kantan_agents.tool_rules import MARKED_HALF, Decision, RuleLayers, ToolFacts, ToolRules, parse_arguments
from kantan_agents.tools.guards.check import check_layers
from kantan_agents.tools.guards.violations import RuleViolation, RuleViolationPolicy, refuse
from kantan_agents.tools.rules_in_force import NO_LAYERS, rules_in_force

_LISTED: Final = 20
_LONGEST: Final = 200


class Rulebook(Protocol):
    """Rules below the explicit ones: an Agent."""

    @property
    def standing_rules(self) -> RuleLayers:
        """Base and provider layers."""
        ...

    @property
    def on_rule_violation(self) -> RuleViolationPolicy:
        """The violation policy."""
        ...


@attrs.frozen(eq=False)
class ToolGuard:
    """Applies the rules in force; ``book`` is None for a plain SDK agent, under the started agent's rules."""

    facts: ToolFacts
    book: Rulebook | None

    def layers(self, context: Any) -> RuleLayers:
        """Return the rules in force for a run."""
        book = self.book or _running_agent()
        return rules_in_force(context, book.standing_rules if book is not None else NO_LAYERS)

    async def refusal(
        self, wrapper: Any, arguments: str | Mapping[str, Any], *, switched_on: bool = True
    ) -> str | None:
        """Return the answer to a denied call; raise the violation under "raise"."""
        layers, decision = await self._decide(wrapper, arguments, switched_on=switched_on)
        if decision is None or decision.error is None:
            return None
        return await self.refuse(decision, layers, wrapper, arguments)

    async def require(self, wrapper: Any, arguments: str | Mapping[str, Any]) -> None:
        """Raise a violation whatever the policy: the result cannot be a string."""
        layers, decision = await self._decide(wrapper, arguments)
        if decision is not None and decision.error is not None:
            await self.refuse(decision, layers, wrapper, arguments, policy="raise")

    async def report(self, wrapper: Any) -> None:
        """Record the violation of a past call; raise it under "raise"."""
        layers = NO_LAYERS
        try:
            layers = self.layers(getattr(wrapper, "context", None))
            decision = layers.decide_tool(self.facts)
        except KantanAgentsError as error:
            decision = Decision(allowed=False, key="tool_rules", error=error)
        if decision.error is not None:
            await self.refuse(decision, layers, wrapper, "")

    async def _decide(
        self, wrapper: Any, arguments: str | Mapping[str, Any], *, switched_on: bool = True
    ) -> tuple[RuleLayers, Decision | None]:
        layers, decision = await self._decided(wrapper, arguments, switched_on=switched_on)
        capture_decision(self.facts, layers, decision)
        return layers, decision

    async def _decided(
        self, wrapper: Any, arguments: str | Mapping[str, Any], *, switched_on: bool
    ) -> tuple[RuleLayers, Decision | None]:
        layers = NO_LAYERS
        if not switched_on:
            disabled = ToolNotAllowedError(tool_name=self.facts.name)
            return layers, Decision(allowed=False, key="is_enabled", error=disabled)
        try:
            layers = self.layers(getattr(wrapper, "context", None))
            if isinstance(arguments, str) and MARKED_HALF in arguments:
                parse_arguments(self.facts.name, arguments)
            if layers.permits_all:
                return layers, None
            return await self._decide_by(layers, wrapper, arguments)
        except ToolInputError as error:
            return layers, Decision(allowed=False, key="params", entry=self.facts.name, error=error)
        except KantanAgentsError as error:  # the rules have become invalid during the run
            return layers, Decision(allowed=False, key="tool_rules", error=error)

    async def _decide_by(
        self, layers: RuleLayers, wrapper: Any, arguments: str | Mapping[str, Any]
    ) -> tuple[RuleLayers, Decision]:
        decision = await check_layers(layers, self.facts, arguments)
        if decision.awaited:
            now = self.layers(getattr(wrapper, "context", None))
            if now.rule_sets != layers.rule_sets:  # the rules have changed during the check
                return await self._decide_by(now, wrapper, arguments)
        return layers, decision

    async def refuse(
        self,
        decision: Decision,
        layers: RuleLayers,
        wrapper: Any,
        arguments: str | Mapping[str, Any],
        policy: RuleViolationPolicy | None = None,
    ) -> str:
        """Record a denial and return the answer; raise it under "raise"."""
        if decision.error is None:
            raise TypeError("only a decision against a call can be refused")
        run = current_run.get()
        book = _running_agent() or self.book
        violation = RuleViolation(
            tool=self.facts.name,
            error=decision.error,
            rule=decision.rule,
            layers=layers.deciding(decision),
            agent=getattr(getattr(wrapper, "agent", None) or self.book, "name", None),
            arguments=arguments if isinstance(arguments, str) else json.dumps(arguments, default=str),
            context=getattr(wrapper, "context", None),
        )
        config = run.run_config if run is not None else getattr(wrapper, "run_config", None)
        return await refuse(
            violation,
            policy or (book.on_rule_violation if book is not None else "feedback"),
            sensitive=bool(getattr(config, "trace_include_sensitive_data", True)),
            hint=_hint_for(decision, layers.rules_behind(decision), self.facts),
            # The model's own arguments: values from a middleware must not be traced.
            recorded=getattr(wrapper, "tool_arguments", None),
        )


def _running_agent() -> Rulebook | None:
    run = current_run.get()
    return run.agent if run is not None else None


def _hint_for(decision: Decision, rules: ToolRules, facts: ToolFacts) -> str:
    """Return the denying rule and the allowed calls."""
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
