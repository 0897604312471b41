"""The promise itself, exactly: at the edge of the hypothesis the expected wealth is 1, over all outcomes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kantan_agents.lab.rollout.evidence import (
    Evidence,
    log_e_process,
    mean_difference,
    relative_increase,
    sample_ratio,
    tail_increase,
)
from kantan_agents.lab.rollout.evidence import relative as relative_module

SHARES = np.array([0.1, 0.5, 0.9, 0.3, 0.5])


def expected(test: Callable[[Any, Any], Evidence], chance: Callable[[int, bool], float], shares: Any) -> Any:
    """Return the expected wealth at each time over all arms and all values of 0 or 1.

    ``chance(time, is_new)`` is the probability of a 1.
    """
    total = np.zeros(len(shares))
    for arms in itertools.product((False, True), repeat=len(shares)):
        for values in itertools.product((0.0, 1.0), repeat=len(shares)):
            probability = 1.0
            for time, (arm, value) in enumerate(zip(arms, values, strict=True)):
                one = chance(time, arm)
                probability *= (shares[time] if arm else 1 - shares[time]) * (one if value else 1 - one)
            total += probability * np.exp(test(np.array(values), np.array(arms)).path)
    return total


@pytest.mark.parametrize("margin", [0.0, 0.1, -0.1])
def test_the_difference_with_a_margin_and_drift(margin: float) -> None:
    found = expected(
        lambda values, arms: mean_difference(values, arms, SHARES, lowest=0, highest=1, margin=margin),
        lambda time, is_new: 0.3 + 0.08 * time + margin * is_new,
        SHARES,
    )
    assert found == pytest.approx(np.ones(len(SHARES)))


def test_within_the_hypothesis_it_shrinks() -> None:
    found = expected(
        lambda values, arms: mean_difference(values, arms, SHARES, lowest=0, highest=1),
        lambda _time, is_new: 0.5 - 0.2 * is_new,
        SHARES,
    )
    assert (np.diff(found, prepend=1.0) < 0).all()


def test_against_the_hypothesis_it_grows() -> None:
    found = expected(
        lambda values, arms: mean_difference(values, arms, SHARES, lowest=0, highest=1),
        lambda _time, is_new: 0.5 + 0.2 * is_new,
        SHARES,
    )
    assert (np.diff(found, prepend=1.0) > 0).all()


@pytest.mark.parametrize("factor", [1.0, 1.5, 0.8])
def test_the_relative_increase(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relative_module, "_FEWEST", 1)
    found = expected(
        lambda values, arms: relative_increase(values, arms, SHARES, factor=factor),
        lambda time, is_new: (0.3 + 0.05 * time) * (factor if is_new else 1.0),
        SHARES,
    )
    assert found == pytest.approx(np.ones(len(SHARES)))


@pytest.mark.parametrize("factor", [0.5, 1.0, 2.0])
def test_the_tail(factor: float) -> None:
    # A 1 counts if it is above the limit, which is an earlier value of the control (times the factor).
    found = expected(
        lambda values, arms: tail_increase(
            np.where(arms, factor, 1.0) * values, arms, SHARES, factor=factor, quantile=0.1
        ),
        lambda time, _is_new: 0.3 + 0.05 * time,
        SHARES,
    )
    assert found == pytest.approx(np.ones(len(SHARES)))


def test_the_sample_ratio() -> None:
    found = expected(lambda _values, arms: sample_ratio(arms, SHARES), lambda _time, _is_new: 1.0, SHARES)
    assert found == pytest.approx(np.ones(len(SHARES)))


def test_the_bets_alone() -> None:
    found = expected(
        lambda values, _arms: log_e_process(values - 0.4, np.full(len(SHARES), -0.4)),
        lambda _t, _n: 0.4,
        SHARES,
    )
    assert found == pytest.approx(np.ones(len(SHARES)))
