"""The budget of a search: nothing is overspent, and the held-out test is paid for before the search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agents import Usage

from kantan_agents.errors import ImproveBudgetError, InvalidOptionError
from kantan_agents.lab import Improvement
from kantan_agents.testing import Reply
from tests.lab.improve.shops import OLD, POLITE, Shop, journal_of, scripted, shop

# A request of the server uses 15 tokens: a run 30, and the judge 15.
BRIEF = tuple(f"{OLD} Be brief{'!' * number}" for number in range(1, 20))


def used(made: Shop) -> int:
    """Return the tokens of all requests that were sent."""
    return 15 * len(made.server.requests)


def test_a_search_ends_before_it_would_use_more_than_the_budget(tmp_path: Path) -> None:
    limit = 4_000
    with shop(tmp_path, propose=scripted(*BRIEF)) as made:
        found = made.improve(rounds=20, max_tokens=limit)
        assert found.tokens == used(made) <= limit
    assert found.is_out_of_budget
    assert found.new is None
    assert "the budget is used up, and with a higher limit the search goes on" in str(found.reason)
    assert 1 < len(found.candidates) < 20


def test_the_winner_is_tested_with_what_was_reserved_for_it(tmp_path: Path) -> None:
    limit = 3_600
    with shop(
        tmp_path, propose=scripted(POLITE, *BRIEF), score=lambda text: 0.9 if "Dear" in text else 0.0
    ) as made:
        found = made.improve(rounds=20, max_tokens=limit)
        assert found.tokens == used(made) <= limit
    assert found.is_out_of_budget
    assert found.new is not None
    assert found.comparison is not None
    assert found.comparison.cases == found.cases["test"]


def test_with_a_higher_limit_it_goes_on_and_counts_what_was_used_before(tmp_path: Path) -> None:
    with shop(tmp_path, propose=scripted(*BRIEF[:14], POLITE)) as made:
        first = made.improve(rounds=20, max_tokens=3_300)
        second = made.improve(rounds=20, max_tokens=20_000)
        assert second.tokens == used(made)
    assert first.is_out_of_budget
    assert (first.new, second.is_out_of_budget) == (None, False)
    assert second.new is not None


def test_a_budget_too_small_for_one_candidate_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    with shop(tmp_path) as made:
        with pytest.raises(ImproveBudgetError, match=r"one candidate takes about [\d,.]+ tokens") as raised:
            made.improve(max_tokens=100)
        assert made.server.requests == []
        needed = int(float(str(raised.value).split("about ")[1].split()[0].replace(",", "")))
        found: Improvement = made.improve(max_tokens=needed + 2_000)
    assert raised.value.code == "E122"
    assert found.new is not None


PRICES = {"offline-model": (1.0, 1.0), "judge-model": (1.0, 1.0), "reflection-model": (1.0, 1.0)}


def test_a_limit_of_cost_is_kept_too(tmp_path: Path) -> None:
    limit = 4_000 / 1e6
    with shop(tmp_path, count=30, propose=scripted(*BRIEF)) as made:
        found = made.improve(rounds=20, max_cost=limit, prices=PRICES)
        assert found.cost == pytest.approx(used(made) / 1e6)
    assert found.cost is not None
    assert found.cost <= limit
    assert found.is_out_of_budget


@pytest.mark.parametrize("without", ["judge-model", "reflection-model"])
def test_a_model_without_a_price_ends_a_search_with_a_limit_of_cost(tmp_path: Path, without: str) -> None:
    prices = {name: pair for name, pair in PRICES.items() if name != without}
    with shop(tmp_path) as made, pytest.raises(ImproveBudgetError, match="has no price"):
        made.improve(max_cost=1.0, prices=prices)


def test_the_agents_model_needs_a_price_before_anything_is_asked(tmp_path: Path) -> None:
    with shop(tmp_path) as made:
        with pytest.raises(ImproveBudgetError, match="a model has no price"):
            made.improve(max_cost=1.0, prices={"judge-model": (1.0, 1.0)})
        with pytest.raises(InvalidOptionError, match="needs prices"):
            made.improve(max_cost=1.0)
        assert made.server.requests == []


def test_a_sealed_test_that_uses_more_than_expected_goes_on_with_a_higher_limit(tmp_path: Path) -> None:
    is_dear = [False]

    def score(text: str) -> Any:
        value = float("Dear customer" in text)
        if not is_dear[0]:
            return value
        reply = json.dumps({"score": value, "comments": []})
        return Reply(reply, usage=Usage(input_tokens=900, output_tokens=0, total_tokens=900))

    with shop(tmp_path, score=score) as made:

        def noticed(progress: Any) -> None:
            is_dear[0] = progress.step == "test"

        with pytest.raises(ImproveBudgetError, match="does not suffice for the held-out test"):
            made.improve(max_tokens=3_600, progress=noticed)
        found = made.improve(max_tokens=100_000)
    assert found.new is not None
    assert found.opening is not None
    assert found.opening.number == 1, "it is the same opening"
    assert sum("rated" in line for line in journal_of(found)) > 0
