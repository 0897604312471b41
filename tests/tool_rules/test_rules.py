from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.errors import InvalidToolRulesError, KantanAgentsError
from kantan_agents.tool_rules import ToolRules

names = st.text(min_size=1, max_size=4)
name_sets = st.one_of(st.none(), st.just("*"), st.lists(names))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(allow=name_sets, deny=name_sets, tool=names)
def test_deny_wins_over_allow(allow: Any, deny: Any, tool: Any) -> None:
    rules = ToolRules.parse({"allow": allow, "deny": deny})
    denied = deny is not None and (deny == "*" or "*" in deny or tool in deny)
    allowed = allow is None or allow == "*" or "*" in allow or tool in allow
    assert rules.permits(tool) == (allowed and not denied)
    if rules.permits_all:
        assert rules.permits(tool)


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ({"allow": "read"}, "allow: must be \"*\", a list of tool names or None, not 'read'"),
        ({"deny": 3}, 'deny: must be "*", a list of tool names or None, not 3'),
        ({"deny": [3, ""]}, "deny: 3 is not a tool name; deny: '' is not a tool name"),
        ({"alow": []}, "alow: unknown key, there are allow, deny and params"),
        (
            {"params": {"search": {"q": {"maxLength": 3}}}},
            "params: parameter rules are not enforced by this version",
        ),
    ],
)
def test_a_mistake_is_an_error_that_names_it(rules: Any, problem: Any) -> None:
    with pytest.raises(InvalidToolRulesError) as caught:
        ToolRules.parse(rules)
    assert str(caught.value) == f"[kantan-agents][E20] Invalid tool rules: {problem}"


def test_all_mistakes_are_reported_together() -> None:
    with pytest.raises(InvalidToolRulesError) as caught:
        ToolRules.parse({"allow": "a", "deny": "b", "x": 1})
    assert len(caught.value.problems) == 3


@given(st.dictionaries(st.sampled_from(["allow", "deny", "params", "x"]), json_values))
def test_any_json_is_rules_or_an_error_of_ours(value: Any) -> None:
    try:
        rules = ToolRules.parse(value)
    except KantanAgentsError:
        return
    assert isinstance(rules.permits("tool"), bool)


def test_a_tuple_is_a_list_of_names() -> None:
    assert not ToolRules.parse({"deny": ("shell",)}).permits("shell")
