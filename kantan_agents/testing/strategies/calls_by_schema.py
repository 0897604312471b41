"""Tool calls whose arguments come from the schemas of the tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import event
from hypothesis import strategies as st

from kantan_agents.testing.strategies.calls_by_rules import commands_like
from kantan_agents.testing.strategies.json_values import WORDS, json_values
from kantan_agents.testing.strategies.near_rules import ValuesNear, candidates, placed
from kantan_agents.testing.strategies.tools_under_test import ToolUnderTest
from kantan_agents.tool_rules import NO_RULES, ToolRules, decide_call, decide_tool
from kantan_agents.tool_rules.parameters import parse_path

_TRIES = 4
_PERCENT = 100
_VIOLATION = "a violation of the rules"
Arguments = dict[str, Any]


@st.composite
def calls_by_schema(
    draw: st.DrawFn,
    rules: ToolRules,
    tools: list[ToolUnderTest],
    foreign: st.SearchStrategy[str],
    invalid: float,
    malformed: bool,
) -> tuple[str, Arguments | str]:
    """Draw a call: valid by schema and rules, or invalid in one way. An event says in which."""
    kinds = [*_INVALID, "an unknown tool"]
    if rules != NO_RULES:
        kinds = [_VIOLATION, *kinds, _VIOLATION]  # twice, because of the many ways to violate rules
    if malformed:
        kinds.append("malformed JSON")
    # 0, to which a failing example shrinks, is a valid call.
    is_valid = draw(st.integers(0, _PERCENT - 1)) < round(_PERCENT * (1 - invalid))
    kind = "valid" if is_valid else draw(st.sampled_from(kinds))
    usable = [tool for tool in tools if decide_tool(rules, tool.facts).allowed]
    choices = usable or tools
    if kind == _VIOLATION:
        checked = [tool for tool in usable if rules.checks(tool.facts.names) is not None]
        by_parameter = draw(st.booleans())
        choices = checked if checked and by_parameter else tools
    tool = draw(st.sampled_from(choices))
    arguments = _by_rules(draw, rules, tool, draw(tool.arguments), complies=kind != _VIOLATION)
    changed: Arguments | str | None = arguments
    if kind in _INVALID:
        changed = _INVALID[kind](draw, tool, arguments)
    elif kind == "malformed JSON":
        changed = draw(st.sampled_from(_malformed(arguments)))
    allowed = isinstance(changed, dict) and decide_call(rules, tool.facts, changed).allowed
    if kind == _VIOLATION and allowed:
        changed = None  # the rules allow everything that was tried
    if changed is None or kind == "an unknown tool":
        known = {name for each in tools for name in each.facts.names}
        name = draw((foreign | WORDS).filter(lambda text: text not in known))
        event("tool_calls: an unknown tool")
        return name, arguments
    if kind == "valid" and not allowed:
        kind = _VIOLATION  # the rules allow nothing, or nothing that was tried
    event(f"tool_calls: {kind}")
    return tool.name, changed


def _by_rules(
    draw: st.DrawFn, rules: ToolRules, tool: ToolUnderTest, arguments: Arguments, *, complies: bool
) -> Arguments:
    """Return arguments with values for the rules about the tool, as far as the schema permits them."""
    names = tool.facts.names
    patterns = (*rules.allowed_calls(names), *rules.denied_calls(names))
    parameter = tool.facts.parameter
    if patterns and parameter is not None:
        for _ in range(_TRIES):
            changed = {**arguments, parameter: draw(commands_like(patterns))}
            if tool.is_valid(changed):
                arguments = changed
                if decide_call(rules, tool.facts, changed).allowed == complies:
                    break
    checks = rules.checks(names)
    about = checks.rules if checks is not None else ()
    broken = draw(st.integers(0, len(about) - 1)) if about and not complies else None
    for place, rule in enumerate(about):
        # One invalid parameter is enough to violate the rules, so the others may be valid.
        wanted = complies or (place != broken and draw(st.booleans()))
        values = _fitting(tool, arguments, rule.path, ValuesNear.for_rule(rule.keywords), wanted)
        between = _between(tool.properties.get(rule.path), rule.keywords) if wanted else None
        if values:
            drawn = draw(st.sampled_from(values) if between is None else st.sampled_from(values) | between)
            changed = placed(arguments, parse_path(rule.path), drawn)
            arguments = changed if tool.is_valid(changed) else arguments
    return arguments


def _fitting(
    tool: ToolUnderTest, arguments: Arguments, path: str, near: ValuesNear, complies: bool
) -> list[Any]:
    steps = parse_path(path)
    chosen = near.valid if complies else near.invalid
    return [value for value in chosen if tool.is_valid(placed(arguments, steps, value))]


def _between(schema: Any, keywords: Mapping[str, Any]) -> st.SearchStrategy[Any] | None:
    """Return a strategy for all numbers that a rule allows, not only those near its limits."""
    low, high = keywords.get("minimum"), keywords.get("maximum")
    if not isinstance(schema, Mapping) or low is None or high is None or low > high:
        return None
    if schema.get("type") == "integer" and int(low) == low and int(high) == high:
        return st.integers(int(low), int(high))
    return st.floats(low, high) if schema.get("type") == "number" else None


def _wrong_value(draw: st.DrawFn, tool: ToolUnderTest, arguments: Arguments) -> Arguments | None:
    wrong = [
        {**arguments, name: value}
        for name, schema in tool.properties.items()
        for value in candidates(schema if isinstance(schema, Mapping) else {})
        if not tool.is_valid({**arguments, name: value})
    ]
    return draw(st.sampled_from(wrong)) if wrong else None


def _missing(draw: st.DrawFn, tool: ToolUnderTest, arguments: Arguments) -> Arguments | None:
    names = [name for name in tool.required if name in arguments]
    left_out = draw(st.sampled_from(names)) if names else None
    return {name: arguments[name] for name in arguments if name != left_out} if names else None


def _additional(draw: st.DrawFn, tool: ToolUnderTest, arguments: Arguments) -> Arguments | None:
    name = draw(WORDS.filter(lambda text: text not in tool.properties and text not in arguments))
    return {**arguments, name: draw(json_values(max_leaves=2))}


def _malformed(arguments: Arguments) -> list[str]:
    text = json.dumps(arguments)
    return [text[:-1], text + "}", f"[{text}]", text.replace('"', "'") + ";", "", "null", json.dumps(text)]


_INVALID: Mapping[str, Callable[[st.DrawFn, ToolUnderTest, Arguments], Arguments | None]] = {
    "a wrong value": _wrong_value,
    "a missing argument": _missing,
    "an additional argument": _additional,
}
