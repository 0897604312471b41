from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents import Agent
from kantan_agents.core.context import append_history, check_context, fill_defaults, store
from kantan_agents.errors import ContextTypeError, HistoryTypeError, ToolRulesTypeError
from kantan_agents.testing import ScriptedModel, assistant_message

entries = st.lists(st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "text": st.text()}))


@pytest.mark.parametrize("value", [[], (), "x", 1, object()])
def test_a_context_that_is_not_a_dict_is_e5(value: Any) -> None:
    with pytest.raises(ContextTypeError) as caught:
        check_context(value)
    assert caught.value.got == type(value).__name__


def test_spec_2_6_an_empty_context_is_completed() -> None:
    context: dict = {}
    fill_defaults(context, keep_history=True)
    assert context == {
        "tool_rules": {"allow": None, "deny": None, "params": {}},
        "result": None,
        "history": [],
    }


@given(st.dictionaries(st.sampled_from(["tool_rules", "result", "other"]), st.none()))
def test_completing_a_context_changes_no_value_that_the_caller_has_set(given_by_caller: Any) -> None:
    context = dict(given_by_caller)
    fill_defaults(context, keep_history=True)
    assert {key: context[key] for key in given_by_caller} == given_by_caller
    assert {"tool_rules", "result", "history"} <= context.keys()


def test_tool_rules_that_are_none_are_still_none_after_a_run() -> None:
    agent = Agent("a", "b", model=ScriptedModel([[assistant_message("hi")]] * 2))
    context = {"tool_rules": None}
    agent.run("x", context)
    agent.run("x", context)
    assert context["tool_rules"] is None
    assert context["result"] is not None


@pytest.mark.parametrize("rules", [[], "x", 1, True])
def test_spec_7_4_tool_rules_that_are_not_a_dict_are_e18_and_nothing_is_written(rules: Any) -> None:
    context = {"tool_rules": rules}
    with pytest.raises(ToolRulesTypeError):
        fill_defaults(context, keep_history=True)
    assert context == {"tool_rules": rules}


@pytest.mark.parametrize("history", [None, {}, "x", ()])
def test_a_history_that_is_not_a_list_is_e6_and_nothing_is_written(history: Any) -> None:
    context = {"history": history}
    with pytest.raises(HistoryTypeError):
        fill_defaults(context, keep_history=True)
    assert context == {"history": history}


def test_with_history_turned_off_the_history_is_not_checked() -> None:
    context = {"history": "mine"}
    fill_defaults(context, keep_history=False)
    assert context["history"] == "mine"


@given(st.lists(entries, max_size=8), st.integers(1, 12))
def test_the_history_is_never_longer_than_the_limit_and_keeps_the_newest_in_order(
    runs: Any, limit: Any
) -> None:
    history: list = []
    everything: list = []
    for added in runs:
        append_history(history, added, limit)
        everything += added
        assert len(history) <= limit
        assert history == everything[-limit:]


@given(entries, entries, st.integers(1, 6))
def test_undoing_an_append_restores_the_history(before: Any, added: Any, limit: Any) -> None:
    history = copy.deepcopy(before)
    undo = append_history(history, added, limit)
    undo()
    assert history == before


@given(entries, entries, entries)
def test_undoing_an_append_keeps_entries_that_another_run_added_meanwhile(
    before: Any, added: Any, meanwhile: Any
) -> None:
    history = copy.deepcopy(before)
    undo = append_history(history, added, 1000)
    append_history(history, meanwhile, 1000)
    undo()
    assert history == before + meanwhile


def test_a_store_is_undone_unless_the_key_was_written_again() -> None:
    context = {"a": 1}
    undo_a, undo_b = store(context, "a", "new"), store(context, "b", "new")
    undo_b()
    undo_a()
    assert context == {"a": 1}
    undo = store(context, "a", "mine")
    context["a"] = "theirs"
    undo()
    assert context == {"a": "theirs"}
