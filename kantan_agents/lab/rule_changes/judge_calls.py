"""Judges one recorded call."""

from __future__ import annotations

from typing import Final

import attrs

from kantan_agents.errors import KantanAgentsError, ToolInputError, UnknownToolError
from kantan_agents.lab.rule_changes.decide import CheckFailedError, decide, depends_on_arguments
from kantan_agents.lab.rule_changes.recorded_rules import (
    Memo,
    RecordedRules,
    RecordedTools,
    asked_about,
    is_masked,
    with_received,
)
from kantan_agents.lab.rule_changes.replaced_rules import (
    Callers,
    RecordedRun,
    Replacement,
    UnknownLimitsError,
)
from kantan_agents.tool_rules import USER, RuleLayers, ToolFacts
from kantan_agents.traces.capture import RecordedDecision, RuleSet, ToolCallRecord

_LONG: Final = 1_000
_NO_RULES = ("is_enabled ", "tool_rules ")


class NotJudgedError(Exception):
    """The record lacks facts to judge a call."""


@attrs.frozen
class Judgment:
    """The decisions of both rules."""

    before: RecordedDecision
    after: RecordedDecision

    @property
    def is_flip(self) -> bool:
        """Whether only one of them allows the call."""
        return self.before.is_allowed != self.after.is_allowed


class Judge:
    """Judges calls, and caches their common parts."""

    def __init__(self, recorded: RecordedRules, replacement: Replacement) -> None:
        self._recorded = recorded
        self._replacement = replacement
        self._tools = RecordedTools()
        self._masked: Memo[int, tuple[RuleLayers, bool]] = Memo()
        self._dependent: Memo[tuple[int, int], tuple[RuleLayers, ToolFacts, bool]] = Memo()
        self._decided: Memo[tuple[int, int, str], tuple[RuleLayers, ToolFacts, RecordedDecision]]
        self._decided = Memo()

    def judge(self, call: ToolCallRecord, run: RecordedRun, above: Callers) -> Judgment | None:
        """Return both decisions; None for an invalid call; raise if the record lacks facts."""
        made = call.decision
        if tuple(run.missing):
            raise NotJudgedError("its run is recorded incompletely")
        if made is None:
            raise NotJudgedError("it was answered or had ended before the rules were asked")
        if not made.is_allowed and made.rule is None:
            if made.code == UnknownToolError.code and call.tool.parameters is not None:
                raise NotJudgedError("its agent has the tool, but not in that turn")
            if made.code in (ToolInputError.code, UnknownToolError.code):
                return None
            raise NotJudgedError(f"something else than the rules has refused it ({made.code})")
        if made.rule is not None and made.rule.startswith(_NO_RULES):
            switched_off = made.rule.startswith(_NO_RULES[0])
            raise NotJudgedError("its tool was switched off" if switched_off else "its rules had mistakes")
        try:
            return self._judged(call, made, run, above)
        except (CheckFailedError, UnknownLimitsError) as error:
            raise NotJudgedError(str(error)) from error
        except (KantanAgentsError, KeyError, TypeError, ValueError) as error:
            raise NotJudgedError("its record is damaged") from error

    def _judged(
        self, call: ToolCallRecord, made: RecordedDecision, run: RecordedRun, above: Callers
    ) -> Judgment:
        before = self._recorded.layers(call.rules)
        if any(name == USER for name, _ in before.layers):
            raise NotJudgedError("a user has made it with a command: the rules for users decide")
        if self._is_masked(before, call.rules):
            raise NotJudgedError("something in its rules is masked")
        after = self._replacement.of(call.rules, run, above)
        tool = self._tools.facts(call)
        dependent = self._depends(after, tool)
        if dependent or self._depends(before, tool):
            self._check_arguments(call)
        if not isinstance(made.layers, tuple):
            made = attrs.evolve(made, layers=tuple(made.layers))
        found = self._decide(before, tool, call)
        if found.is_allowed != made.is_allowed or (made.rule is not None and found != made):
            raise NotJudgedError("the recorded rules do not explain the recorded decision")
        other = self._decide(after, tool, call)
        if other.is_allowed and not made.is_allowed and _is_malformed(call):
            other = made  # the rules would allow it, but it would fail
        return Judgment(made, other)

    def _check_arguments(self, call: ToolCallRecord) -> None:
        if call.has_other_arguments:
            raise NotJudgedError("the rules saw other arguments than those that are recorded")
        if call.tool.kind == "function" and call.tool.parameters is None:
            raise NotJudgedError("the definition of its tool is not recorded")

    def _decide(self, layers: RuleLayers, tool: ToolFacts, call: ToolCallRecord) -> RecordedDecision:
        if not self._depends(layers, tool):
            arguments = ""
        elif call.received or len(call.arguments) > _LONG:
            return decide(layers, with_received(tool, call.received), asked_about(call))
        else:
            arguments = f"{call.tool.kind} {call.arguments}"
        key = (id(layers), id(tool), arguments)
        known = self._decided.get(key)
        if known is None:
            decision = decide(layers, tool, asked_about(call) if arguments else [""])
            known = self._decided[key] = (layers, tool, decision)
        return known[2]

    def _depends(self, layers: RuleLayers, tool: ToolFacts) -> bool:
        key = (id(layers), id(tool))
        known = self._dependent.get(key)
        if known is None:
            known = self._dependent[key] = (layers, tool, depends_on_arguments(layers, tool))
        return known[2]

    def _is_masked(self, layers: RuleLayers, recorded: RuleSet) -> bool:
        known = self._masked.get(id(layers))
        if known is None:
            known = self._masked[id(layers)] = (layers, is_masked(recorded))
        return known[1]


def _is_malformed(call: ToolCallRecord) -> bool:
    return call.tool.kind == "function" and call.arguments.lstrip()[:1] not in ("", "{")
