from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from kantan_agents import Prompt
from kantan_agents.core.context import RESERVED_KEYS, check_context, fill_defaults
from kantan_agents.errors import PARAMETER_ERRORS, InvalidToolRulesError, ToolRulesTypeError
from kantan_agents.testing import strategies
from kantan_agents.testing.strategies import contexts, json_values, prompts, tool_calls, tool_rules
from kantan_agents.tool_rules import ToolFacts, ToolRules, decide_call, parse_arguments
from kantan_agents.tool_rules.calls import is_call_pattern
from kantan_agents.tool_rules.globs import is_glob
from tests.programs import Preloaded

from .occurring import SEARCH, first_of_each

RULES: dict[str, Any] = {
    "allow": ["search", "fs.*", "Bash(git:*)"],
    "deny": ["fs.delete", "Bash(git push:*)"],
    "params": {
        "search": {"query": {"type": "string", "maxLength": 5}, "filter.limit": {"maximum": 10}},
        "fs.*": {"paths[]": {"pattern": "^/data/"}, "mode": {"enum": ["r", "w"]}},
    },
}


def decide(rules: Any, call: tuple[str, dict[str, Any]]) -> Any:
    parsed = rules if isinstance(rules, ToolRules) else ToolRules.parse(rules)
    return decide_call(parsed, ToolFacts((call[0],), "command"), call[1])


def entries(rules: dict[str, Any]) -> list[str]:
    return [entry for key in ("allow", "deny") if isinstance(rules[key], list) for entry in rules[key]]


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth, inner), default=0)


# JSON values


@given(json_values())
def test_json_values_survive_json(value: Any) -> None:
    text = json.dumps(value, allow_nan=False)
    assert json.loads(text) == value
    assert json.dumps(json.loads(text)) == text
    text.encode()


@given(json_values(max_leaves=2, max_length=3))
def test_json_values_respect_the_given_sizes(value: Any) -> None:
    def check(one: Any) -> None:
        if isinstance(one, (str, list, dict)):
            assert len(one) <= 3
        if isinstance(one, (list, dict)):
            for inner in one.values() if isinstance(one, dict) else one:
                check(inner)

    check(value)


def test_json_values_are_of_every_type_and_nested() -> None:
    def is_of(kind: type) -> Callable[[Any], bool]:
        return lambda value: type(value) is kind

    kinds = {kind.__name__: is_of(kind) for kind in (type(None), bool, int, float, str, list, dict)}
    first_of_each(json_values(), kinds | {"nested": lambda value: depth(value) > 3})


# Tool rules


@given(tool_rules())
def test_tool_rules_are_valid_and_have_the_public_shape(rules: dict[str, Any]) -> None:
    assert sorted(rules) == ["allow", "deny", "params"]
    for key in ("allow", "deny"):
        assert rules[key] is None or rules[key] == "*" or isinstance(rules[key], list)
    assert isinstance(ToolRules.parse(rules), ToolRules)
    assert json.loads(json.dumps(rules)) == rules


def test_tool_rules_have_every_keyword_and_every_shape() -> None:
    def paths(rules: dict[str, Any]) -> list[str]:
        return [path for tool in rules["params"].values() for path in tool]

    def has(keyword: str) -> Callable[[dict[str, Any]], bool]:
        return lambda rules: any(keyword in one for tool in rules["params"].values() for one in tool.values())

    shapes: dict[str, Callable[[dict[str, Any]], bool]] = {
        "everything is allowed": lambda rules: rules["allow"] == "*",
        "allow is missing": lambda rules: rules["allow"] is None,
        "nothing is allowed": lambda rules: rules["allow"] == [],
        "everything is denied": lambda rules: rules["deny"] == "*",
        "deny is missing": lambda rules: rules["deny"] is None,
        "a glob": lambda rules: any(is_glob(one) and not is_call_pattern(one) for one in entries(rules)),
        "a beginning of calls": lambda rules: any(entry.endswith(":*)") for entry in entries(rules)),
        "all calls": lambda rules: any(entry.endswith("(*)") for entry in entries(rules)),
        "one call": lambda rules: any(is_call_pattern(one) and "*" not in one for one in entries(rules)),
        "parameters of a glob": lambda rules: any(is_glob(tool) for tool in rules["params"]),
        "an inner parameter": lambda rules: any("." in path for path in paths(rules)),
        "the elements of an array": lambda rules: any("[]" in path for path in paths(rules)),
    }
    first_of_each(tool_rules(), shapes | {keyword: has(keyword) for keyword in PARAMETER_ERRORS})


