"""Hypothesis strategies for property tests of agents, tools and their rules.

They need Hypothesis, which the extra ``testing`` installs. No other module of ``kantan_agents.testing`` does.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

try:
    from hypothesis import strategies as st
except ModuleNotFoundError as error:
    raise ImportError(
        "kantan_agents.testing.strategies needs Hypothesis; install it with: pip install hypothesis"
    ) from error

from kantan_agents.context import is_reserved
from kantan_agents.prompt import Prompt
from kantan_agents.tool_rules import ParameterChecks, ToolRules
from kantan_agents.tool_rules.calls import CallPattern, is_call_pattern, parse_call_pattern
from kantan_agents.tool_rules.globs import is_glob
from kantan_agents.tool_rules.keywords import TYPES
from kantan_agents.tool_rules.parameters import ParameterRule, parse_path

__all__ = ["contexts", "json_values", "prompts", "tool_calls", "tool_rules"]

Names = st.SearchStrategy[str] | Sequence[str]
"""Tool names to draw from: a strategy or a sequence of names."""

_WORD = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
_TOOLS = ("search", "read_file", "write_file", "Bash", "fs.read", "mcp__github__get_issue")
_PARAMETERS = ("query", "limit", "command", "filter.limit", "filter.user.name", "ids[]", "rows[].id")
_PATTERNS = (r"^[a-z]+$", r"\d", r"^(git|npm) ", r"[A-Z]{2,4}", r"\.md$", r"^https://")
_COMMANDS = ("git", "git status", "npm run test", "ls -la", "rm -rf build")
_CHAINED = (" && ", "; ", " | ", "\n")
_LONGEST = 20_000


def json_values(*, max_leaves: int = 8, max_length: int = 12) -> st.SearchStrategy[Any]:
    """Draw JSON values: null, booleans, finite numbers, strings, arrays and objects.

    Each value survives ``json.loads(json.dumps(value))`` unchanged.

    Args:
        max_leaves: Approximate maximum number of scalars in a value.
        max_length: Maximum number of characters in a string or key, and of elements in an array or object.
    """
    texts = st.text(max_size=max_length)
    numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    return st.recursive(
        st.none() | st.booleans() | numbers | texts,
        lambda inner: (
            st.lists(inner, max_size=max_length) | st.dictionaries(texts, inner, max_size=max_length)
        ),
        max_leaves=max_leaves,
    )


def tool_rules(names: Names | None = None) -> st.SearchStrategy[dict[str, Any]]:
    """Draw valid tool rules in their public dict shape.

    Entries are plain names, glob patterns and ``Tool(param pattern)`` short forms. Parameter paths are plain,
    dotted, or lead to array items. All seven keywords occur, also in combinations that no value satisfies.

    Args:
        names: Tool names to draw from, a strategy or a sequence. Pass the names of your agent's tools to get
            rules about them. The default is a small fixed set of made-up names.

    Returns:
        A strategy for ``{"allow": "*" | [entry, ...] | None, "deny": "*" | [entry, ...] | None,
        "params": {tool: {parameter: {keyword: value}}}}``.
    """
    name = _names(names)
    tool = name | _globs(name)
    entries = st.lists(tool | _short_forms(tool), max_size=4, unique=True)
    rules = st.dictionaries(st.sampled_from(_PARAMETERS) | _WORD, _rules(), min_size=1, max_size=3)
    return st.fixed_dictionaries(
        {
            "allow": st.sampled_from([None, "*"]) | entries,
            # Rarely "*": if everything is denied, nothing else in the rules matters.
            "deny": st.sampled_from([None, None, None, "*"]) | entries,
            "params": st.just({}) | st.dictionaries(tool, rules | st.just({}), min_size=1, max_size=2),
        }
    )


def tool_calls(
    rules: Mapping[str, Any] | ToolRules, names: Names | None = None
) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    """Draw tool calls, some of which comply with the given rules and some of which violate them.

    The tools are those that the rules name (for a pattern, a name that it covers) and others. For a parameter
    rule, values near its limits are drawn and put at the parameter's path in nested objects and arrays. For a
    short form such as ``Bash(git:*)``, the parameter ``command`` holds matching and similar commands, also
    chained ones.

    Args:
        rules: Rules in their public dict shape, or parsed.
        names: Names of tools that the rules do not mention, a strategy or a sequence. The default is made-up
            names.

    Raises:
        ToolRulesTypeError: E18, the rules are not a dict.
        InvalidToolRulesError: E20, the rules are invalid.

    Returns:
        A strategy for ``(tool_name, arguments)``, the arguments a dict of JSON values.
    """
    parsed = rules if isinstance(rules, ToolRules) else ToolRules.parse(rules)
    return _calls(parsed, _names(names))


def contexts(names: Names | None = None) -> st.SearchStrategy[dict[str, Any]]:
    """Draw contexts that a run accepts.

    Args:
        names: Tool names for the rules in them, as for ``tool_rules``.

    Returns:
        A strategy for dicts with any of ``"tool_rules"`` (rules or None), ``"history"`` (a list of
        ``{"role": "user" | "assistant", "text": str}``) and ``"result"`` (any JSON value), and with custom
        keys that hold JSON values.
    """
    entry = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "text": st.text()})
    reserved = st.fixed_dictionaries(
        {},
        optional={
            "tool_rules": st.none() | tool_rules(names),
            "history": st.lists(entry, max_size=4),
            "result": json_values(),
        },
    )
    custom = st.dictionaries(_WORD.filter(lambda key: not is_reserved(key)), json_values(), max_size=4)
    return st.builds(lambda custom, reserved: {**custom, **reserved}, custom, reserved)


def prompts() -> st.SearchStrategy[Prompt]:
    """Draw valid prompts, with and without ``meta``, ``id`` and ``$ctx`` markers."""
    blank_free = st.text(min_size=1, max_size=20).filter(str.strip)
    marker = _WORD.map(lambda name: f"{{{{ $ctx.{name} }}}}")
    text = st.lists(blank_free | marker, min_size=1, max_size=4).map(" ".join)
    return st.builds(
        Prompt,
        name=blank_free,
        version=blank_free,
        text=text,
        meta=st.none() | st.dictionaries(_WORD, json_values(max_leaves=4), max_size=3),
        id=st.none() | blank_free,
    )


def _names(names: Names | None) -> st.SearchStrategy[str]:
    if names is None:
        return st.sampled_from(_TOOLS) | _WORD
    return names if isinstance(names, st.SearchStrategy) else st.sampled_from(list(names))


def _globs(name: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    shortened = st.tuples(name, st.integers(1, 4)).map(lambda drawn: drawn[0][: drawn[1]] + "*")
    return shortened | name.map(lambda text: "?" + text[1:])


def _short_forms(tool: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    argument = st.sampled_from(_COMMANDS) | st.lists(_WORD, min_size=1, max_size=3).map(" ".join)
    pattern = argument | argument.map("{}:*".format) | st.just("*")
    return st.tuples(tool, pattern).map(lambda drawn: f"{drawn[0]}({drawn[1]})")


def _rules() -> st.SearchStrategy[dict[str, Any]]:
    """Rules for one parameter: about texts, about numbers, or any keywords thrown together."""
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


_OTHERS = st.dictionaries(_WORD, json_values(max_leaves=3), max_size=2)


@attrs.frozen(eq=False)
class _Values:
    """Values to try on one parameter rule, sorted by whether they comply with it."""

    valid: list[Any]
    invalid: list[Any]
    matching: st.SearchStrategy[str] | None

    @classmethod
    def for_rule(cls, keywords: Mapping[str, Any]) -> _Values:
        checks = ParameterChecks((ParameterRule("tool", "value", keywords),))
        sorted_out: tuple[list[Any], list[Any]] = ([], [])
        for value in _candidates(keywords):
            sorted_out[checks.breach("tool", {"value": value}) is not None].append(value)
        return cls(*sorted_out, matching=_matching(keywords.get("pattern")))

    def near(self, valid: bool) -> st.SearchStrategy[Any]:
        chosen = self.valid if valid else self.invalid
        values = st.sampled_from(chosen or [*self.valid, *self.invalid])
        return values | self.matching if valid and self.matching is not None else values


@st.composite
def _calls(draw: st.DrawFn, rules: ToolRules, foreign: st.SearchStrategy[str]) -> tuple[str, dict[str, Any]]:
    mentioned = [names for names in (_entries(rules), [*rules.params], [*rules.params]) if names]
    tool = draw(st.one_of(foreign, *(st.sampled_from(list(map(_example, names))) for names in mentioned)))
    arguments: dict[str, Any] = {}
    patterns = (*rules.allowed_calls((tool,)), *rules.denied_calls((tool,)))
    if patterns:
        arguments["command"] = draw(_commands(patterns))
    checks = rules.checks((tool,))
    all_valid = draw(st.booleans())
    for rule in checks.rules if checks is not None else ():
        # One invalid parameter is enough to violate the rules, so the others may be valid.
        near = _Values.for_rule(rule.keywords).near(all_valid or draw(st.booleans()))
        if rule.path not in arguments and draw(st.integers(0, 4)):
            spelled_out = draw(st.integers(0, 5)) == 0
            steps = (rule.path,) if spelled_out else parse_path(rule.path)
            arguments = _placed(arguments, steps, draw(near))
    others = draw(_OTHERS)
    return tool, {**others, **arguments} if draw(st.booleans()) else {**arguments, **others}


def _entries(rules: ToolRules) -> list[str]:
    listed = [entry for names in (rules.allow, rules.deny) if isinstance(names, tuple) for entry in names]
    return [parse_call_pattern(entry).tool if is_call_pattern(entry) else entry for entry in listed]


def _example(name: str) -> str:
    """Return a name that a glob pattern covers, or a plain name unchanged."""
    if not is_glob(name):
        return name
    return re.sub(r"\[(?!!)(.).*?\]", r"\1", name).replace("*", "x").replace("?", "x")


def _commands(patterns: Sequence[CallPattern]) -> st.SearchStrategy[str]:
    arguments = st.sampled_from([pattern.argument for pattern in patterns])
    more = arguments | st.tuples(arguments, _WORD).map(" ".join)
    chained = st.tuples(more, st.sampled_from(_CHAINED), more | st.sampled_from(_COMMANDS)).map("".join)
    return more | chained | st.sampled_from(_COMMANDS)


def _placed(inside: Any, steps: Sequence[str], value: Any) -> Any:
    """Return ``inside`` with ``value`` at a path; missing objects and arrays are created."""
    if not steps:
        return value
    first, rest = steps[0], steps[1:]
    if first == "[]":
        items = inside if isinstance(inside, list) and inside else [None]
        return [_placed(item, rest, value) for item in items]
    known = inside if isinstance(inside, dict) else {}
    return {**known, first: _placed(known.get(first), rest, value)}


def _candidates(keywords: Mapping[str, Any]) -> list[Any]:
    values = [None, True, False, 0, 1, 1.0, 0.5, -1, "", "text", "7", [], ["item"], {}, {"key": 1}]
    for value in keywords.get("enum", ()):
        values += [value, [value]]
    for keyword in ("minimum", "maximum"):
        values += _around(keywords[keyword]) if keyword in keywords else ()
    for keyword in ("minLength", "maxLength"):
        values += _texts_around(int(keywords[keyword])) if keyword in keywords else ()
    # Without duplicates, and copied: a test may change its arguments without effect on the next one.
    return [json.loads(text) for text in dict.fromkeys(map(json.dumps, values))]


def _around(limit: float) -> Iterable[Any]:
    yield from (limit - 1, limit, limit + 1, str(limit))
    if abs(limit) < 1 << 53:
        yield from (float(limit), limit - 0.5, limit + 0.5, int(limit))


def _texts_around(limit: int) -> Iterable[str]:
    for length in (limit - 1, limit, limit + 1):
        if 0 <= length <= _LONGEST:
            yield "a" * length
            yield "\N{MATHEMATICAL SCRIPT SMALL X}" * length  # one character, but four bytes


def _matching(pattern: str | None) -> st.SearchStrategy[str] | None:
    if pattern is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compiled = re.compile(pattern)
    except (re.error, Warning):
        return None  # the engine of the rules supports some patterns that Python does not
    return st.from_regex(compiled)
