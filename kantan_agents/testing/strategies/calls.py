"""The strategy for tool calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, overload

from hypothesis import event
from hypothesis import strategies as st

from kantan_agents.errors import InvalidOptionError
from kantan_agents.testing.strategies.json_values import WORDS, json_values
from kantan_agents.testing.strategies.near_rules import ValuesNear, candidates, placed
from kantan_agents.testing.strategies.rules import COMMANDS, Names, covered_name, names_strategy
from kantan_agents.testing.strategies.tools_under_test import Tools, ToolUnderTest, read_tools
from kantan_agents.tool_rules import NO_RULES, ToolRules, decide_call, decide_tool
from kantan_agents.tool_rules.calls import CallPattern, is_call_pattern, parse_call_pattern
from kantan_agents.tool_rules.parameters import parse_path

Calls = st.SearchStrategy[tuple[str, dict[str, Any]]]
RawCalls = st.SearchStrategy[tuple[str, dict[str, Any] | str]]
Arguments = dict[str, Any]

_TRIES = 4
_PERCENT = 100
_VIOLATION = "a violation of the rules"
_CHAINED = (" && ", "; ", " | ", "\n")
_OTHERS = st.dictionaries(WORDS, json_values(max_leaves=3), max_size=2)


@overload
def tool_calls(
    rules: Mapping[str, Any] | ToolRules | None = None,
    names: Names | None = None,
    *,
    tools: Tools | None = None,
    invalid: float = 0.4,
    malformed: Literal[False] = False,
) -> Calls: ...


@overload
def tool_calls(
    rules: Mapping[str, Any] | ToolRules | None = None,
    names: Names | None = None,
    *,
    tools: Tools,
    invalid: float = 0.4,
    malformed: Literal[True],
) -> RawCalls: ...


def tool_calls(
    rules: Mapping[str, Any] | ToolRules | None = None,
    names: Names | None = None,
    *,
    tools: Tools | None = None,
    invalid: float = 0.4,
    malformed: bool = False,
) -> Calls | RawCalls:
    """Generate tool calls, some of which comply with the given rules and some of which violate them.

    Pass the tools. Their arguments are then generated from their schemas, so that most calls run. A chosen
    share of the calls is invalid: an unknown name, a wrong value, a missing or an additional argument, or a
    violation of the rules. ``--hypothesis-show-statistics`` shows how often each occurs.

    Without tools, there are names and rules only: the tools are the names in the rules (for a pattern, a name
    that it covers) and others. For a parameter rule, the values are near its limits, at the parameter's path
    in nested objects and arrays. For a short form such as ``Bash(git:*)``, the parameter ``command`` holds
    matching, similar and chained commands. A real tool accepts few of them.

    Args:
        rules: Rules in their public dict shape, or parsed. None for no rules.
        names: Names of tools that the rules do not mention, a strategy or a sequence. The default is made-up
            names.
        tools: The tools to call: an agent, functions and tools of the SDK, or schemas by tool name.
        invalid: The share of invalid calls, from 0 to 1. It applies to ``tools``.
        malformed: Whether some invalid calls have a str of malformed JSON as arguments. It applies to
            ``tools``.

    Raises:
        ToolRulesTypeError: E18, the rules are not a dict.
        InvalidToolRulesError: E20, the rules are invalid.
        InvalidOptionError: E75, ``invalid`` is not a share, or ``tools`` has no tool with a schema.

    Returns:
        A strategy for ``(tool_name, arguments)``, the arguments a dict of JSON values.
    """
    parsed = rules if isinstance(rules, ToolRules) else ToolRules.parse({} if rules is None else rules)
    if isinstance(invalid, bool) or not isinstance(invalid, (int, float)) or not 0 <= invalid <= 1:
        raise InvalidOptionError(option="invalid", reason=f"must be a number from 0 to 1, not {invalid!r}")
    if tools is None:
        return _calls_by_rules(parsed, names_strategy(names))
    return _calls_by_schema(parsed, read_tools(tools), names_strategy(names), invalid, malformed)


@st.composite
def _calls_by_schema(
    draw: st.DrawFn,
    rules: ToolRules,
    tools: list[ToolUnderTest],
    foreign: st.SearchStrategy[str],
    invalid: float,
    malformed: bool,
) -> tuple[str, Arguments | str]:
    """Valid by schema and rules, or invalid in one way, which an event names."""
    kinds = [*_INVALID, "an unknown tool"]
    if rules != NO_RULES:
        kinds = [_VIOLATION, *kinds, _VIOLATION]  # twice, because there are many ways to violate rules
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
    """Apply rules as far as the schema permits."""
    names = tool.facts.names
    patterns = (*rules.allowed_calls(names), *rules.denied_calls(names))
    parameter = tool.facts.parameter
    if patterns and parameter is not None:
        for _ in range(_TRIES):
            changed = {**arguments, parameter: draw(_commands_like(patterns))}
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
    """Not only near the limits."""
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


@st.composite
def _calls_by_rules(
    draw: st.DrawFn, rules: ToolRules, foreign: st.SearchStrategy[str]
) -> tuple[str, dict[str, Any]]:
    """The schemas of the tools are unknown."""
    mentioned = [names for names in (_entries(rules), [*rules.params], [*rules.params]) if names]
    tool = draw(st.one_of(foreign, *(st.sampled_from(list(map(covered_name, names))) for names in mentioned)))
    arguments: dict[str, Any] = {}
    patterns = (*rules.allowed_calls((tool,)), *rules.denied_calls((tool,)))
    if patterns:
        arguments["command"] = draw(_commands_like(patterns))
    checks = rules.checks((tool,))
    all_valid = draw(st.booleans())
    for rule in checks.rules if checks is not None else ():
        # One invalid parameter is enough to violate the rules, so the others may be valid.
        near = ValuesNear.for_rule(rule.keywords).near(all_valid or draw(st.booleans()))
        if rule.path not in arguments and draw(st.integers(0, 4)):
            spelled_out = draw(st.integers(0, 5)) == 0
            steps = (rule.path,) if spelled_out else parse_path(rule.path)
            arguments = placed(arguments, steps, draw(near))
    others = draw(_OTHERS)
    return tool, {**others, **arguments} if draw(st.booleans()) else {**arguments, **others}


def _entries(rules: ToolRules) -> list[str]:
    listed = [entry for names in (rules.allow, rules.deny) if isinstance(names, tuple) for entry in names]
    return [parse_call_pattern(entry).tool if is_call_pattern(entry) else entry for entry in listed]


def _commands_like(patterns: Sequence[CallPattern]) -> st.SearchStrategy[str]:
    arguments = st.sampled_from([pattern.argument for pattern in patterns])
    more = arguments | st.tuples(arguments, WORDS).map(" ".join)
    chained = st.tuples(more, st.sampled_from(_CHAINED), more | st.sampled_from(COMMANDS)).map("".join)
    return more | chained | st.sampled_from(COMMANDS)
