"""``Ledger`` keeps amounts by name within their limits, also if several threads reserve at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from kantan_agents.support.ledger import Ledger, LimitReachedError


def test_what_is_reserved_counts_until_it_is_released() -> None:
    ledger = Ledger({"tokens": 10, "cost": None})
    first = ledger.reserve({"tokens": 7, "cost": 5.0})
    with pytest.raises(LimitReachedError) as reached:
        ledger.reserve({"tokens": 4})
    assert (reached.value.name, reached.value.limit, reached.value.taken) == ("tokens", 10, 7)
    ledger.release(first, {"tokens": 2})
    assert (ledger.left, ledger.in_progress) == ({"tokens": 8}, 0)


def test_a_refused_reservation_changes_nothing() -> None:
    ledger = Ledger({"calls": 5, "tokens": 10})
    before = ledger.reserve({"calls": 1, "tokens": 10})
    with pytest.raises(LimitReachedError, match="tokens"):
        ledger.reserve({"calls": 1, "tokens": 11}, instead_of=before)
    assert ledger.left == {"calls": 4, "tokens": 0}
    ledger.reserve({"calls": 2, "tokens": 9}, instead_of=before)
    assert ledger.left == {"calls": 3, "tokens": 1}


def test_an_amount_of_unknown_size_is_allowed_while_anything_is_left() -> None:
    ledger = Ledger({"tokens": 10})
    ledger.reserve({"tokens": None}, {"tokens": 50})
    with pytest.raises(LimitReachedError):
        ledger.reserve({"tokens": None})


def test_an_unknown_use_exceeds_each_limit_and_stays_unknown() -> None:
    ledger = Ledger({"cost": 10.0})
    ledger.spend({"cost": None, "tokens": 3})
    ledger.spend({"cost": 1.0, "tokens": 4})
    assert (ledger.known("cost"), ledger.known("tokens")) == (None, 7)
    assert (ledger.may_spend, ledger.left) == (False, {"cost": 0})


def test_sums_of_floats_reach_a_limit_exactly() -> None:
    ledger = Ledger({"cost": 0.3})
    for _ in range(3):
        ledger.reserve({"cost": 0.1})


def test_the_largest_of_a_kind_is_learned_amount_by_amount() -> None:
    ledger = Ledger({})
    assert ledger.largest("judge") is None
    ledger.learn("judge", {"tokens": 9, "cost": None})
    ledger.learn("judge", {"tokens": 4, "cost": 2.0})
    assert ledger.largest("judge") == {"tokens": 9, "cost": 2.0}


def test_threads_together_do_not_exceed_a_limit() -> None:
    ledger = Ledger({"calls": 100})

    def ask(_: int) -> bool:
        try:
            ledger.release(ledger.reserve({"calls": 1}), {"calls": 1})
        except LimitReachedError:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(ask, range(400))) == 100
