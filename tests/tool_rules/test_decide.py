"""Decisions about tools and calls, and the entry behind each."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.errors import ToolInputError, ToolNotAllowedError, ToolParameterTypeError
from kantan_agents.testing.properties import expect_events
from kantan_agents.testing.strategies import tool_calls, tool_rules
from kantan_agents.tool_rules import (
    NO_RULES,
    Decision,
    RuleLayers,
    ToolFacts,
    ToolRules,
    decide_call,
    decide_tool,
    is_quick,
    needs_arguments,
)
from tests.tool_rules.drawn_calls import (
    SCHEMAS,
    about_parameters,
    calls_of_all_kinds,
    note,
    rules_of_all_kinds,
)

BASH = ToolFacts(("Bash",), "command")
public_rules = tool_rules()


def rule_for(rules: dict[str, Any], tool: ToolFacts, arguments: dict[str, Any]) -> str:
    return decide_call(ToolRules.parse(rules), tool, arguments).rule


def test_without_rules_everything_is_allowed() -> None:
    decision = decide_call(NO_RULES, BASH, {"command": "rm"})
    assert decision == Decision(allowed=True)
    assert decision.rule == "no rule is about it"


@pytest.mark.parametrize(
    ("rules", "rule"),
    [
        ({"allow": "*", "deny": "*"}, "deny: *"),
        ({"allow": ["Bash"], "deny": ["Bash"]}, "deny: Bash"),
        ({"allow": ["Bash"], "deny": ["B*"]}, "deny: B*"),
        ({"allow": ["Bash(git:*)"], "deny": ["Bash"]}, "deny: Bash"),
        ({"allow": ["Bash"], "deny": ["Bash(git:*)"]}, "deny: Bash(git:*)"),
        ({"allow": ["Bash(git log)"], "deny": ["Bash(git:*)"]}, "deny: Bash(git:*)"),
        ({"allow": ["Bash"], "deny": ["Bash(*)"]}, "deny: Bash(*)"),
        ({"allow": [], "params": {"Bash": {"command": {"maxLength": 1}}}}, "allow has no entry for it"),
        (
            {"allow": ["Bash(npm:*)"], "params": {"Bash": {"command": {"maxLength": 1}}}},
            "allow has no entry for it",
        ),
        ({"deny": ["Bash(git:*)"], "params": {"Bash": {"command": {"maxLength": 1}}}}, "deny: Bash(git:*)"),
        (
            {"allow": ["Bash"], "params": {"Bash": {"command": {"maxLength": 1}}}},
            "params: Bash.command.maxLength",
        ),
        ({"params": {"B*": {"command": {"maxLength": 1}}}}, "params: B*.command.maxLength"),
    ],
)
def test_deny_decides_before_allow_and_allow_before_params(rules: dict[str, Any], rule: str) -> None:
    decision = decide_call(ToolRules.parse(rules), BASH, {"command": "git log"})
    assert not decision.allowed
    assert decision.rule == rule


@pytest.mark.parametrize(
    ("rules", "rule"),
    [
        ({}, "no rule is about it"),
        ({"deny": ["x"], "params": {"Bash": {"command": {"maxLength": 9}}}}, "no rule is about it"),
        ({"allow": "*"}, "allow: *"),
        ({"allow": ["B*", "Bash"]}, "allow: Bash"),
        ({"allow": ["[AB]*"]}, "allow: [AB]*"),
        ({"allow": ["Bash(*)"]}, "allow: Bash(*)"),
        ({"allow": ["Bash(npm:*)", "Bash(git:*)"], "deny": ["Bash(git push:*)"]}, "allow: Bash(git:*)"),
    ],
)
def test_an_allowed_call_names_the_entry_that_allows_it(rules: dict[str, Any], rule: str) -> None:
    decision = decide_call(ToolRules.parse(rules), BASH, {"command": "git log"})
    assert decision.allowed
    assert decision.error is None
    assert decision.rule == rule


@pytest.mark.parametrize("rules", [{"deny": ["fs.read"]}, {"allow": []}, {"deny": ["read(/etc:*)"]}])
def test_a_refusal_is_e8_with_the_name_the_model_sees(rules: dict[str, Any]) -> None:
    tool = ToolFacts(("read", "fs.read"), "path")
    error = decide_call(ToolRules.parse(rules), tool, {"path": "/etc"}).error
    assert isinstance(error, ToolNotAllowedError)
    assert str(error) == "[kantan-agents][E8] Tool is not allowed: read"


def test_an_entry_may_use_any_name_of_the_tool() -> None:
    tool = ToolFacts(("get", "mcp__github__get"), "id")
    for entry in ("get", "mcp__github__get", "mcp__github__*", "mcp__github__get(*)"):
        assert rule_for({"deny": [entry]}, tool, {}) == f"deny: {entry}"
        assert rule_for({"allow": [entry]}, tool, {}) == f"allow: {entry}"
    assert rule_for({"allow": ["mcp__github__get(7)"]}, tool, {"id": "7"}) == "allow: mcp__github__get(7)"


@given(public_rules, st.data())
def test_a_call_of_a_tool_that_may_not_be_used_is_never_allowed(
    public: dict[str, Any], data: st.DataObject
) -> None:
    rules = ToolRules.parse(public)
    name, arguments = data.draw(tool_calls(rules))
    tool = ToolFacts((name,), "command")
    decision = decide_tool(rules, tool)
    assert decision.allowed == rules.permits(name)
    if not decision.allowed:
        assert not decide_call(rules, tool, arguments).allowed
    elif not needs_arguments(rules, tool):
        assert decide_call(rules, tool, arguments) == decision


@expect_events("allowed", "refused by allow", "refused by deny", "refused by params")
@given(about_parameters | rules_of_all_kinds, st.data())
def test_entries_decide_first_and_parameters_second(public: dict[str, Any], data: st.DataObject) -> None:
    rules = ToolRules.parse(public)
    name, arguments = data.draw(tool_calls(rules, tools=SCHEMAS, invalid=1) | tool_calls(rules))
    tool = ToolFacts((name,), "command")
    by_entries = decide_call(attrs.evolve(rules, params={}), tool, arguments)
    checks = rules.checks(tool.names)
    breach = checks.breach(name, arguments) if checks is not None else None
    decision = decide_call(rules, tool, arguments)
    note(decision)
    assert decision.allowed == (by_entries.allowed and breach is None)
    if by_entries.allowed:
        expected = ("params", breach.entry) if breach is not None else (by_entries.key, by_entries.entry)
        assert (decision.key, decision.entry) == expected


@expect_events("allowed", "refused by allow", "refused by deny")
@given(rules_of_all_kinds, st.data())
def test_only_a_refusal_has_an_error(public: dict[str, Any], data: st.DataObject) -> None:
    rules = ToolRules.parse(public)
    name, arguments = data.draw(calls_of_all_kinds(rules))
    decision = decide_call(rules, ToolFacts((name,), "command"), arguments)
    note(decision)
    assert (decision.error is None) == decision.allowed
    assert decision.allowed or decision.key is not None
    if decision.key in ("allow", "deny") and decision.entry is not None:
        listed = getattr(rules, decision.key)
        assert decision.entry == listed or decision.entry in listed


@given(st.lists(public_rules.map(ToolRules.parse), min_size=1, max_size=3), st.data())
def test_the_deciding_entry_is_in_a_layer(stacked: list[ToolRules], data: st.DataObject) -> None:
    layers = RuleLayers(tuple((f"layer {place}", rules) for place, rules in enumerate(stacked)))
    name, arguments = data.draw(tool_calls(data.draw(st.sampled_from(stacked))))
    decision = decide_call(layers.rules, ToolFacts((name,), "command"), arguments)
    deciding = layers.deciding(decision)
    assert (decision.key is None) == (deciding == ())
    assert list(deciding) == [layer for layer, _ in layers.layers if layer in deciding], (
        "the winning one last"
    )


def test_every_layer_with_the_entry_is_named_the_winning_one_last() -> None:
    base = {"deny": ["shell"], "params": {"search": {"limit": {"maximum": 10}}}}
    provider = {"allow": ["search"], "params": {"search": {"query": {"minLength": 1}}}}
    explicit = {"deny": ["shell", "fetch"], "params": {"search": {"limit": {"maximum": 5}}}}
    layers = RuleLayers()
    for name, rules in {"base": base, "provider notes": provider, "explicit": explicit}.items():
        layers = layers.with_layer(name, ToolRules.parse(rules))

    def deciding(tool: str, arguments: dict[str, Any]) -> tuple[str, ...]:
        return layers.deciding(decide_call(layers.rules, ToolFacts((tool,)), arguments))

    assert deciding("shell", {}) == ("base", "explicit")
    assert deciding("fetch", {}) == ("explicit",)
    assert deciding("other", {}) == ("provider notes",)
    assert deciding("search", {"limit": 7}) == ("base", "explicit")
    assert deciding("search", {"query": ""}) == ("provider notes",)
    assert deciding("search", {}) == ("provider notes",)


def test_a_layer_that_denies_every_call_by_a_call_pattern_is_named() -> None:
    layers = RuleLayers().with_layer("explicit", ToolRules.parse({"deny": ["Bash(*)"]}))
    assert layers.deciding(decide_tool(layers.rules, BASH)) == ("explicit",)


def test_a_wrong_type_is_attributed_to_the_rule_of_the_parameter() -> None:
    tool = ToolFacts(("search",), schema={"properties": {"limit": {"type": "integer"}}})
    layers = RuleLayers().with_layer(
        "explicit", ToolRules.parse({"params": {"search": {"limit": {"maximum": 9}}}})
    )
    decision = decide_call(layers.rules, tool, {"limit": "10"})
    assert isinstance(decision.error, ToolParameterTypeError)
    assert decision.rule == "params: search.limit"
    assert layers.deciding(decision) == ("explicit",)


@pytest.mark.parametrize(
    ("rules", "needed"),
    [
        ({}, False),
        ({"allow": "*"}, False),
        ({"allow": ["Bash"]}, False),
        ({"allow": ["Bash", "Bash(git:*)"]}, False),
        ({"allow": ["Bash(git:*)"]}, True),
        ({"deny": ["Bash(git:*)"]}, True),
        ({"deny": ["sh(git:*)"]}, False),
        ({"params": {"Bash": {"command": {"type": "string"}}}}, True),
        ({"params": {"Bash": {"command": {}}}}, False),
        ({"params": {"sh": {"command": {"type": "string"}}}}, False),
    ],
)
def test_arguments_are_needed_only_if_a_rule_concerns_them(rules: dict[str, Any], needed: bool) -> None:
    assert needs_arguments(ToolRules.parse(rules), BASH) is needed


@pytest.mark.parametrize(
    "rules", [{}, {"deny": ["Bash"]}, {"params": {"Bash": {"command": {"maxLength": 9}}}}]
)
def test_a_decision_without_patterns_is_quick_with_any_text(rules: dict[str, Any]) -> None:
    assert is_quick(ToolRules.parse(rules), BASH, {"command": "a" * 1_000_000})


@pytest.mark.parametrize(
    "rules",
    [
        {"deny": ["Bash(rm:*)"]},
        {"allow": ["Bash(git:*)"]},
        {"params": {"Bash": {"command": {"pattern": r"(\w{1,50}\s){1,20}$"}}}},
    ],
)
def test_a_decision_by_patterns_is_quick_with_a_short_text_only(rules: dict[str, Any]) -> None:
    assert is_quick(ToolRules.parse(rules), BASH, {"command": "git log"})
    assert is_quick(ToolRules.parse(rules), BASH, {"command": 3})
    assert not is_quick(ToolRules.parse(rules), BASH, {"command": "a;rm" * 50_000})
    assert is_quick(ToolRules.parse(rules), BASH, {"other": "a" * 1_000_000})


def test_for_a_tool_known_by_name_only_the_first_text_of_a_call_is_matched() -> None:
    tool = ToolFacts(("Bash",), guessed=True)
    assert tool.for_arguments({"timeout": 3, "command": "git", "note": "x"}).parameter == "command"
    assert tool.for_arguments({"timeout": 3}).parameter is None
    assert BASH.for_arguments({"note": "x"}) is BASH


def test_arguments_with_invalid_unicode_are_e10() -> None:
    rules = ToolRules.parse({"params": {"Bash": {"command": {"pattern": "^a"}}}})
    with pytest.raises(ToolInputError):
        decide_call(rules, BASH, {"command": "a\ud800"})
