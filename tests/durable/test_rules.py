"""The tool rules are asked again about each call when a run goes on, also about those that were made."""

from __future__ import annotations

from typing import Any

import pytest

from kantan_agents import Agent, Durable, Next, Run
from tests.durable.revival import Case, call, revive

_DENIED = {"deny": ["pay"]}
_ONE_CALL = {0: [call("pay", "c1", amount=3)], 1: "Done."}


def _rules(rules: Any) -> Any:
    """Return a stage that sets the rules."""

    async def set_rules(run: Run, call_next: Next) -> None:
        run.context["tool_rules"] = rules
        await call_next(run)

    return set_rules


def _tools(case: Case, *, dies_in: str = "") -> list[Any]:
    async def pay(amount: int) -> str:
        """Pay."""
        case.effect(f"pay {amount}")
        if dies_in == "pay":
            case.die()
        return f"paid {amount}"

    async def look() -> str:
        """Look."""
        case.effect("look")
        if dies_in == "look":
            case.die()
        return "saw"

    return [pay, look]


def _changing(dies_in: str, first: Any, second: Any, **options: Any) -> Any:
    """Return what builds an agent whose rules are others in the second process."""

    def build(case: Case) -> Agent[Any]:
        rules = first if case.is_first else second
        return case.agent(_rules(rules), tools=_tools(case, dies_in=dies_in), **options)

    return build


_PAY_THEN_LOOK = {0: [call("pay", "c1", amount=3)], 1: [call("look", "c2")], 2: "Done."}


CASES = {
    "in_flight": Case(_changing("pay", {}, _DENIED), _ONE_CALL),
    "finished": Case(_changing("look", {}, _DENIED), _PAY_THEN_LOOK),
    "limited": Case(_changing("look", {}, {"params": {"pay": {"amount": {"maximum": 2}}}}), _PAY_THEN_LOOK),
    "loosened": Case(_changing("look", _DENIED, {}), _PAY_THEN_LOOK),
    "loosened_limit": Case(
        _changing("look", {"params": {"pay": {"amount": {"maximum": 2}}}}, {}), _PAY_THEN_LOOK
    ),
    "hidden": Case(_changing("look", {}, {"allow": ["look"]}), _PAY_THEN_LOOK),
    "raising": Case(_changing("look", {}, _DENIED, on_rule_violation="raise"), _PAY_THEN_LOOK),
    "raising_in_flight": Case(_changing("pay", {}, _DENIED, on_rule_violation="raise"), _ONE_CALL),
    "of_context": Case(
        lambda case: case.agent(tools=_tools(case, dies_in="look")),
        {0: [call("pay", "c1", amount=3)], 1: [call("look", "c2")], 2: "Done."},
        context={"tool_rules": {"deny": ["pay"]}},
    ),
    "once": Case(
        lambda case: case.agent(
            _rules({} if case.is_first else _DENIED), Durable(once=["pay"]), tools=_tools(case, dies_in="pay")
        ),
        _ONE_CALL,
    ),
}


@pytest.fixture(scope="module", autouse=True)
def _made(tmp_path_factory: pytest.TempPathFactory) -> None:
    revive(tmp_path_factory.mktemp("rules"), CASES)


def test_a_tightened_rule_refuses_a_call_in_flight() -> None:
    case = CASES["in_flight"]
    assert case.output == "Done."
    assert case.effects == ["pay 3"]  # of the first process
    assert "[E8] Tool is not allowed: pay" in case.answers[0]


def test_a_tightened_rule_withholds_the_result_of_a_finished_call() -> None:
    case = CASES["finished"]
    assert case.output == "Done."
    assert case.effects == ["pay 3", "look", "look"]
    assert "[E8] Tool is not allowed: pay" in case.answers[0]
    assert case.answers[1] == "saw"


def test_a_tightened_limit_on_an_argument_withholds_a_result() -> None:
    case = CASES["limited"]
    assert case.effects == ["pay 3", "look", "look"]
    assert "[E17]" in case.answers[0]


def test_a_tool_that_is_hidden_meanwhile_gives_no_result() -> None:
    case = CASES["hidden"]
    assert case.effects == ["pay 3", "look", "look"]
    assert "[E8] Tool is not allowed: pay" in case.answers[0]


def test_a_loosened_rule_does_not_make_a_call_whose_refusal_the_model_has_seen() -> None:
    case = CASES["loosened"]
    assert case.output == "Done."
    assert case.effects == ["look", "look"]
    assert "[E8] Tool is not allowed: pay" in case.answers[0]


def test_a_loosened_limit_does_not_make_a_refused_call() -> None:
    case = CASES["loosened_limit"]
    assert case.effects == ["look", "look"]
    assert "[E17]" in case.answers[0]


def test_a_violation_that_raises_ends_the_run_that_goes_on() -> None:
    for name, effects in (("raising", ["pay 3", "look"]), ("raising_in_flight", ["pay 3"])):
        case = CASES[name]
        assert case.status == "failed"
        assert "[E8] Tool is not allowed: pay" in (case.error or "")
        assert case.effects == effects


def test_the_rules_of_the_stored_context_apply() -> None:
    case = CASES["of_context"]
    assert case.effects == ["look", "look"]
    assert "[E8] Tool is not allowed: pay" in case.answers[0]


def test_a_refused_call_that_may_be_made_once_does_not_end_the_run() -> None:
    case = CASES["once"]
    assert case.output == "Done."
    assert case.effects == ["pay 3"]
    assert "[E8] Tool is not allowed: pay" in case.answers[0]
