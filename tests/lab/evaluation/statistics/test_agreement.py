"""Agreement of raters: published examples, the definitions written out, and coverage."""

from __future__ import annotations

import itertools
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.lab.evaluation.statistics import Scale, cohens_kappa, krippendorff_alpha

NONE = np.nan
KRIPPENDORFF = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NONE, NONE, NONE],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NONE, 3],
    [NONE, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NONE],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NONE],
]
LABELS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc")), min_size=1, max_size=25)
RATINGS = st.integers(2, 4).flatmap(
    lambda raters: st.lists(
        st.lists(st.sampled_from([NONE, 1.0, 2.0, 3.0, 5.0]), min_size=raters, max_size=raters),
        min_size=1,
        max_size=15,
    )
)
SCALES: tuple[Scale, ...] = ("nominal", "ordinal", "interval")


def test_kappa_of_a_table_with_a_known_value() -> None:
    # 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: agreement 0.7, by chance 0.5.
    first, second = ["yes"] * 25 + ["no"] * 25, ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    found = cohens_kappa(first, second)
    assert found.value == pytest.approx(0.4)
    assert found.items == 50
    assert found.interval is not None
    # The standard error of this table is 0.129, by the formula of Fleiss, Cohen and Everitt (1969).
    assert found.interval.high - found.interval.low == pytest.approx(2 * 2.01 * 0.129, rel=0.1)


@given(LABELS)
def test_kappa_does_not_depend_on_order_and_raters(pairs: list[tuple[str, str]]) -> None:
    first, second = zip(*pairs, strict=True)
    found = cohens_kappa(first, second, resamples=50)
    assert cohens_kappa(second, first, resamples=50) == found
    assert cohens_kappa(first[::-1], second[::-1], resamples=50) == found
    assert found.value is None or found.value <= 1.0


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=25))
def test_kappa_of_perfect_agreement_is_one(labels: list[str]) -> None:
    found = cohens_kappa(labels, labels, resamples=50)
    assert found == ((1.0 if len(set(labels)) > 1 else None), None, len(labels))


def test_kappa_takes_booleans() -> None:
    assert cohens_kappa([True, False, True], [True, False, False]).value == pytest.approx(0.4)


