"""Determines which files the rules permit to read."""

from __future__ import annotations

from functools import partial
from typing import Any

import agents
import attrs

from kantan_agents.agent import agent_of
from kantan_agents.core.pipeline import current_run
from kantan_agents.errors import KantanAgentsError
from kantan_agents.tool_rules import (
    Decision,
    RuleLayers,
    ToolFacts,
    ToolRules,
    decide_call,
    decide_tool,
    needs_arguments,
)
from kantan_agents.toolkit.files.file_tool import current_call
from kantan_agents.toolkit.files.root import Root
from kantan_agents.toolkit.files.walk import MayRead
from kantan_agents.tools.rules_in_force import NO_LAYERS, rules_of_run


@attrs.frozen(eq=False)
class ReadRules:
    """The rules about reading."""

    root: Root
    read: ToolFacts
    others: dict[str, ToolFacts] = attrs.field(factory=dict)

    def in_force(self, context: agents.RunContextWrapper[Any], tool: str) -> MayRead | None:
        """Return whether a tool may show a file in the current run; None if it may show every file.

        An ``allow`` list without an entry about ``Read`` selects tools and does not restrict files; denying
        ``Read`` does. A tool permitted for a folder does not show files below it that its own ``deny``
        entries cover. Raises E18 or E20.
        """
        layers = _layers(context)
        if layers.permits_all:
            return None
        checks: list[MayRead] = []
        for rules in layers.rule_sets:
            decision = decide_tool(rules, self.read)
            if not decision.allowed and decision.key == "deny":
                return _nothing
            if decision.allowed and needs_arguments(rules, self.read):
                checks.append(partial(self._permits_reading, rules))
            own = self.others[tool]
            if rules.denied_calls(own.names):
                checks.append(partial(self._is_not_denied, rules, own))
        return (lambda path: all(check(path) for check in checks)) if checks else None

    def may_name(self, path: str) -> bool:
        """Return whether an error of the current call may name a path unknown to the model."""
        call = current_call.get()
        if call is None:  # no model has made it
            return True
        may_read = self.in_force(*call)
        return may_read is None or may_read(path)

    def _permits_reading(self, rules: ToolRules, path: str) -> bool:
        decisions = self._decisions(rules, self.read, path)
        return not _denies(decisions) and any(one.allowed for one in decisions)

    def _is_not_denied(self, rules: ToolRules, tool: ToolFacts, path: str) -> bool:
        decisions = self._decisions(rules, tool, path)
        return bool(decisions) and not _denies(decisions)

    def _decisions(self, rules: ToolRules, tool: ToolFacts, path: str) -> list[Decision]:
        absolute = f"{self.root.path.rstrip('/')}/{path}"
        parameter = tool.parameter or ""
        try:
            return [decide_call(rules, tool, {parameter: spelled}) for spelled in (path, absolute)]
        except KantanAgentsError:  # the name is not valid Unicode
            return []


def _denies(decisions: list[Decision]) -> bool:
    return any(one.key == "deny" and not one.allowed for one in decisions)


def _nothing(_: str) -> bool:
    return False


def _layers(context: agents.RunContextWrapper[Any]) -> RuleLayers:
    run = current_run.get()
    book = agent_of(getattr(context, "agent", None)) or (run.agent if run is not None else None)
    standing: RuleLayers = book.standing_rules if book is not None else NO_LAYERS
    return rules_of_run(run, context.context, standing)
