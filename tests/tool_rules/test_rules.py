"""Parsing, comparing and applying rule sets (spec 8.2)."""

from __future__ import annotations

import copy
import json
import pickle
from collections import OrderedDict
from enum import Enum
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.errors import InvalidToolRulesError, KantanAgentsError, ToolRulesTypeError
from kantan_agents.testing.strategies import json_values, tool_calls, tool_rules
from kantan_agents.tool_rules import NO_RULES, ToolFacts, ToolRules, decide_call

plain_names = st.text("abc", min_size=1, max_size=3)
patterns = st.text("abc*?", min_size=1, max_size=3)
name_sets = st.one_of(st.none(), st.just("*"), st.lists(plain_names | patterns))
keys = st.sampled_from(
    ["allow", "deny", "params", "Bash(git:*)", "search", "query", "type", "enum", "pattern"]
)


class Colour(str, Enum):
    RED = "red"


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


cyclic: list[Any] = []
cyclic.append(cyclic)

python_objects: st.SearchStrategy[Any] = st.deferred(
    lambda: (
        json_values(max_leaves=3)
        | st.floats()
        | st.binary(max_size=3)
        | st.characters(categories=["Cs"])
        | st.sampled_from(
            [
                object(),
                ToolRules,
                Colour.RED,
                Colour,
                MappingProxyType({"a": MappingProxyType({})}),
                OrderedDict(a=1),
                range(3),
                cyclic,
                nested(100_000),
                10**5000,
                -(10**400),
                len,
                ...,
            ]
        )
        | st.lists(python_objects, max_size=3)
        | st.dictionaries(keys | st.integers() | st.characters(categories=["Cs"]), python_objects, max_size=3)
        | st.frozensets(st.integers() | st.text(max_size=3), max_size=3)
    )
)


def problems_of(rules: Any) -> tuple[str, ...]:
    with pytest.raises(InvalidToolRulesError) as caught:
        ToolRules.parse(rules)
    return caught.value.problems


def covers(names: Any, tool: str) -> bool:
    return names == "*" or any(tool == name or fnmatchcase(tool, name) for name in names)


@given(allow=name_sets, deny=name_sets, tool=plain_names)
def test_a_tool_is_permitted_if_an_entry_allows_it_and_none_denies_it(
    allow: Any, deny: Any, tool: str
) -> None:
    rules = ToolRules.parse({"allow": allow, "deny": deny})
    allowed = allow is None or covers(allow, tool)
    denied = deny is not None and covers(deny, tool)
    assert rules.permits(tool) == (allowed and not denied)
    if rules.permits_all:
        assert rules.permits(tool)


@given(allow=name_sets, deny=name_sets, names=st.lists(plain_names, min_size=1, max_size=3))
def test_a_tool_with_several_names_is_denied_under_each_and_allowed_under_any(
    allow: Any, deny: Any, names: list[str]
) -> None:
    denied = deny is not None and any(covers(deny, name) for name in names)
    allowed = allow is None or any(covers(allow, name) for name in names)
    assert ToolRules.parse({"allow": allow, "deny": deny}).permits(*names) == (allowed and not denied)


@pytest.mark.parametrize("tool", ["[ab]", "a", "b"])
def test_a_pattern_is_also_an_exact_name(tool: str) -> None:
    assert not ToolRules.parse({"deny": ["[ab]"]}).permits(tool)


def test_names_and_patterns_are_case_sensitive() -> None:
    rules = ToolRules.parse({"deny": ["Shell", "MCP*"]})
    assert rules.permits("shell", "mcp__a")


def test_entries_keep_their_order_without_duplicates() -> None:
    rules = ToolRules.parse({"allow": ["b", "a", "b"], "deny": {"d", "c"}})
    assert rules.allow == ("b", "a")
    assert rules.deny == ("c", "d")


def test_a_tuple_is_a_list_of_names() -> None:
    assert not ToolRules.parse({"deny": ("shell",)}).permits("shell")


def test_a_star_among_names_is_every_tool() -> None:
    assert ToolRules.parse({"deny": ["a", "*"]}).deny == "*"


@pytest.mark.parametrize("empty", [{}, {"allow": None, "deny": None, "params": None}, {"params": {}}])
def test_empty_rules_permit_all(empty: dict[str, Any]) -> None:
    rules = ToolRules.parse(empty)
    assert rules == NO_RULES
    assert rules.permits_all


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ({"allow": "read"}, "allow: must be \"*\", a list of tool names or None, not 'read'"),
        ({"deny": 3}, 'deny: must be "*", a list of tool names or None, not 3'),
        ({"deny": {"shell": True}}, "deny: must be \"*\", a list of tool names or None, not {'shell': True}"),
        ({"deny": [3, ""]}, "deny: 3 is not a tool name; deny: '' is not a tool name"),
        ({"deny": [" shell"]}, "deny: ' shell' is not a tool name"),
        ({"alow": []}, "alow: unknown key, there are allow, deny and params"),
        ({1: []}, "1: unknown key, there are allow, deny and params"),
        ({"params": ["search"]}, "params: must be a dict of tool names, not ['search']"),
        ({"params": {"search ": {}}}, "params: 'search ' is not a tool name"),
        ({"params": {"Bash(git:*)": {}}}, "params: 'Bash(git:*)' is not a tool name"),
        ({"params": {"search": None}}, "params.search: must be a dict of parameter names, not None"),
        ({"params": {"search": {3: {}}}}, "params.search: 3 is not a parameter name"),
        ({"params": {"search": {"q": 3}}}, "params.search.q: must be a dict of keywords, not 3"),
    ],
)
def test_a_mistake_is_an_error_that_names_it(rules: Any, problem: str) -> None:
    with pytest.raises(InvalidToolRulesError) as caught:
        ToolRules.parse(rules)
    assert str(caught.value) == f"[kantan-agents][E20] Invalid tool rules: {problem}"