@pytest.mark.parametrize(("scale", "value"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_of_the_published_example(scale: Scale, value: float) -> None:
    found = krippendorff_alpha(KRIPPENDORFF, scale)
    assert found.value == pytest.approx(value, abs=0.0005)
    assert found.items == 11
    assert found.interval is not None
    assert found.interval.low < value < found.interval.high


def test_repeated_items_do_not_make_an_interval_shorter() -> None:
    first, second = [1.0] * 12 + [0.0] * 8, [1.0] * 10 + [0.0] * 7 + [1.0] * 3
    clusters = [number for number in range(20) for _ in range(5)]
    often_first, often_second = np.repeat(first, 5), np.repeat(second, 5)
    once = cohens_kappa(first, second)
    often = cohens_kappa(often_first, often_second, clusters)
    assert often.items == 100 and often.interval == pytest.approx(once.interval)
    alpha = krippendorff_alpha([often_first, often_second], "nominal", clusters)
    assert alpha.interval == pytest.approx(krippendorff_alpha([first, second]).interval, abs=0.05)
    alone = cohens_kappa(often_first, often_second).interval
    assert alone is not None and once.interval is not None
    assert alone.high - alone.low < 0.6 * (once.interval.high - once.interval.low)
    assert cohens_kappa(often_first, often_second, ["all"] * 100).interval is None
    with pytest.raises(ValueError, match="clusters"):
        cohens_kappa(first, second, ["a"])
    with pytest.raises(ValueError):
        krippendorff_alpha([first, second], "nominal", ["a"])


@pytest.mark.parametrize("scale", SCALES)
@given(items=RATINGS)
def test_alpha_is_one_minus_observed_by_expected_disagreement(scale: Scale, items: list[list[float]]) -> None:
    found = krippendorff_alpha(np.array(items).T, scale, resamples=1)
    rated = [[one for one in item if not np.isnan(one)] for item in items]
    rated = [item for item in rated if len(item) > 1]
    everything = sorted(itertools.chain(*rated))
    metric = distance(scale, everything)
    observed = sum(
        sum(metric(x, y) for x, y in itertools.permutations(item, 2)) / (len(item) - 1) for item in rated
    )
    expected = sum(metric(x, y) for x, y in itertools.permutations(everything, 2))
    if expected == 0:
        assert found.value is None
    else:
        assert found.value == pytest.approx(1 - (len(everything) - 1) * observed / expected)


def distance(scale: Scale, everything: list[float]) -> Any:
    """Return the squared distance of two ratings as Krippendorff defines it."""

    def between(x: float, y: float) -> float:
        low, high = sorted((x, y))
        within = sum(low <= one <= high for one in everything)
        return (within - (everything.count(low) + everything.count(high)) / 2) ** 2

    others = {"nominal": lambda x, y: float(x != y), "interval": lambda x, y: (x - y) ** 2}
    return others.get(scale, between)


@pytest.mark.parametrize("scale", SCALES)
@given(items=RATINGS)
def test_alpha_does_not_depend_on_order_and_raters(scale: Scale, items: list[list[float]]) -> None:
    ratings = np.array(items).T
    found = krippendorff_alpha(ratings, scale, resamples=50)
    assert krippendorff_alpha(ratings[::-1, ::-1], scale, resamples=50) == found


@pytest.mark.parametrize("scale", SCALES)
def test_alpha_of_perfect_agreement_is_one(scale: Scale) -> None:
    found = krippendorff_alpha(np.array([[1, 2, 3, 4, 1], [1, 2, 3, NONE, 1]]), scale)
    assert (found.value, found.interval, found.items) == (1.0, None, 4)


def test_alpha_without_two_ratings_of_an_item_is_unknown() -> None:
    assert krippendorff_alpha([[1, NONE], [NONE, 2]]) == (None, None, 0)
    assert krippendorff_alpha([[1, 1], [1, 1]]) == (None, None, 2)


@pytest.mark.parametrize(("size", "least"), [(30, 0.93), (100, 0.93)])
def test_intervals_of_kappa_cover_the_truth(size: int, least: float) -> None:
    table = np.array([[0.3, 0.05, 0.02], [0.05, 0.2, 0.05], [0.03, 0.05, 0.25]])
    chance = float(table.sum(axis=0) @ table.sum(axis=1))
    truth = (np.trace(table) - chance) / (1 - chance)
    random = np.random.default_rng(size)
    covered = []
    for seed in range(600):
        first, second = np.divmod(random.choice(9, size=size, p=table.ravel()), 3)
        interval = cohens_kappa(first, second, resamples=300, seed=seed).interval
        if interval is not None:
            covered.append(interval.low <= truth <= interval.high)
    assert np.mean(covered) >= least


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: cohens_kappa([], []),
        lambda: cohens_kappa(["a"], ["a", "b"]),
        lambda: cohens_kappa(["a"], ["a"], level=0.0),
        lambda: krippendorff_alpha([1.0, 2.0]),
        lambda: krippendorff_alpha([[1.0, np.inf], [1.0, 2.0]]),
        lambda: krippendorff_alpha([[1.0], [1.0]], "ratio"),  # type: ignore[arg-type]
    ],
)
def test_misuse_is_a_value_error(misuse: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        misuse()


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
def test_thousands_of_different_ratings_take_little_memory(scale: Scale) -> None:
    random = np.random.default_rng(0)
    right = random.normal(size=3_000)
    tracemalloc.start()
    found = krippendorff_alpha(right + random.normal(size=(2, 3_000)), scale, resamples=20)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.value == pytest.approx(0.0 if scale == "nominal" else 0.5, abs=0.05)
    assert most < 100e6  # a table of all values of all items is 144 MB
