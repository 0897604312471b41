"""How often all of k runs of a case pass."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab import CaseResult, Score, VariantResults, passes_all


def results(
    *cases: Sequence[float | str | None], conversations: Sequence[str] | None = None
) -> VariantResults:
    """Return results: for each run of a case a score, None if it has none, "x" if it failed, or a text."""
    made: list[CaseResult] = []
    for place, values in enumerate(cases):
        for repeat, value in enumerate(values):
            scores = (
                {} if value in (None, "x") else {"ok": Score(value if isinstance(value, float) else None)}
            )
            made.append(
                CaseResult(
                    f"c{place}", f"h{place}", conversations[place] if conversations else None, "v1", repeat,
                    "failed" if value == "x" else "finished", "out", None, None, 0.0, 0, 0, None, 1,
                    scores=scores,
                )
            )  # fmt: skip
    return VariantResults("e", "v1", tuple(made))


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=5))
def test_the_share_is_that_of_all_ways_to_choose_k_runs(cases: list[list[bool]]) -> None:
    found = passes_all(results(*([float(one) for one in case] for case in cases)), "ok")
    assert found.k == 4
    for k in range(1, 5):
        chosen = [all(picked) for case in cases for picked in itertools.combinations(case, k)]
        assert found.rates[k - 1] == pytest.approx(sum(chosen) / len(chosen))
    assert list(found.rates) == sorted(found.rates, reverse=True)


def test_the_text_has_the_interval_and_the_share_of_single_runs() -> None:
    found = passes_all(results([1.0, 1.0], [1.0, 0.0], [0.0, 0.0], [0.5, 0.9]), "ok")
    assert found.text == (
        "v1 passes 2 of 2 on ok in 50.0% of 4 cases (95% interval 6.8% to 93.2%), and 1 of 1 in 62.5%"
    )
    assert found.to_dict()["rates"] == (0.625, 0.5)
    assert passes_all(results([0.5], [0.4]), "ok", threshold=0.3).rate == 1.0


def test_what_has_failed_does_not_pass_and_what_does_not_apply_is_left_out() -> None:
    assert passes_all(results([1.0, "x"], [1.0, 1.0]), "ok").rates == (0.75, 0.5)
    assert passes_all(results(["x", "x"], [1.0, 1.0]), "ok").rate == 0.5
    found = passes_all(results(["x", None], [1.0, 1.0]), "ok")
    assert (found.cases, found.k, found.rate) == (1, 2, 1.0)
    assert passes_all(results([1.0, "error"], [1.0, 1.0]), "ok").rate == 0.5
    assert passes_all(results([None, None], [1.0, 1.0]), "ok").cases == 1


def test_cases_of_one_conversation_count_as_one() -> None:
    runs = [[1.0, 1.0]] * 6
    assert passes_all(results(*runs), "ok").independent == 6
    shared = results(*runs, conversations=["a", "a", "a", "b", "b", "b"])
    assert passes_all(shared, "ok").independent == 2
    assert passes_all(shared, "ok").interval.low < passes_all(results(*runs), "ok").interval.low


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda: passes_all(results([1.0]), "okay"), "metric: no run has a score of 'okay'; there are ok"),
        (
            lambda: passes_all(results([1.0, 1.0], [1.0]), "ok", 2),
            "k: is 2, and a case has 1 run with a score",
        ),
        (lambda: passes_all(results([1.0]), "ok", 0), "k: must be"),
        (lambda: passes_all([], "ok"), "results: must be the results of a variant"),  # type: ignore[arg-type]
        (lambda: passes_all(results([1.0]), "ok", threshold=-1), "threshold: must be"),
    ],
)
def test_what_cannot_be_counted_is_said(ask: Any, says: str) -> None:
    with pytest.raises(InvalidOptionError) as caught:
        ask()
    assert says in str(caught.value)


@pytest.mark.parametrize("cases", [5, 20])
@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (8.0, 2.0), (0.3, 0.1), (40.0, 1.0)])
@pytest.mark.parametrize(("runs", "k"), [(4, 4), (8, 3)])
def test_the_interval_covers_at_least_as_often_as_it_says(
    cases: int, a: float, b: float, runs: int, k: int
) -> None:
    """Each case has its own pass rate, from a beta distribution; pass^k is the mean of its k-th power."""
    truth = float(np.prod([(a + i) / (a + b + i) for i in range(k)]))
    random = np.random.default_rng(7)
    drawn = random.random((150, cases, runs)) < random.beta(a, b, (150, cases, 1))
    covered = 0
    for sample in drawn:
        interval = passes_all(results(*sample.astype(float).tolist()), "ok", k).interval
        covered += interval.low <= truth <= interval.high
    assert covered / len(drawn) >= 0.93
