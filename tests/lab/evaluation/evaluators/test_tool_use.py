"""Evaluators of the tools that a run has used."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab import Evaluator, Score, ToolUse
from kantan_agents.lab.evaluation.evaluators import ExpectedCall, call, not_used, used_tools
from tests.lab.evaluation.values import finished, use


def score(evaluator: Evaluator, *uses: ToolUse) -> Score:
    (given,) = asyncio.run(evaluator.score(finished(tool_calls=uses))).values()
    return given


def test_a_tool_is_used_by_name_and_by_some_of_its_arguments() -> None:
    uses = [use("search", query="refund", limit=3), use("send", to="a@b.c")]
    assert score(used_tools("send", "search"), *uses) == Score(1.0)
    assert score(used_tools(call("search", query="refund")), *uses) == Score(1.0)
    missing = score(used_tools(call("search", query="other", limit=3), "send", "pay"), *uses)
    assert missing == Score(0.0, comment="missing: search(query='other', limit=3), pay()")


def test_arguments_are_compared_as_data() -> None:
    assert score(used_tools(call("t", n=1.0, d={"a": [1]})), use("t", n=1, d={"a": [1]})).value == 1.0
    assert score(used_tools(call("t", n=True)), use("t", n=1)).value == 0.0
    assert score(used_tools(call("t", d={"a": 1})), use("t", d={"a": 1, "b": 2})).value == 0.0
    assert score(used_tools(call("t", n=None)), use("t")).value == 0.0
    assert score(used_tools("t"), ToolUse("t", "not JSON", None, "a")).value == 1.0
    assert score(used_tools(call("t", n=1)), ToolUse("t", "not JSON", None, "a")).value == 0.0


def test_an_argument_may_have_any_name() -> None:
    expected = call("t", tool=1, name=2, self=3)
    assert score(used_tools(expected), ToolUse("t", expected.arguments, "", "a")).value == 1.0


def test_order_matters_only_if_asked_for() -> None:
    uses = [use("a"), use("x"), use("b")]
    assert score(used_tools("b", "a"), *uses).value == 1.0
    assert score(used_tools("a", "b", in_order=True), *uses).value == 1.0
    assert score(used_tools("b", "a", in_order=True), *uses) == Score(0.0, comment="missing: a()")


def test_only_allows_no_other_calls() -> None:
    uses = [use("a"), use("b"), use("a")]
    assert score(used_tools("a", "b", only=True), *uses) == Score(0.0, comment="not expected: a")
    assert score(used_tools("a", "a", "b", only=True), *uses).value == 1.0
    assert score(used_tools("a", "a", "b", only=True, in_order=True), *uses).value == 0.0
    assert score(used_tools(only=True)) == Score(1.0)
    assert score(used_tools(only=True), use("a")) == Score(0.0, comment="not expected: a")


def test_refused_calls_have_not_used_the_tool_unless_attempts_count() -> None:
    refused = use("delete", is_denied=True)
    assert score(used_tools("delete"), refused).value == 0.0
    assert score(used_tools("delete", attempts=True), refused).value == 1.0
    assert score(not_used("delete"), refused).value == 1.0
    assert score(not_used("delete", attempts=True), refused) == Score(0.0, comment="used: delete()")
    assert score(used_tools(only=True), refused).value == 1.0


def test_tools_that_must_not_be_used() -> None:
    assert score(not_used("pay", call("send", to="x")), use("send", to="y")) == Score(1.0)
    assert score(not_used("pay", call("send", to="x")), use("send", to="x")).comment == "used: send(to='x')"


_USES = st.lists(st.builds(use, st.sampled_from("ab"), x=st.integers(0, 1)), max_size=4)
_CALLS = st.lists(
    st.builds(call, st.sampled_from("ab")) | st.builds(call, st.sampled_from("ab"), x=st.integers(0, 1)),
    min_size=1,
    max_size=4,
)


@given(_CALLS, _USES, st.booleans(), st.booleans())
def test_it_holds_exactly_if_some_assignment_of_calls_fulfils_it(
    calls: list[ExpectedCall], uses: list[ToolUse], in_order: bool, only: bool
) -> None:
    def fulfils(chosen: tuple[int, ...]) -> bool:
        is_ordered = not in_order or list(chosen) == sorted(chosen)
        return is_ordered and all(one.fits(uses[place]) for one, place in zip(calls, chosen, strict=True))

    possible = itertools.permutations(range(len(uses)), len(calls))
    expected = any(fulfils(chosen) for chosen in possible) and (not only or len(calls) == len(uses))
    assert score(used_tools(*calls, in_order=in_order, only=only), *uses).value == float(expected)


INVALID: list[tuple[Any, str]] = [
    (used_tools, "calls"),
    (not_used, "calls"),
    (lambda: used_tools(""), "tool"),
    (lambda: used_tools(5), "tool"),  # type: ignore[arg-type]
    (lambda: call("t", x={1}), "t"),
    (lambda: used_tools("a", only="yes"), "only"),  # type: ignore[arg-type]
    (lambda: used_tools("a", in_order=1), "in_order"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("make", "option"), INVALID)
def test_an_invalid_option_is_an_error_that_names_it(make: Any, option: str) -> None:
    with pytest.raises(InvalidOptionError) as raised:
        make()
    assert raised.value.option == option


def test_the_version_follows_the_options() -> None:
    made = [
        used_tools("a"),
        used_tools("b"),
        used_tools(call("a", x=1)),
        used_tools("a", in_order=True),
        used_tools("a", only=True),
        used_tools("a", attempts=True),
        not_used("a"),
        not_used("a", attempts=True),
    ]
    assert len({evaluator.version for evaluator in made}) == len(made)