@pytest.mark.parametrize("names", [["pay", "refund"], ("pay", "refund"), st.sampled_from(["pay", "refund"])])
def test_tool_rules_are_about_the_given_names(names: Any) -> None:
    @settings(max_examples=20, database=None)
    @given(tool_rules(names))
    def about_these(rules: dict[str, Any]) -> None:
        for entry in (*entries(rules), *rules["params"]):
            tool = entry.partition("(")[0]
            assert tool in ("pay", "refund") or is_glob(tool)
            assert tool[0] in "pr?"

    about_these()


# Tool calls


@given(tool_rules(), st.data())
def test_tool_calls_are_a_name_and_a_json_object(rules: dict[str, Any], data: st.DataObject) -> None:
    name, arguments = data.draw(tool_calls(rules))
    assert isinstance(name, str)
    text = json.dumps(arguments, allow_nan=False)
    assert parse_arguments(name, text) == arguments


@given(tool_rules(), st.data())
def test_drawing_tool_calls_does_not_change_the_rules(rules: dict[str, Any], data: st.DataObject) -> None:
    before = copy.deepcopy(rules)
    parsed = ToolRules.parse(rules)
    for given_rules in (rules, parsed):
        _, arguments = data.draw(tool_calls(given_rules))
        for value in arguments.values():
            if isinstance(value, (list, dict)):
                value.clear()
    assert rules == before
    assert parsed == ToolRules.parse(before)


def test_tool_calls_comply_with_the_rules_and_violate_each_of_them() -> None:
    rules = ToolRules.parse(RULES)
    decided = tool_calls(RULES).map(lambda call: (call[0], decide(rules, call)))
    named = (
        "allow has no entry for it",
        "deny: fs.delete",
        "deny: Bash(git push:*)",
        "allow: Bash(git:*)",
        "params: search.query.type",
        "params: search.query.maxLength",
        "params: search.filter.limit.maximum",
        "params: fs.*.paths[].pattern",
        "params: fs.*.mode.enum",
    )

    def by(rule: str) -> Callable[[tuple[str, Any]], bool]:
        return lambda drawn: bool(drawn[1].rule == rule)

    others: dict[str, Callable[[tuple[str, Any]], bool]] = {
        "search": lambda drawn: drawn[1].allowed and drawn[0] == "search",
        "fs": lambda drawn: drawn[1].allowed and drawn[0].startswith("fs."),
        "Bash": lambda drawn: drawn[0] == "Bash" and not drawn[1].allowed and drawn[1].key == "allow",
    }
    first_of_each(decided, others | {rule: by(rule) for rule in named})


@pytest.mark.parametrize("keyword", list(PARAMETER_ERRORS))
@pytest.mark.parametrize("path", ["value", "filter.value", "rows[].value"])
def test_tool_calls_come_near_every_limit(keyword: str, path: str) -> None:
    limits = {"type": "integer", "enum": [7, {"a": 1}], "pattern": "^[0-9]{3}-x$"}
    rules = {"params": {"tool": {path: {keyword: limits.get(keyword, 3)}}}}

    def is_given(arguments: Any) -> bool:
        return "value" in json.dumps(arguments)

    calls = first_of_each(
        tool_calls(rules),
        {
            "invalid": lambda call: not decide(rules, call).allowed,
            "valid": lambda call: call[0] == "tool" and is_given(call[1]) and decide(rules, call).allowed,
        },
    )
    assert calls["invalid"][0] == "tool"
    assert type(decide(rules, calls["invalid"]).error) is PARAMETER_ERRORS[keyword]


def test_compliant_and_violating_tool_calls_are_both_common() -> None:
    allowed = []
    rules = ToolRules.parse(RULES)

    @settings(max_examples=300, database=None, deadline=None)
    @given(tool_calls(RULES))
    def count(call: tuple[str, dict[str, Any]]) -> None:
        allowed.append(decide(rules, call).allowed)

    count()
    assert 0.15 < sum(allowed) / len(allowed) < 0.85


