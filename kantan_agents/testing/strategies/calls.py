"""The strategy for tool calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, overload

from hypothesis import strategies as st

from kantan_agents.errors import InvalidOptionError
from kantan_agents.testing.strategies.calls_by_rules import calls_by_rules
from kantan_agents.testing.strategies.calls_by_schema import calls_by_schema
from kantan_agents.testing.strategies.names import Names, names_strategy
from kantan_agents.testing.strategies.tools_under_test import Tools, read_tools
from kantan_agents.tool_rules import ToolRules

Calls = st.SearchStrategy[tuple[str, dict[str, Any]]]
RawCalls = st.SearchStrategy[tuple[str, dict[str, Any] | str]]


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
    """Draw tool calls, some of which comply with the given rules and some of which violate them.

    Pass the tools. Their arguments are then drawn from their schemas, so that most calls run. A chosen share
    of the calls is invalid: an unknown name, a wrong value, a missing or an additional argument, or a
    violation of the rules. ``--hypothesis-show-statistics`` shows how often each occurs.

    Without tools, there are names and rules only: the tools are those that the rules name (for a pattern, a
    name that it covers) and others. For a parameter rule, values near its limits are drawn and put at the
    parameter's path in nested objects and arrays. For a short form such as ``Bash(git:*)``, the parameter
    ``command`` holds matching and similar commands, also chained ones. A real tool accepts few of them.

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
        return calls_by_rules(parsed, names_strategy(names))
    return calls_by_schema(parsed, read_tools(tools), names_strategy(names), invalid, malformed)
