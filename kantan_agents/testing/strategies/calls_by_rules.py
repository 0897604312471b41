"""Tool calls for rules whose tools are unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from kantan_agents.testing.strategies.json_values import WORDS, json_values
from kantan_agents.testing.strategies.names import covered_name
from kantan_agents.testing.strategies.near_rules import ValuesNear, placed
from kantan_agents.testing.strategies.rules import COMMANDS
from kantan_agents.tool_rules import ToolRules
from kantan_agents.tool_rules.calls import CallPattern, is_call_pattern, parse_call_pattern
from kantan_agents.tool_rules.parameters import parse_path

_CHAINED = (" && ", "; ", " | ", "\n")
OTHERS = st.dictionaries(WORDS, json_values(max_leaves=3), max_size=2)


@st.composite
def calls_by_rules(
    draw: st.DrawFn, rules: ToolRules, foreign: st.SearchStrategy[str]
) -> tuple[str, dict[str, Any]]:
    """Draw calls from the rules alone: the schemas of the tools are unknown."""
    mentioned = [names for names in (_entries(rules), [*rules.params], [*rules.params]) if names]
    tool = draw(st.one_of(foreign, *(st.sampled_from(list(map(covered_name, names))) for names in mentioned)))
    arguments: dict[str, Any] = {}
    patterns = (*rules.allowed_calls((tool,)), *rules.denied_calls((tool,)))
    if patterns:
        arguments["command"] = draw(commands_like(patterns))
    checks = rules.checks((tool,))
    all_valid = draw(st.booleans())
    for rule in checks.rules if checks is not None else ():
        # One invalid parameter is enough to violate the rules, so the others may be valid.
        near = ValuesNear.for_rule(rule.keywords).near(all_valid or draw(st.booleans()))
        if rule.path not in arguments and draw(st.integers(0, 4)):
            spelled_out = draw(st.integers(0, 5)) == 0
            steps = (rule.path,) if spelled_out else parse_path(rule.path)
            arguments = placed(arguments, steps, draw(near))
    others = draw(OTHERS)
    return tool, {**others, **arguments} if draw(st.booleans()) else {**arguments, **others}


def _entries(rules: ToolRules) -> list[str]:
    listed = [entry for names in (rules.allow, rules.deny) if isinstance(names, tuple) for entry in names]
    return [parse_call_pattern(entry).tool if is_call_pattern(entry) else entry for entry in listed]


def commands_like(patterns: Sequence[CallPattern]) -> st.SearchStrategy[str]:
    """Return a strategy for commands that match some of the patterns, or nearly."""
    arguments = st.sampled_from([pattern.argument for pattern in patterns])
    more = arguments | st.tuples(arguments, WORDS).map(" ".join)
    chained = st.tuples(more, st.sampled_from(_CHAINED), more | st.sampled_from(COMMANDS)).map("".join)
    return more | chained | st.sampled_from(COMMANDS)
