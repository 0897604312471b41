"""Converts records of calls for the rules."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import attrs

from kantan_agents.lab.rule_changes.decide import Arguments
from kantan_agents.subagent_files.names import name_key
from kantan_agents.support.secrets import MASK
from kantan_agents.tool_rules import Origin, RuleLayers, ToolFacts, ToolRules
from kantan_agents.tool_rules.decide import schema_of
from kantan_agents.traces.capture import RuleSet, ToolCallRecord
from kantan_agents.traces.capture.canonical import canonical, ordered

_MOST_KNOWN: Final = 16_384
_FOLDS: Final = "folds_denials"

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class Memo(dict[KeyT, ValueT]):
    """A cache of limited size. If keys are ids, the value holds the objects, so that no other gets the id."""

    def __setitem__(self, key: KeyT, value: ValueT) -> None:
        if len(self) >= _MOST_KNOWN:
            self.clear()
        super().__setitem__(key, value)


class RecordedRules:
    """Layers of recorded rules. Equal rules are compiled once."""

    def __init__(self) -> None:
        self._by_id: Memo[int, tuple[RuleSet, RuleLayers]] = Memo()
        self._by_content: Memo[bytes, RuleLayers] = Memo()
        self._sets: Memo[bytes, ToolRules] = Memo()

    def layers(self, recorded: RuleSet) -> RuleLayers:
        """Return the recorded layers; raise if they are damaged."""
        known = self._by_id.get(id(recorded))
        if known is not None:
            return known[1]
        content = ordered([recorded.layers, recorded.limits])
        layers = self._by_content.get(content)
        if layers is None:
            layers = RuleLayers(self._named(recorded.layers), self._named(recorded.limits))
            self._by_content[content] = layers
        self._by_id[id(recorded)] = (recorded, layers)
        return layers

    def _named(self, found: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[tuple[str, ToolRules], ...]:
        return tuple((name, self._rules(rules)) for name, rules in found)

    def _rules(self, recorded: Mapping[str, Any]) -> ToolRules:
        content = ordered(recorded)
        rules = self._sets.get(content)
        if rules is None:
            plain = {name: value for name, value in recorded.items() if name != _FOLDS}
            rules = ToolRules.parse(plain, folds_denials=bool(recorded.get(_FOLDS)))
            self._sets[content] = rules
        return rules


def is_masked(recorded: RuleSet) -> bool:
    """Return whether part of the rules may be masked."""
    return MASK.encode() in canonical([recorded.layers, recorded.limits])


class RecordedTools:
    """Tools of recorded calls; equal ones once."""

    def __init__(self) -> None:
        self._known: Memo[Any, tuple[Any, ToolFacts]] = Memo()

    def facts(self, call: ToolCallRecord) -> ToolFacts:
        """Return the facts about a tool, except the received arguments."""
        origin = call.origin
        key = (
            id(call.tool),
            call.parameter,
            call.folds,
            None if origin is None else canonical(origin),
        )
        known = self._known.get(key)
        if known is None:
            # With the definition, so that its id is not reused.
            known = self._known[key] = (call.tool, _facts(call))
        return known[1]


def _facts(call: ToolCallRecord) -> ToolFacts:
    return ToolFacts(
        names=tuple(call.tool.names) or (call.tool.name,),
        parameter=call.parameter,
        schema=call.tool.parameters or schema_of(call.parameter),
        fold=name_key if call.folds else None,
        origin=None if call.origin is None else _origin(call.origin),
    )


def _origin(recorded: Mapping[str, Any]) -> Origin:
    return Origin(
        own=recorded.get("own"),
        prefixed=dict(recorded.get("prefixed") or {}),
        chosen=recorded.get("chosen"),
    )


def with_received(tool: ToolFacts, received: Sequence[Mapping[str, Any]]) -> ToolFacts:
    """Return facts about a tool whose function receives other arguments."""
    if not received:
        return tool
    readings = [dict(one) for one in received]
    return attrs.evolve(tool, received=lambda _: readings)


def asked_about(call: ToolCallRecord) -> list[Arguments]:
    """Return the arguments that the rules checked; ValueError without them."""
    if call.tool.kind == "custom":
        return [{"input": call.arguments}]
    if call.tool.kind != "apply_patch":
        return [call.arguments]
    patch = json.loads(call.arguments)
    return [
        {"type": patch["type"], "path": path, "diff": patch["diff"]}
        for path in (patch["path"], patch.get("move_to"))
        if path
    ]
