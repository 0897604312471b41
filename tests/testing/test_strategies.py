from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from kantan_agents import Prompt
from kantan_agents.context import RESERVED_KEYS, check_context, fill_defaults
from kantan_agents.errors import PARAMETER_ERRORS, InvalidToolRulesError, ToolRulesTypeError
from kantan_agents.testing import strategies
from kantan_agents.testing.strategies import contexts, json_values, prompts, tool_calls, tool_rules
from kantan_agents.tool_rules import ToolFacts, ToolRules, decide_call, parse_arguments
from kantan_agents.tool_rules.calls import is_call_pattern
from kantan_agents.tool_rules.globs import is_glob

# Without shrinking: any example will do.
SEARCH = settings(max_examples=5_000, database=None, deadline=None, phases=[Phase.generate])
RULES: dict[str, Any] = {
    "allow": ["search", "fs.*", "Bash(git:*)"],
    "deny": ["fs.delete", "Bash(git push:*)"],
    "params": {
        "search": {"query": {"type": "string", "maxLength": 5}, "filter.limit": {"maximum": 10}},
        "fs.*": {"paths[]": {"pattern": "^/data/"}, "mode": {"enum": ["r", "w"]}},
    },
}


def decide(rules: Any, call: tuple[str, dict[str, Any]]) -> Any:
    return decide_call(ToolRules.parse(rules), ToolFacts((call[0],), "command"), call[1])


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


@pytest.mark.parametrize("kind", [type(None), bool, int, float, str, list, dict])
def test_json_values_are_of_every_type(kind: type) -> None:
    find(json_values(), lambda value: type(value) is kind, settings=SEARCH)


def test_json_values_are_nested() -> None:
    find(json_values(), lambda value: depth(value) > 3, settings=SEARCH)


# Tool rules


@given(tool_rules())
def test_tool_rules_are_valid_and_have_the_public_shape(rules: dict[str, Any]) -> None:
    assert sorted(rules) == ["allow", "deny", "params"]
    for key in ("allow", "deny"):
        assert rules[key] is None or rules[key] == "*" or isinstance(rules[key], list)
    assert isinstance(ToolRules.parse(rules), ToolRules)
    assert json.loads(json.dumps(rules)) == rules


@pytest.mark.parametrize("keyword", list(PARAMETER_ERRORS))
def test_tool_rules_have_every_keyword(keyword: str) -> None:
    def has_it(rules: dict[str, Any]) -> bool:
        return any(keyword in rule for tool in rules["params"].values() for rule in tool.values())

    find(tool_rules(), has_it, settings=SEARCH)


@pytest.mark.parametrize(
    "shape",
    [
        lambda rules: rules["allow"] == "*",
        lambda rules: rules["allow"] is None,
        lambda rules: rules["allow"] == [],
        lambda rules: rules["deny"] == "*",
        lambda rules: rules["deny"] is None,
        lambda rules: any(is_glob(entry) and not is_call_pattern(entry) for entry in entries(rules)),
        lambda rules: any(entry.endswith(":*)") for entry in entries(rules)),
        lambda rules: any(entry.endswith("(*)") for entry in entries(rules)),
        lambda rules: any(is_call_pattern(entry) and "*" not in entry for entry in entries(rules)),
        lambda rules: any(is_glob(tool) for tool in rules["params"]),
        lambda rules: any("." in path for tool in rules["params"].values() for path in tool),
        lambda rules: any("[]" in path for tool in rules["params"].values() for path in tool),
    ],
)
def test_tool_rules_have_every_shape(shape: Any) -> None:
    find(tool_rules(), shape, settings=SEARCH)


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


@pytest.mark.parametrize(
    "wanted",
    [
        lambda name, decision: decision.allowed,
        lambda name, decision: decision.rule == "allow has no entry for it",
        lambda name, decision: decision.rule == "deny: fs.delete",
        lambda name, decision: decision.rule == "deny: Bash(git push:*)",
        lambda name, decision: decision.rule == "allow: Bash(git:*)",
        lambda name, decision: decision.allowed and name == "search",
        lambda name, decision: decision.allowed and name.startswith("fs."),
        lambda name, decision: decision.rule == "params: search.query.type",
        lambda name, decision: decision.rule == "params: search.query.maxLength",
        lambda name, decision: decision.rule == "params: search.filter.limit.maximum",
        lambda name, decision: decision.rule == "params: fs.*.paths[].pattern",
        lambda name, decision: decision.rule == "params: fs.*.mode.enum",
        lambda name, decision: name == "Bash" and not decision.allowed and decision.key == "allow",
    ],
)
def test_tool_calls_comply_with_the_rules_and_violate_each_of_them(wanted: Any) -> None:
    find(tool_calls(RULES), lambda call: wanted(call[0], decide(RULES, call)), settings=SEARCH)


@pytest.mark.parametrize("keyword", list(PARAMETER_ERRORS))
@pytest.mark.parametrize("path", ["value", "filter.value", "rows[].value"])
def test_tool_calls_come_near_every_limit(keyword: str, path: str) -> None:
    limits = {"type": "integer", "enum": [7, {"a": 1}], "pattern": "^[0-9]{3}-x$"}
    rules = {"params": {"tool": {path: {keyword: limits.get(keyword, 3)}}}}

    def is_given(arguments: Any) -> bool:
        return "value" in json.dumps(arguments)

    invalid = find(tool_calls(rules), lambda call: not decide(rules, call).allowed, settings=SEARCH)
    valid = find(
        tool_calls(rules),
        lambda call: call[0] == "tool" and is_given(call[1]) and decide(rules, call).allowed,
        settings=SEARCH,
    )
    assert invalid[0] == valid[0] == "tool"
    assert type(decide(rules, invalid).error) is PARAMETER_ERRORS[keyword]


def test_compliant_and_violating_tool_calls_are_both_common() -> None:
    allowed = []

    @settings(max_examples=300, database=None, deadline=None)
    @given(tool_calls(RULES))
    def count(call: tuple[str, dict[str, Any]]) -> None:
        allowed.append(decide(RULES, call).allowed)

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


@pytest.mark.parametrize("key", ["tool_rules", "history", "result", None])
def test_contexts_come_with_and_without_each_key(key: str | None) -> None:
    if key is None:
        find(contexts(), lambda context: bool(set(context) - set(RESERVED_KEYS)), settings=SEARCH)
    else:
        find(contexts(), lambda context: bool(context.get(key)), settings=SEARCH)
        find(contexts(), lambda context: key not in context, settings=SEARCH)


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
    for wanted in (
        lambda prompt: "{{ $ctx." in prompt.text,
        lambda prompt: "{{" not in prompt.text,
        lambda prompt: prompt.meta,
        lambda prompt: prompt.meta is None,
        lambda prompt: prompt.id,
        lambda prompt: prompt.id is None,
    ):
        find(prompts(), wanted, settings=SEARCH)


# Hypothesis is an extra


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_testing_package_does_not_import_hypothesis() -> None:
    assert run_python("import sys, kantan_agents.testing; print('hypothesis' in sys.modules)") == "False"


def test_without_hypothesis_the_error_says_what_to_install() -> None:
    code = (
        "import sys\n"
        "sys.modules['hypothesis'] = None\n"
        "try:\n"
        "    import kantan_agents.testing.strategies\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    assert "pip install hypothesis" in run_python(code)


def test_everything_public_is_documented() -> None:
    reference = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")
    for name in strategies.__all__:
        assert getattr(strategies, name).__doc__
        assert f"::: kantan_agents.testing.strategies.{name}\n" in reference
