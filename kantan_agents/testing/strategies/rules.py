"""The strategies for rules."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from kantan_agents.testing.strategies.json_values import WORDS, json_values
from kantan_agents.testing.strategies.tools_under_test import Tools, ToolUnderTest, read_tools
from kantan_agents.tool_rules.globs import is_glob
from kantan_agents.tool_rules.keywords import TYPES

Names = st.SearchStrategy[str] | Sequence[str]
"""A strategy or a sequence."""

_TOOLS = ("search", "read_file", "write_file", "Bash", "fs.read", "mcp__github__get_issue")

_PARAMETERS = ("query", "limit", "command", "filter.limit", "filter.user.name", "ids[]", "rows[].id")
_PATTERNS = (r"^[a-z]+$", r"\d", r"^(git|npm) ", r"[A-Z]{2,4}", r"\.md$", r"^https://")
COMMANDS = ("git", "git status", "npm run test", "ls -la", "rm -rf build")


def names_strategy(names: Names | None) -> st.SearchStrategy[str]:
    """Made-up names if None."""
    if names is None:
        return st.sampled_from(_TOOLS) | WORDS
    return names if isinstance(names, st.SearchStrategy) else st.sampled_from(list(names))


def covered_name(pattern: str) -> str:
    """A name that a glob pattern covers."""
    if not is_glob(pattern):
        return pattern
    return re.sub(r"\[(?!!)(.).*?\]", r"\1", pattern).replace("*", "x").replace("?", "x")


def tool_rules(
    names: Names | None = None, *, tools: Tools | None = None
) -> st.SearchStrategy[dict[str, Any]]:
    """Generate valid tool rules in their public dict shape.

    Entries are plain names, glob patterns and ``Tool(param pattern)`` short forms. Parameter paths are plain,
    dotted, or lead to array items. All seven keywords occur, also in combinations that no value satisfies.

    Args:
        names: Tool names to sample from, a strategy or a sequence. Pass the names of your agent's tools to
            get rules about them. The default is the names of ``tools``, or a small fixed set of made-up
            names.
        tools: The tools that the rules are about, as for ``tool_calls``. Most parameter rules are then about
            parameters of the tools, and can be satisfied.

    Raises:
        InvalidOptionError: E75, ``tools`` has no tool with a schema.

    Returns:
        A strategy for ``{"allow": "*" | [entry, ...] | None, "deny": "*" | [entry, ...] | None, "params":
        {tool: {parameter: {keyword: value}}}}``.
    """
    known = [] if tools is None else read_tools(tools)
    name = names_strategy([each.name for each in known] if known and names is None else names)
    tool = name | _globs(name)
    entries = st.lists(tool | _short_forms(tool), max_size=4, unique=True)
    rules = st.dictionaries(st.sampled_from(_PARAMETERS) | WORDS, _rules(), min_size=1, max_size=3)
    params: st.SearchStrategy[dict[str, Any]] = st.just({}) | st.dictionaries(
        tool, rules | st.just({}), min_size=1, max_size=2
    )
    if known:
        about = _some({each.name: _rules_about(each) for each in known})
        params = st.one_of(about, about, params)
    return st.fixed_dictionaries(
        {
            "allow": st.sampled_from([None, "*"]) | entries,
            # Rarely "*": if everything is denied, nothing else in the rules matters.
            "deny": st.sampled_from([None, None, None, "*"]) | entries,
            "params": params,
        }
    )


def _globs(name: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    shortened = st.tuples(name, st.integers(1, 4)).map(lambda drawn: drawn[0][: drawn[1]] + "*")
    return shortened | name.map(lambda text: "?" + text[1:])


def _short_forms(tool: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    argument = st.sampled_from(COMMANDS) | st.lists(WORDS, min_size=1, max_size=3).map(" ".join)
    pattern = argument | argument.map("{}:*".format) | st.just("*")
    return st.tuples(tool, pattern).map(lambda drawn: f"{drawn[0]}({drawn[1]})")


def _rules_about(tool: ToolUnderTest) -> st.SearchStrategy[dict[str, Any]]:
    """The limits leave values of its schema."""
    limits = {name: _limits(schema) for name, schema in tool.properties.items()}
    return _some({name: each for name, each in limits.items() if each is not None})


def _limits(schema: Any) -> st.SearchStrategy[dict[str, Any]] | None:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if kind in ("integer", "number"):
        return _some({"minimum": st.integers(-20, 5), "maximum": st.integers(5, 100)})
    if kind == "string":
        lengths = {"minLength": st.integers(0, 3), "maxLength": st.integers(3, 12)}
        return _some(lengths) | _some({"pattern": st.sampled_from(_PATTERNS)})
    return None


def _some(parts: Mapping[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    if not parts:
        return st.just({})
    names = st.lists(st.sampled_from(list(parts)), min_size=1, max_size=len(parts), unique=True)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({name: parts[name] for name in chosen}))


def _rules() -> st.SearchStrategy[dict[str, Any]]:
    lengths, numbers = st.integers(0, 12), st.integers(-20, 20) | st.floats(-20, 20)
    texts: dict[str, st.SearchStrategy[Any]] = {
        "minLength": lengths,
        "maxLength": lengths,
        "pattern": st.sampled_from(_PATTERNS),
    }
    bounds: dict[str, st.SearchStrategy[Any]] = {"minimum": numbers, "maximum": numbers}
    types = st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True)
    enum = st.lists(json_values(max_leaves=3), min_size=1, max_size=3)
    return st.one_of(
        st.fixed_dictionaries({"type": st.just("string")}, optional=texts),
        st.fixed_dictionaries({"type": st.sampled_from(["integer", "number"])}, optional=bounds),
        st.fixed_dictionaries({"enum": enum}),
        st.fixed_dictionaries({}, optional={"type": types, "enum": enum, **texts, **bounds}),
    )
