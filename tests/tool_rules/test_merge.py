"""Merging rule sets: algebraic properties and the examples of spec 9."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.testing.properties import event, expect_events
from kantan_agents.testing.strategies import tool_calls, tool_rules
from kantan_agents.tool_rules import (
    BASE,
    EXPLICIT,
    NO_RULES,
    RuleLayers,
    ToolFacts,
    ToolRules,
    decide_call,
    merge,
    provider_layer,
)

# Few names, so that layers concern the same tools.
NAMES = ("search", "read", "Bash")
public_rules = tool_rules(NAMES)
rules = public_rules.map(ToolRules.parse)
layers = st.lists(rules, max_size=4)


@given(rules, rules, rules)
def test_merging_is_associative(base: ToolRules, provider: ToolRules, explicit: ToolRules) -> None:
    assert base.merge(provider).merge(explicit) == base.merge(provider.merge(explicit))
    assert merge(base, provider, explicit) == base.merge(provider).merge(explicit)


@given(rules, rules)
def test_merging_twice_changes_nothing(base: ToolRules, explicit: ToolRules) -> None:
    assert base.merge(base) == base
    merged = base.merge(explicit)
    assert merged.merge(explicit) == merged


@given(rules)
def test_empty_rules_are_neutral(one: ToolRules) -> None:
    for nothing in (NO_RULES, ToolRules(), ToolRules.parse({})):
        assert one.merge(nothing) == one
        assert nothing.merge(one) == one
    assert merge() == NO_RULES


@given(layers, st.sampled_from(NAMES) | st.text(max_size=3))
def test_no_layer_reverts_another_layers_denial(stacked: list[ToolRules], name: str) -> None:
    merged = merge(*stacked)
    if any(layer.denying((name,)) is not None for layer in stacked):
        assert merged.denying((name,)) is not None
        assert not merged.permits(name)
    else:
        assert merged.denying((name,)) is None


@expect_events("denied")
@given(st.lists(rules, min_size=1, max_size=3), st.data())
def test_no_layer_reverts_a_denied_call(stacked: list[ToolRules], data: st.DataObject) -> None:
    asked = data.draw(st.sampled_from(stacked))
    name, arguments = data.draw(tool_calls(asked, NAMES))
    facts = ToolFacts((name,), "command")
    if decide_call(asked, facts, arguments).key == "deny":
        event("denied")
        assert not decide_call(merge(*stacked), facts, arguments).allowed


@given(layers, st.sampled_from(NAMES))
def test_a_name_is_allowed_if_any_layer_with_an_allow_list_allows_it(
    stacked: list[ToolRules], name: str
) -> None:
    merged = merge(*stacked)
    speaking = [layer for layer in stacked if layer.allow is not None]
    undenied = merge(*(ToolRules(allow=layer.allow) for layer in stacked))
    assert undenied.permits(name) == (
        not speaking or any(ToolRules(allow=layer.allow).permits(name) for layer in speaking)
    )
    assert (merged.allow is None) == (not speaking)


@given(rules, rules)
def test_the_later_layer_wins_for_each_keyword_of_a_parameter(earlier: ToolRules, later: ToolRules) -> None:
    merged = earlier.merge(later).params
    assert set(merged) == {*earlier.params, *later.params}
    for tool, parameters in merged.items():
        one, other = earlier.params.get(tool, {}), later.params.get(tool, {})
        assert set(parameters) == {*one, *other}
        for name, keywords in parameters.items():
            assert dict(keywords) == {**one.get(name, {}), **other.get(name, {})}


@given(public_rules, public_rules)
def test_merging_does_not_change_the_layers(base: dict[str, Any], explicit: dict[str, Any]) -> None:
    originals = copy.deepcopy((base, explicit))
    one, other = ToolRules.parse(base), ToolRules.parse(explicit)
    said = (one.to_dict(), other.to_dict())
    merged = one.merge(other)
    for parameters in merged.to_dict()["params"].values():
        parameters.clear()
    assert (one.to_dict(), other.to_dict()) == said
    assert (base, explicit) == originals


@given(rules, rules)
def test_merged_rules_survive_the_round_trip(base: ToolRules, explicit: ToolRules) -> None:
    merged = base.merge(explicit)
    assert ToolRules.parse(merged.to_dict()) == merged


def merged_dicts(*given_rules: dict[str, Any]) -> dict[str, Any]:
    return merge(*map(ToolRules.parse, given_rules)).to_dict()


def test_spec_9_2_allow_and_deny_are_unions_and_params_merge_per_tool() -> None:
    provider = {
        "allow": ["search", "read"],
        "deny": ["shell"],
        "params": {
            "search": {"query": {"maxLength": 200, "minLength": 1}},
            "read": {"path": {"pattern": "^/"}},
        },
    }
    explicit = {
        "allow": ["write", "read"],
        "deny": ["fetch"],
        "params": {"search": {"query": {"maxLength": 50}, "limit": {"maximum": 10}}},
    }
    assert merged_dicts(provider, explicit) == {
        "allow": ["search", "read", "write"],
        "deny": ["shell", "fetch"],
        "params": {
            "search": {"query": {"maxLength": 50, "minLength": 1}, "limit": {"maximum": 10}},
            "read": {"path": {"pattern": "^/"}},
        },
    }


def test_spec_9_3_a_provider_wins_over_the_base() -> None:
    base = {"params": {"search": {"limit": {"maximum": 100}}}}
    provider = {"params": {"search": {"limit": {"maximum": 10}}}}
    assert merged_dicts(base, provider)["params"] == provider["params"]


def test_a_star_includes_every_name_and_none_adds_nothing() -> None:
    assert merged_dicts({"allow": ["a"]}, {"allow": "*"})["allow"] == "*"
    assert merged_dicts({"allow": "*"}, {"allow": ["a"]})["allow"] == "*"
    assert merged_dicts({"allow": ["a"]}, {"allow": None})["allow"] == ["a"]
    assert merged_dicts({"allow": []}, {"allow": None})["allow"] == []


def test_named_layers_equal_merged_ones_and_report_the_rules_of_each() -> None:
    base, notes, explicit = (
        ToolRules.parse({"deny": ["a"]}),
        ToolRules(),
        ToolRules.parse({"allow": ["a", "b"]}),
    )
    stacked = (
        RuleLayers()
        .with_layer(BASE, base)
        .with_layer(provider_layer("notes"), notes)
        .with_layer(EXPLICIT, explicit)
    )
    assert stacked.rules == merge(base, notes, explicit)
    assert dict(stacked.about(["a"])) == {
        "base": {"allow": None, "deny": ["a"], "params": {}},
        "provider notes": {"allow": None, "deny": None, "params": {}},
        "explicit": {"allow": ["a"], "deny": None, "params": {}},
    }