def test_tool_calls_include_tools_that_the_rules_do_not_mention() -> None:
    find(tool_calls(RULES, ["launch"]), lambda call: call[0] == "launch", settings=SEARCH)
    find(tool_calls(RULES, st.just("launch")), lambda call: call[0] == "search", settings=SEARCH)
    find(tool_calls({}), lambda call: bool(call[1]), settings=SEARCH)


@pytest.mark.parametrize("entry", ["fs.*", "?s", "f[sx].*", "f[!sx]*", "[fs", "*"])
def test_tool_calls_find_names_that_a_pattern_covers(entry: str) -> None:
    rules = {"deny": [entry]}
    name, _ = find(tool_calls(rules, ["zz"]), lambda call: not decide(rules, call).allowed, settings=SEARCH)
    assert name


@pytest.mark.parametrize("pattern", ["^[0-9]{3}-x$", r"^\p{L}+$", "(?i)^abc$", "[[a]b]"])
def test_any_pattern_that_rules_accept_is_supported(pattern: str) -> None:
    rules = {"params": {"tool": {"value": {"pattern": pattern, "minLength": 30_000, "minimum": 10**400}}}}
    find(tool_calls(rules), lambda call: not decide(rules, call).allowed, settings=SEARCH)


def test_rules_with_mistakes_are_an_error_at_once() -> None:
    with pytest.raises(InvalidToolRulesError):
        tool_calls({"allow": "search"})
    with pytest.raises(ToolRulesTypeError):
        tool_calls([])  # type: ignore[call-overload]


# Contexts and prompts


@given(contexts(), st.booleans())
def test_contexts_are_accepted_by_a_run(context: dict[str, Any], keep_history: bool) -> None:
    assert check_context(context) is context
    fill_defaults(context, keep_history=keep_history)
    ToolRules.parse(context["tool_rules"] or {})
    assert all(set(entry) == {"role", "text"} for entry in context.get("history", ()))
    assert json.loads(json.dumps(context)) == context


def test_contexts_come_with_and_without_each_key() -> None:
    kinds: dict[str, Callable[[dict[str, Any]], bool]] = {
        "a key of the caller": lambda context: bool(set(context) - set(RESERVED_KEYS))
    }
    for key in ("tool_rules", "history", "result"):
        kinds[f"with {key}"] = lambda context, key=key: bool(context.get(key))  # type: ignore[misc]
        kinds[f"without {key}"] = lambda context, key=key: key not in context  # type: ignore[misc]
    first_of_each(contexts(), kinds)


@given(contexts(["pay"]))
def test_the_rules_of_contexts_are_about_the_given_names(context: dict[str, Any]) -> None:
    params = (context.get("tool_rules") or {}).get("params", {})
    assert all(tool == "pay" or is_glob(tool) for tool in params)


@given(prompts())
def test_prompts_are_valid_and_can_be_recorded(prompt: Prompt) -> None:
    assert prompt.name.strip()
    assert prompt.version.strip()
    assert prompt.text.strip()
    assert prompt.resolve_id()
    json.dumps(prompt.meta)


def test_prompts_come_with_markers_meta_and_id_and_without() -> None:
    first_of_each(
        prompts(),
        {
            "a marker": lambda prompt: "{{ $ctx." in prompt.text,
            "no marker": lambda prompt: "{{" not in prompt.text,
            "meta": lambda prompt: prompt.meta,
            "no meta": lambda prompt: prompt.meta is None,
            "an id": lambda prompt: prompt.id,
            "no id": lambda prompt: prompt.id is None,
        },
    )


# Hypothesis is an extra


def test_the_testing_package_does_not_import_hypothesis(preloaded: Preloaded) -> None:
    done = preloaded.run(["-c", "import sys, kantan_agents.testing; print('hypothesis' in sys.modules)"])
    assert done.stdout == "False\n"


def test_without_hypothesis_the_error_says_what_to_install(preloaded: Preloaded) -> None:
    code = (
        "import sys\n"
        "sys.modules['hypothesis'] = None\n"
        "try:\n"
        "    import kantan_agents.testing.strategies\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    assert 'python -m pip install ".[testing]"' in preloaded.run(["-c", code]).stdout


def test_everything_public_has_a_docstring() -> None:
    for name in strategies.__all__:
        assert getattr(strategies, name).__doc__