def test_all_mistakes_are_reported_together_each_with_its_path() -> None:
    rules = {
        "allow": "read",
        "deny": [None, "Bash(git"],
        "x": 1,
        "params": {
            "search": {
                "query": {"maxlength": 3, "type": "str", "pattern": "(?=a)"},
                "a..b": {"minimum": "1"},
                "ids[0]": {"enum": []},
            },
            "read": [],
        },
    }
    found = problems_of(rules)
    assert [problem.split(": ", 1)[0] for problem in found] == [
        "x",
        "allow",
        "deny",
        "deny",
        "params.search.query.maxlength",
        "params.search.query.type",
        "params.search.query.pattern",
        "params.search.a..b",
        "params.search.a..b.minimum",
        "params.search.ids[0]",
        "params.search.ids[0].enum",
        "params.read",
    ]
    assert found[4] == "params.search.query.maxlength: unknown keyword, did you mean maxLength?"


@pytest.mark.parametrize("value", [None, [], "allow", 3, [("allow", [])]])
def test_spec_7_4_rules_other_than_a_mapping_are_e18(value: Any) -> None:
    with pytest.raises(ToolRulesTypeError) as caught:
        ToolRules.parse(value)
    assert caught.value.got == type(value).__name__


@given(st.dictionaries(keys, json_values()) | json_values())
def test_any_json_is_rules_or_a_kantan_agents_error(value: Any) -> None:
    try:
        rules = ToolRules.parse(value)
    except KantanAgentsError:
        return
    assert isinstance(rules.permits("tool"), bool)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "allow": python_objects,
            "deny": python_objects,
            "params": python_objects
            | st.dictionaries(
                st.just("tool"),
                st.dictionaries(st.text(max_size=4), st.dictionaries(keys, python_objects, max_size=3)),
            ),
        },
    )
    | python_objects
)
def test_any_python_object_is_rules_or_a_kantan_agents_error(value: Any) -> None:
    try:
        rules = ToolRules.parse(value)
    except KantanAgentsError:
        return
    assert ToolRules.parse(rules.to_dict()) == rules
    assert repr(rules)
    decision = decide_call(rules, ToolFacts(("tool",)), {"a": 1})
    assert decision.allowed == (decision.error is None)


@given(tool_rules())
def test_the_public_shape_survives_the_round_trip(public: dict[str, Any]) -> None:
    rules = ToolRules.parse(public)
    assert ToolRules.parse(rules.to_dict()) == rules
    assert ToolRules.parse(json.loads(json.dumps(rules.to_dict()))) == rules
    assert rules.to_dict()["params"] == public["params"]


@given(tool_rules())
def test_rules_survive_copying_and_pickling(public: dict[str, Any]) -> None:
    rules = ToolRules.parse(public)
    for twin in (copy.deepcopy(rules), pickle.loads(pickle.dumps(rules))):
        assert twin == rules
        assert hash(twin) == hash(rules)


def test_rules_that_differ_only_for_json_are_not_equal() -> None:
    assert ToolRules.parse({"params": {"t": {"p": {"enum": [1]}}}}) != ToolRules.parse(
        {"params": {"t": {"p": {"enum": [True]}}}}
    )


@given(tool_rules(), st.data())
def test_later_changes_to_the_callers_dict_have_no_effect(
    public: dict[str, Any], data: st.DataObject
) -> None:
    rules = ToolRules.parse(public)
    before = rules.to_dict()
    spoil(public)
    spoil(rules.to_dict())
    assert rules.to_dict() == before
    tool, arguments = data.draw(tool_calls(before))
    assert decide_call(rules, ToolFacts((tool,)), arguments) is not None


def spoil(value: Any) -> None:
    for inner in (
        list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        spoil(inner)
    if isinstance(value, (dict, list)):
        value.clear()


@given(tool_rules(), st.data())
def test_the_rules_for_one_tool_decide_like_all_the_rules(
    public: dict[str, Any], data: st.DataObject
) -> None:
    rules = ToolRules.parse(public)
    tool, arguments = data.draw(tool_calls(public))
    facts = ToolFacts((tool,), "command")
    part = ToolRules.parse(rules.about((tool,)))
    assert decide_call(part, facts, arguments).allowed == decide_call(rules, facts, arguments).allowed


def test_the_message_about_a_mistake_is_short_whatever_was_given() -> None:
    for value in (nested(100_000), cyclic, 10**5000, "x" * 100_000, ["y" * 100_000] * 1000):
        (problem,) = problems_of({"deny": {"shell": value}})
        assert len(problem) < 2000


def test_the_cache_of_names_is_bounded() -> None:
    rules = ToolRules.parse({"deny": ["x*"], "params": {"y*": {"p": {"type": "string"}}}})
    for number in range(10_000):
        assert rules.permits(f"tool{number}")
        assert rules.checks((f"tool{number}",)) is None
    assert len(rules._checks) <= 4096
    assert not rules.permits("x")
    assert rules.checks(("y1",)) is not None
