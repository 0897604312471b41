"""``UserRules``: permissions of users that only code can create."""

from __future__ import annotations

import json
import pickle
from typing import Any

import attrs
import pytest
from hypothesis import given

from kantan_agents import Agent, SlashCommands, ToolRulesMode, UserRules
from kantan_agents.errors import InvalidToolRulesError, ToolRulesTypeError
from kantan_agents.testing import ScriptedModel
from kantan_agents.testing.strategies import json_values, tool_rules
from kantan_agents.tool_rules import ToolRules


def clerk(deleted: list[str], rules: Any) -> Agent:
    def delete(name: str) -> str:
        """Delete."""
        deleted.append(name)
        return "deleted"

    return Agent("clerk", "x", model=ScriptedModel(), tools=[delete], middleware=[SlashCommands(rules)])


@pytest.mark.parametrize(
    "rules",
    [{"allow": "*"}, {"allow": ["delete"]}, {}, [], 1, True, ToolRules(allow="*"), "allow_all"],
)
async def test_only_an_object_that_code_makes_extends_what_a_user_may_run(rules: Any) -> None:
    deleted: list[str] = []
    with pytest.raises(ToolRulesTypeError):
        await clerk(deleted, {"allow": []}).run_async("/delete a", {"user_rules": rules})
    assert deleted == []


@pytest.mark.parametrize("rules", [UserRules({"allow": ["delete"]}), ToolRulesMode.ALLOW_ALL])
async def test_rules_that_code_makes_extend_what_a_user_may_run(rules: Any) -> None:
    deleted: list[str] = []
    await clerk(deleted, {"allow": []}).run_async("/delete a", {"user_rules": rules})
    assert deleted == ["a"]


@given(json_values())
def test_no_json_value_is_accepted_as_rules_for_users(value: Any) -> None:
    deleted: list[str] = []
    context = {"user_rules": json.loads(json.dumps(value))}
    if value is None:
        return
    with pytest.raises(ToolRulesTypeError):
        clerk(deleted, ToolRulesMode.ALLOW_ALL).run("/delete a", context)
    assert deleted == []


async def test_the_error_for_a_plain_dict_says_what_to_write() -> None:
    with pytest.raises(ToolRulesTypeError) as caught:
        await clerk([], {}).run_async("/delete a", {"user_rules": {"allow": "*"}})
    assert str(caught.value) == (
        "[kantan-agents][E18] Tool rules must be a dict that your code wraps in UserRules(...): "
        "context['user_rules'] is a plain dict, which a file or a model could have written"
    )
    assert caught.value.got == "dict as user_rules"
    copied = pickle.loads(pickle.dumps(caught.value))
    assert str(copied) == str(caught.value)


@given(tool_rules())
def test_user_rules_are_a_copy_that_does_not_change(rules: Any) -> None:
    made = UserRules(rules)
    before = made.to_dict()
    made.to_dict().clear()
    rules.clear()
    assert made.to_dict() == before
    assert UserRules(before) == made
    assert hash(UserRules(before)) == hash(made)
    assert repr(made) == f"UserRules({before!r})"
    assert pickle.loads(pickle.dumps(made)) == made
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        made.rules = ToolRules()  # type: ignore[misc]


def test_invalid_rules_are_refused_when_they_are_made() -> None:
    with pytest.raises(InvalidToolRulesError):
        UserRules({"alow": []})
    for rules in ("all", ["read"]):
        with pytest.raises(ToolRulesTypeError):
            UserRules(rules)  # type: ignore[arg-type]


async def test_slash_commands_accept_user_rules_too() -> None:
    deleted: list[str] = []
    await clerk(deleted, UserRules({"allow": ["delete"]})).run_async("/delete a")
    assert deleted == ["a"]
