"""Replaces one layer of the recorded rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kantan_agents.lab.rule_changes.recorded_rules import Memo, RecordedRules
from kantan_agents.tool_rules import BASE, DELEGATION, EXPLICIT, RuleLayers, ToolRules
from kantan_agents.traces.capture import RuleSet, ToolCallRecord


class RecordedRun(Protocol):
    """A run with its recorded tool calls."""

    @property
    def id(self) -> str:
        """Id of the run."""
        ...

    @property
    def tool_calls(self) -> Iterable[ToolCallRecord]:
        """The tool calls in the order in which they started."""
        ...

    @property
    def parent_run(self) -> str | None:
        """Id of the run around this one."""
        ...

    @property
    def parent_call(self) -> str | None:
        """Id of the tool call around this run."""
        ...

    @property
    def missing(self) -> Iterable[str]:
        """The parts that were not recorded."""
        ...


class UnknownLimitsError(Exception):
    """The limits of a delegated run do not follow from the rules above it."""


class Replacement:
    """Replaces a layer of the rules."""

    def __init__(self, layer: str, rules: ToolRules, recorded: RecordedRules) -> None:
        self._layer = layer
        self._rules = rules
        self._recorded = recorded
        self._known: Memo[int, tuple[RuleLayers, RuleLayers]] = Memo()
        self._inherited: Memo[tuple[int, int, int], tuple[tuple[RuleLayers, ...], RuleLayers]] = Memo()
        self.layers_seen: dict[str, None] = {}

    def of(self, recorded: RuleSet, run: RecordedRun, above: Callers) -> RuleLayers:
        """Return the rules of a call with the layer replaced; raise if a caller's rules are unknown."""
        layers = self._recorded.layers(recorded)
        if not any(name == DELEGATION for name, _ in layers.limits):
            return self._alone(layers)
        caller = above.caller_of(run)
        if caller is None:
            raise UnknownLimitsError("the rules of the run that has delegated to its run are not recorded")
        call, around = caller
        before = self._recorded.layers(call.rules)
        return self._below(layers, call.agent, before, self.of(call.rules, around, above))

    def _alone(self, layers: RuleLayers) -> RuleLayers:
        known = self._known.get(id(layers))
        if known is None:
            replaced = RuleLayers(self._with_layer(layers), layers.limits)
            known = self._known[id(layers)] = (layers, replaced)
            self.layers_seen.update((name, None) for name, _ in layers.layers)
        return known[1]

    def _below(self, layers: RuleLayers, parent: str, before: RuleLayers, after: RuleLayers) -> RuleLayers:
        key = (id(layers), id(before), id(after))
        known = self._inherited.get(key)
        if known is None:
            inherited = before.as_limits(parent)
            own = layers.limits[: -len(inherited)]
            if layers.limits[-len(inherited) :] != inherited:
                raise UnknownLimitsError("the rules of the run that has delegated to its run have changed")
            replaced = RuleLayers(self._alone(layers).layers, (*own, *after.as_limits(parent)))
            known = self._inherited[key] = ((layers, before, after), replaced)
        return known[1]

    def _with_layer(self, layers: RuleLayers) -> tuple[tuple[str, ToolRules], ...]:
        replaced = tuple(
            (name, self._rules if name == self._layer else rules) for name, rules in layers.layers
        )
        if any(name == self._layer for name, _ in replaced):
            return replaced
        if self._layer == EXPLICIT:
            return (*replaced, (EXPLICIT, self._rules))
        return ((BASE, self._rules), *replaced) if self._layer == BASE else replaced


class Callers:
    """The tool calls of a trace that started runs."""

    def __init__(self, runs: Iterable[RecordedRun]) -> None:
        self._runs = {run.id: run for run in runs}

    def caller_of(self, run: RecordedRun) -> tuple[ToolCallRecord, RecordedRun] | None:
        """Return the call around a run, and its run, if known."""
        around = self._runs.get(run.parent_run) if run.parent_run is not None else None
        if around is None or around is run:
            return None
        for call in around.tool_calls:
            if call.call_id == run.parent_call and call.decision is not None:
                return call, around
        return None
