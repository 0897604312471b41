"""What can be asked, and what is answered as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from kantan_agents import what_if
from kantan_agents.errors import InvalidOptionError, InvalidToolRulesError, NoRecordedCallsError
from kantan_agents.tool_rules import RuleLayers, ToolRules, provider_layer
from tests.lab.rule_changes.recorded import Recording
from tests.lab.rule_changes.test_not_judged import shop


async def test_rules_that_change_nothing_flip_nothing(recorded: Recording) -> None:
    trace = await recorded.run(shop(), {"deny": ["pay"]})
    assert recorded.ask({"deny": ["pay"]}, trace).flips == ()


async def test_a_stored_trace_gives_the_same_answer(recorded: Recording) -> None:
    trace = await recorded.run(shop(), {"deny": ["pay"]})
    assert what_if({}, [recorded.store.trace(trace)]) == recorded.ask({}, trace)


async def test_another_layer_can_be_replaced(recorded: Recording) -> None:
    agent = shop()
    till = (provider_layer("till"), ToolRules.parse({"deny": ["pay"]}))
    agent.standing_rules = RuleLayers((("base", ToolRules()), till))
    trace = await recorded.run(agent, {"allow": ["pay"]})
    assert recorded.ask({}, trace, layer="provider till").newly_allowed
    assert not recorded.ask({"allow": "*"}, trace).flips  # the provider's rules still deny it
    assert recorded.ask({"params": {"pay": {"card": {"maxLength": 0}}}}, trace, layer="base").judged


async def test_a_layer_that_no_call_has_is_an_error(recorded: Recording) -> None:
    trace = await recorded.run(shop())
    with pytest.raises(
        InvalidOptionError,
        match="no recorded call has a layer 'provider x'; there are 'base', 'explicit'",
    ):
        recorded.ask({}, trace, layer="provider x")
    with pytest.raises(InvalidOptionError, match="must be the name of a layer"):
        recorded.ask({}, trace, layer="")


def test_rules_are_checked_before_the_file_is_read() -> None:
    def never() -> Any:
        raise AssertionError
        yield

    with pytest.raises(InvalidToolRulesError):
        what_if({"alow": []}, never())


def test_no_trace_is_an_error() -> None:
    with pytest.raises(NoRecordedCallsError, match="there is no recorded run"):
        what_if({}, [])


async def test_the_numbers_are_those_of_the_flips(recorded: Recording) -> None:
    names = [await recorded.run(shop()), await recorded.run(shop(), {"deny": ["pay"]})]
    answer = recorded.ask({"deny": ["pay"]}, *names)
    assert (len(answer.newly_denied), len(answer.newly_allowed), answer.runs) == (1, 0, 2)
    assert answer.by_tool["pay"].newly_denied == answer.by_agent["shop"].newly_denied == 1
