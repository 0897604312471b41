"""Rule modes and contexts with tool rules (spec 8.4)."""

from __future__ import annotations

import copy
from enum import Enum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given

from kantan_agents.core.context import fill_defaults
from kantan_agents.errors import InvalidToolRulesError, ToolRulesTypeError, UnknownToolRulesModeError
from kantan_agents.testing.strategies import tool_rules
from kantan_agents.tool_rules import ToolRules, ToolRulesMode, get_context_with_tool_rules, rules_of


class OtherMode(Enum):
    ALLOW_ALL = "allow_all"


@pytest.mark.parametrize(
    ("mode", "rules"),
    [
        (ToolRulesMode.ALLOW_ALL, {"allow": "*", "deny": [], "params": {}}),
        (ToolRulesMode.DENY_ALL, {"allow": [], "deny": "*", "params": {}}),
        (ToolRulesMode.RECOMMENDED, {"allow": None, "deny": None, "params": {}}),
    ],
)
def test_spec_8_4_a_mode_becomes_a_context_with_its_rules(mode: ToolRulesMode, rules: dict[str, Any]) -> None:
    assert get_context_with_tool_rules(mode) == {"tool_rules": rules, "result": None}


@given(tool_rules())
def test_spec_8_4_rules_become_a_context_with_a_copy_of_them(rules: dict[str, Any]) -> None:
    before = copy.deepcopy(rules)
    context = get_context_with_tool_rules(rules)
    assert ToolRules.parse(context["tool_rules"]) == ToolRules.parse(rules)
    context["tool_rules"]["params"]["another"] = {}
    assert rules == before


def test_the_context_has_only_the_given_keys() -> None:
    assert get_context_with_tool_rules({"deny": ["shell"]})["tool_rules"] == {"deny": ["shell"]}


def test_allow_all_permits_every_tool_and_deny_all_no_tool() -> None:
    assert ToolRules.parse(rules_of(ToolRulesMode.ALLOW_ALL)).permits("anything")
    assert ToolRules.parse(rules_of(ToolRulesMode.ALLOW_ALL)).permits_all
    assert not ToolRules.parse(rules_of(ToolRulesMode.DENY_ALL)).permits("anything")
    assert ToolRules.parse(rules_of(ToolRulesMode.RECOMMENDED)) == ToolRules()


@pytest.mark.parametrize("mode", list(ToolRulesMode))
def test_a_context_does_not_share_its_rules_with_the_next(mode: ToolRulesMode) -> None:
    first = get_context_with_tool_rules(mode)
    first["tool_rules"]["params"]["search"] = {"query": {"maxLength": 1}}
    first["tool_rules"]["deny"] = ["search"]
    assert get_context_with_tool_rules(mode)["tool_rules"] != first["tool_rules"]


@pytest.mark.parametrize("mode", list(ToolRulesMode))
def test_the_context_of_a_mode_is_one_that_a_run_accepts(mode: ToolRulesMode) -> None:
    context = get_context_with_tool_rules(mode)
    fill_defaults(context, keep_history=True)
    assert context["tool_rules"] == rules_of(mode)


def test_rules_may_be_any_mapping_and_sets_come_out_in_order() -> None:
    rules = MappingProxyType({"deny": {"b", "a"}, "params": MappingProxyType({"t": {"p": {"enum": (1,)}}})})
    assert rules_of(rules) == {"deny": ["a", "b"], "params": {"t": {"p": {"enum": [1]}}}}


def test_e9_for_a_member_of_another_enum() -> None:
    mode: Any = OtherMode.ALLOW_ALL
    with pytest.raises(UnknownToolRulesModeError) as caught:
        get_context_with_tool_rules(mode)
    assert str(caught.value) == f"[kantan-agents][E9] Unknown ToolRulesMode: {mode}"


@pytest.mark.parametrize(
    "rules",
    ["bad", "allow_all", "*", "", b"*", None, 3, ["search"], ("allow", "*"), {"search"}, ToolRulesMode],
)
def test_e18_for_a_value_that_is_neither_a_mode_nor_a_mapping(rules: Any) -> None:
    with pytest.raises(ToolRulesTypeError) as caught:
        get_context_with_tool_rules(rules)
    assert str(caught.value) == "[kantan-agents][E18] Tool rules must be a dict"
    assert caught.value.got == type(rules).__name__


def test_e20_for_rules_with_mistakes_before_a_run_begins() -> None:
    with pytest.raises(InvalidToolRulesError):
        get_context_with_tool_rules({"allow": "search"})
