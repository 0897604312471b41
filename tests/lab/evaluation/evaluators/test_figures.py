"""Evaluators of seconds, tokens and cost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab import Score
from kantan_agents.lab.evaluation.evaluators import cost, latency, tokens
from tests.lab.evaluation.values import finished

RUN = finished("x", seconds=1.5, input_tokens=30, output_tokens=12, cost=0.02)


def test_without_a_limit_the_score_is_the_figure_and_less_is_better() -> None:
    for evaluator, figure in ((latency(), 1.5), (tokens(), 42.0), (cost(), 0.02)):
        assert asyncio.run(evaluator.score(RUN)) == {evaluator.name: Score(figure)}
        assert evaluator.better == "lower"
    assert [latency().name, tokens().name, cost().name] == ["latency", "tokens", "cost"]


def test_with_a_limit_the_score_is_yes_or_no() -> None:
    scores = [
        (latency(1.5), Score(1.0, comment="1.5 s")),
        (latency(1), Score(0.0, comment="1.5 s")),
        (tokens(42), Score(1.0, comment="42 tokens")),
        (tokens(0), Score(0.0, comment="42 tokens")),
        (cost(0.01), Score(0.0, comment="0.02")),
    ]
    for evaluator, score in scores:
        assert asyncio.run(evaluator.score(RUN)) == {evaluator.name: score}
        assert evaluator.better == "higher"
    assert [latency(1).name, tokens(1).name, cost(1).name] == ["latency_limit", "tokens_limit", "cost_limit"]
    assert latency(1, name="fast").name == "fast"


def test_a_cost_that_is_not_known_has_no_score() -> None:
    assert asyncio.run(cost().score(finished())) == asyncio.run(cost(1).score(finished())) == {}


def test_the_version_follows_the_limit() -> None:
    assert len({latency().version, latency(1).version, latency(2).version, tokens(1).version}) == 4


@pytest.mark.parametrize("most", [-1, float("nan"), "1", True])
def test_a_limit_is_a_number(most: Any) -> None:
    for make in (latency, tokens, cost):
        with pytest.raises(InvalidOptionError, match="most"):
            make(most)
